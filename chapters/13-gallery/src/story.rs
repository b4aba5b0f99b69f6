//! The chapter's run.

mod bytes;
mod filters;
mod gated;
mod linear;
mod money;
mod newton;
mod sunspots;

use linrec::contract::{Domain, golden};
use linrec::cpu::Cpu;
use linrec::device::{Device, KernelEngine};
use linrec::kernels::{Config, KernelChoice};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::reference::{self, Rounding};
use linrec::{Element, Engine};
use ndarray::Array2;
use num_complex::Complex;

use crate::{Problem, catalogue};

/// How far from its formula a model may be, as `max |a − b| / max |b|`: what golden data are held to.
const LIMIT: f64 = 1e-11;

/// Tells the chapter.
pub fn run(lesson: &mut Lesson) -> lesson::Result {
    let device = Device::auto()?;
    lesson.engine(&format!("cpu, pipe@{}", device.label()));
    let mut gallery = Gallery::open(&device)?;
    what_is_what(lesson)?;
    money::interest(lesson, &mut gallery)?;
    money::returns(lesson, &mut gallery)?;
    filters::filter(lesson, &mut gallery)?;
    sunspots::smooth(lesson)?;
    sunspots::bank(lesson, &mut gallery)?;
    sunspots::predict(lesson, &mut gallery)?;
    linear::s4d(lesson, &mut gallery)?;
    linear::s5(lesson, &mut gallery)?;
    linear::lru(lesson, &mut gallery)?;
    gated::rg_lru(lesson, &mut gallery)?;
    gated::slstm(lesson, &mut gallery)?;
    gated::min_rnn(lesson, &mut gallery)?;
    gated::gate_loop(lesson, &mut gallery)?;
    gated::rwkv(lesson, &mut gallery)?;
    gallery.close(lesson)?;
    newton::newton(lesson)?;
    bytes::bytes(lesson)?;
    bytes::fused(lesson)
}

fn what_is_what(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("table", "What x and c are")?;
    lesson.say("Every line is a problem for one and the same function, linrec::forward.");
    lesson.table("models.csv", Kind::Computed, &catalogue::table())
}

/// Solves every model's problem twice, by the library and by a kernel, and keeps the books.
struct Gallery {
    real: KernelEngine<f64>,
    complex: KernelEngine<Complex<f64>>,
    books: Table,
    worst: [f64; 2],
}

impl Gallery {
    fn open(device: &Device) -> lesson::Result<Gallery> {
        let pipe = KernelChoice::Pipe(Config::default());
        let header = [
            "model",
            "numbers",
            "rows",
            "steps",
            "from the formula",
            "library / bound",
            "kernel / bound",
        ];
        Ok(Gallery {
            real: KernelEngine::new(device, pipe)?,
            complex: KernelEngine::new(device, pipe)?,
            books: Table::new(header),
            worst: [0.0; 2],
        })
    }

    /// The states of a real problem.
    fn real(&self, problem: &Problem<f64>) -> lesson::Result<Solved<f64>> {
        solve(problem, &self.real)
    }

    /// The states of a complex problem.
    fn complex(&self, problem: &Problem<Complex<f64>>) -> lesson::Result<Solved<Complex<f64>>> {
        solve(problem, &self.complex)
    }

    /// Checks how far the outputs are from the formula, and enters the model into the books.
    fn enter<T: Element>(
        &mut self,
        lesson: &mut Lesson,
        (model, formula): (&str, &str),
        solved: &Solved<T>,
        distance: f64,
    ) {
        lesson.check(&format!("{model} and {formula}, relative"), distance, LIMIT);
        let [library, kernel] = solved.ratios;
        self.worst = [self.worst[0].max(library), self.worst[1].max(kernel)];
        let (rows, steps) = solved.states.dim();
        self.books.row([
            model.to_owned(),
            if T::NAME.starts_with("Complex") { "complex" } else { "real" }.to_owned(),
            rows.to_string(),
            steps.to_string(),
            format!("{distance:.0e}"),
            format!("{library:.2}"),
            format!("{kernel:.2}"),
        ]);
    }

    /// Shows the books.
    fn close(self, lesson: &mut Lesson) -> lesson::Result {
        lesson.step("kernels", "Through library and kernel")?;
        lesson.say(&format!(
            "Every problem above was solved twice, in double precision: by the library, and by {}, the \
             kernel of chapter 7. The last two columns are the largest error against the loop, in units of \
             chapter 1's bound.",
            Engine::<f64>::name(&self.real),
        ));
        // Errors depend on the width of the processor's vectors.
        lesson.table("kernels.csv", Kind::Timed, &self.books)?;
        let [library, kernel] = self.worst;
        lesson.check("library, largest error / bound", library, 1.0);
        lesson.check("kernel, largest error / bound", kernel, 1.0);

        let cases = golden::complex()?;
        lesson.say(&format!(
            "And {} complex recurrences with their gradients, as PyTorch computed them:",
            cases.len(),
        ));
        let engines: [(&str, &dyn Engine<Complex<f64>>); 2] =
            [("library", &Cpu::new()), ("kernel", &self.complex)];
        for (name, engine) in engines {
            let distances = cases.iter().map(|case| golden::distance(engine, case));
            let distances: Vec<f64> = distances.collect::<Result<_, _>>()?;
            let worst = distances.into_iter().fold(0.0, f64::max);
            lesson.check(&format!("{name} and complex golden data, relative"), worst, LIMIT);
        }
        Ok(())
    }
}

/// What came out of a problem.
struct Solved<T> {
    /// The library's states.
    states: Array2<T>,
    /// The largest error over its bound, of the library and of the kernel.
    ratios: [f64; 2],
}

fn solve<T: Element>(problem: &Problem<T>, kernel: &dyn Engine<T>) -> lesson::Result<Solved<T>> {
    let states = problem.solve()?;
    let library = ratio(problem, &states)?;
    // The kernels take no logarithms.
    let plain = problem.without_logs();
    let kernel = ratio(&plain, &plain.solve_with(kernel)?)?;
    Ok(Solved { states, ratios: [library, kernel] })
}

/// The largest error against the reference, in units of the bound.
fn ratio<T: Element>(problem: &Problem<T>, states: &Array2<T>) -> lesson::Result<f64> {
    let (inputs, coeffs) = (problem.inputs.view(), problem.coeffs.view());
    let rounding = Rounding { levels: Domain::tree_levels(inputs.ncols()), exp_ulps: 1.0 };
    let exact = reference::forward(inputs, coeffs, &problem.options)?.outputs;
    let bound = reference::forward_bound(inputs, coeffs, &problem.options, rounding)?.outputs;
    let mut worst: f64 = 0.0;
    for ((got, exact), bound) in states.iter().zip(&exact).zip(&bound) {
        let error = (got.widen() - *exact).modulus();
        if error > 0.0 || error.is_nan() {
            let ratio = error / bound;
            worst = if ratio.is_nan() { f64::INFINITY } else { worst.max(ratio) };
        }
    }
    Ok(worst)
}
