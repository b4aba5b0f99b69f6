//! The medians, as a table and as a chart.

use lesson::plot::{Chart, kernels};
use lesson::{Kind, Lesson, Table};
use linrec::kernels::Pass;

use super::buffers::Problem;
use super::round::{ENGINES, Round, roof};
use crate::median;

/// The medians of all problems of one kind.
#[derive(Default)]
pub struct Summary(Vec<Medians>);

/// The medians of one problem, in GB/s. Ratios are computed within each round, against the faster
/// of the two roofs.
struct Medians {
    num_seqs: usize,
    seq_len: usize,
    speeds: [f64; ENGINES.len()],
    cpu_by_roof: f64,
    cpu_by_loop: f64,
}

impl Summary {
    pub fn add(&mut self, pass: Pass, problem: &Problem, rounds: &[Round]) {
        let speed = |engine: usize| {
            median(rounds.iter().map(|round| problem.gb_per_s(pass, round[engine])))
        };
        let ratio = |engine: usize| median(rounds.iter().map(|round| round[engine] / round[3]));
        self.0.push(Medians {
            num_seqs: problem.num_seqs,
            seq_len: problem.seq_len,
            speeds: std::array::from_fn(speed),
            cpu_by_roof: ratio(roof(rounds)),
            cpu_by_loop: ratio(2),
        });
    }

    /// Prints the table, writes it to `name.csv`, and records the smallest ratios for the page.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn show(&self, lesson: &mut Lesson, name: &str) -> lesson::Result {
        let [plain, streaming, by_loop, cpu] = ENGINES;
        let ratios = ["cpu / roof", "cpu / loop"];
        let mut table = Table::new(
            ["L", "sequences", plain, streaming, by_loop, cpu].into_iter().chain(ratios),
        );
        for line in &self.0 {
            let mut cells = vec![line.seq_len.to_string(), line.num_seqs.to_string()];
            cells.extend(line.speeds.map(|speed| format!("{speed:.1}")));
            cells.extend([line.cpu_by_roof, line.cpu_by_loop].map(|ratio| format!("{ratio:.2}")));
            table.row(cells);
        }
        let long = || self.0.iter().filter(|line| line.seq_len >= 64);
        let by_roof = long().map(|line| line.cpu_by_roof).fold(f64::INFINITY, f64::min);
        lesson.value(&format!("{name}-roof"), format!("{by_roof:.2}"), Kind::Timed);
        let longer = self.0.iter().filter(|line| line.seq_len >= 256);
        let by_loop = longer.map(|line| line.cpu_by_loop).fold(f64::INFINITY, f64::min);
        lesson.value(&format!("{name}-loop"), format!("{by_loop:.1}"), Kind::Timed);
        lesson.table(&format!("{name}.csv"), Kind::Timed, &table)
    }

    /// Draws throughput against length.
    pub fn chart(&self, title: &str) -> Chart {
        let fastest = self.0.iter().flat_map(|line| line.speeds).fold(0.0, f64::max);
        let chart = Chart::new(title).axes("length L", "GB/s").log_x(2.0);
        // The axis begins at zero so that heights can be compared.
        let mut chart = chart.y_range(0.0, 1.1 * fastest);
        for (engine, name) in ENGINES.iter().enumerate() {
            // The roofs come first; they are drawn as variants of one another.
            let variant = if name.starts_with("roof") { engine } else { 0 };
            let points = self.0.iter().filter(|line| line.seq_len <= 1 << 16);
            let points = points.map(|line| (line.seq_len as f64, line.speeds[engine]));
            chart = chart.measured(name, points).color(kernels::variant(name, variant));
        }
        chart
    }
}
