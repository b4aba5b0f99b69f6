//! The kernels that the rule selects, over numbers of sequences and lengths.
//!
//! The other steps of the chapter have many sequences. With few of them, the fastest kernel depends
//! on both numbers, so this part shows the whole plane: as a table, as a picture in which the
//! colour is the fraction of the roof, and as a search for cliffs. A cliff is a shape that is much
//! slower than both of its neighbours, so it would suggest that the rule lacks a kernel there. All
//! numbers come from the record of `tour tune`. `cargo xtask record --check` compares the checks
//! and values with the committed run.

use bench::Row;
use lesson::plot::sketch::{GREY, left, middle};
use lesson::plot::{self, Area, COLORS, Panel};
use lesson::{Kind, Lesson, Table};
use linrec::kernels::{ElementType, KernelChoice, Pass, Query, Tuned};
use plotters::prelude::*;

use super::{NOTHING, cell};
use crate::record;

/// A measured shape and the library's choice for it.
struct Picked {
    shape: (usize, usize),
    choice: KernelChoice,
    ms: f64,
    ratio: f64,
}

impl Picked {
    fn gb_per_s(&self, pass: Pass) -> f64 {
        bench::bytes(pass, self.shape.0 * self.shape.1, 4) as f64 / self.ms / 1e6
    }
}

/// The longest length of many rows that is shown next to few rows.
const LONGEST: usize = 65_536;

/// Returns the rule's choices at the shapes of the plane: few sequences, and many sequences of the
/// same lengths.
fn picked(lines: &[Row], pass: Pass) -> Vec<Picked> {
    let is_few = |line: &&Row| line.num_seqs < 13_200;
    let mut lengths: Vec<usize> = lines.iter().filter(is_few).map(|line| line.seq_len).collect();
    lengths.push(LONGEST);
    let mut shapes: Vec<(usize, usize)> = lines
        .iter()
        .filter(|line| line.pass == pass && lengths.contains(&line.seq_len))
        .map(|line| (line.num_seqs, line.seq_len))
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    let at = |shape: (usize, usize)| {
        let choice = KernelChoice::best(Query {
            element: ElementType::F32,
            pass,
            num_seqs: shape.0 as u64,
            seq_len: shape.1 as u64,
            whole: true,
            shipped_only: false,
        });
        let name = choice.to_string();
        let line = lines.iter().find(|line| line.is_of(ElementType::F32, pass, &name, shape))?;
        Some(Picked { shape, choice, ms: line.ms.value, ratio: line.ratio.value })
    };
    shapes.into_iter().filter_map(at).collect()
}

/// Compares each place with its two neighbours, along lengths and along numbers of sequences.
/// Returns its ratio to the slower neighbour, with the place. The ends have only one neighbour and
/// are left out.
// ANCHOR: dips
fn dips(all: &[Picked]) -> Vec<(f64, &Picked)> {
    let mut found = Vec::new();
    for along_lengths in [true, false] {
        let key = |one: &Picked| match along_lengths {
            true => one.shape,
            false => (one.shape.1, one.shape.0),
        };
        let mut lines: Vec<&Picked> = all.iter().collect();
        lines.sort_by_key(|one| key(one));
        for three in lines.windows(3) {
            if three.iter().all(|one| key(one).0 == key(three[0]).0) {
                found.push((three[1].ratio / three[0].ratio.min(three[2].ratio), three[1]));
            }
        }
    }
    found
}
// ANCHOR_END: dips

/// Shows the figure and the table, and checks that there is no cliff.
pub(super) fn few(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("few", "Few and long rows")?;
    let lines = record::plane()?;
    let [forward, backward] = Pass::ALL.map(|pass| picked(&lines, pass));
    lesson.say(&format!(
        "What the rule takes where there are fewer sequences, in f32 on an H200: microseconds, and the part of the \
         addition's speed. {}",
        if forward.is_empty() { NOTHING } else { "" }
    ));
    let header = ["sequences", "length", "forward", "µs", "/ roof", "backward", "µs", "/ roof"];
    let mut table = Table::new(header);
    for one in forward.iter().filter(|one| [1, 16, 132, 264].contains(&one.shape.0)) {
        let other = backward.iter().find(|other| other.shape == one.shape);
        let cells = |one: Option<&Picked>| {
            [
                one.map_or_else(String::new, |one| one.choice.to_string()),
                cell(one.map(|one| 1e3 * one.ms), 1),
                cell(one.map(|one| one.ratio), 3),
            ]
        };
        let shape = [one.shape.0.to_string(), one.shape.1.to_string()];
        table.row(shape.into_iter().chain(cells(Some(one))).chain(cells(other)));
    }
    lesson.table("few.csv", Kind::Computed, &table)?;

    let panels = [(Pass::Forward, &forward), (Pass::Backward, &backward)]
        .map(|(pass, all)| Plane { title: format!("{}, f32, on an H200", pass.name()), all });
    let svg = plot::grid(&[&panels[0], &panels[1]], 1)?;
    lesson.figure("plane.svg", "The rule over sequences and lengths", Kind::Computed, &svg)?;
    values(lesson, &lines, &forward);
    cliffs(lesson, [&forward, &backward])
}

fn values(lesson: &mut Lesson, lines: &[Row], forward: &[Picked]) {
    let row = |len: usize| forward.iter().find(|one| one.shape == (1, len));
    let million = row(1 << 20);
    let speed = million.map(|one| one.gb_per_s(Pass::Forward));
    lesson.value("one_row", cell(speed, 0), Kind::Computed);
    lesson.value("one_row_part", cell(million.map(|one| one.ratio), 2), Kind::Computed);
    let longest = row(1 << 28).map(|one| one.ratio);
    lesson.value("one_row_28", cell(longest, 2), Kind::Computed);
    let fastest = |family: &str, pass: Pass, shape: (usize, usize)| {
        let beginning = format!("{family}:");
        let mine = lines.iter().filter(|line| {
            (line.pass, line.num_seqs, line.seq_len) == (pass, shape.0, shape.1)
                && line.engine.starts_with(&beginning)
        });
        mine.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
    };
    let wide = fastest("wide", Pass::Forward, (1, 1 << 20));
    lesson.value("one_row_wide", cell(wide.map(Row::throughput), 0), Kind::Computed);
    let percent = wide.map(|line| 100.0 * line.ratio.value);
    lesson.value("one_row_wide_part", cell(percent, 0), Kind::Computed);
    // The type that is slow at few rows.
    let sixteen = |num_seqs: u64, seq_len: u64| {
        let all = Tuned::measured().iter();
        let shape = (ElementType::Complex128, Pass::Forward, num_seqs, seq_len);
        let mine =
            all.filter(|line| (line.element, line.pass, line.num_seqs, line.seq_len) == shape);
        mine.map(|line| line.ratio).max_by(f64::total_cmp)
    };
    lesson.value("one_row_complex128", cell(sixteen(1, 1 << 26), 2), Kind::Computed);
    lesson.value("rows_132_complex128", cell(sixteen(132, 1 << 20), 2), Kind::Computed);
    for family in ["waves", "wide"] {
        for pass in Pass::ALL {
            let many = fastest(family, pass, (13_200, LONGEST)).map(|line| line.ratio.value);
            let key = format!("many_{family}_{}", pass.name());
            lesson.value(&key, cell(many, 3), Kind::Computed);
        }
    }
}

/// The total number of steps from which on bytes take most of the time.
const MANY_STEPS: usize = 1 << 20;

/// Checks that no place is far below both of its neighbours, and names the exceptions.
fn cliffs(lesson: &mut Lesson, both: [&[Picked]; 2]) -> lesson::Result {
    lesson.step("cliffs", "No cliff between")?;
    let (mut table, mut looked_at) =
        (Table::new(["pass", "sequences", "length", "/ roof", "of the lower neighbour"]), 0);
    let (mut dipping, mut large) = (0, 0);
    for (pass, all) in Pass::ALL.into_iter().zip(both) {
        for (part, one) in dips(all) {
            looked_at += 1;
            if part >= 0.9 {
                continue;
            }
            dipping += 1;
            large += u32::from(one.shape.0 * one.shape.1 >= MANY_STEPS);
            table.row([
                pass.name().to_owned(),
                one.shape.0.to_string(),
                one.shape.1.to_string(),
                cell(Some(one.ratio), 3),
                cell(Some(part), 2),
            ]);
        }
    }
    lesson.say(&format!(
        "Of {looked_at} places between two neighbours, along lengths or along numbers of sequences, {dipping} are below \
         0.9 of both of them:"
    ));
    lesson.table("cliffs.csv", Kind::Computed, &table)?;
    let name = "places of 2^20 steps or more below 0.9 of both neighbours";
    lesson.check(name, f64::from(large), 0.0);
    Ok(())
}

/// A pass over the plane: a row for each number of sequences, a column for each length.
struct Plane<'a> {
    title: String,
    all: &'a [Picked],
}

const LEFT: i32 = 58;
const RIGHT: i32 = 6;
const TOP: i32 = 30;
const BELOW: i32 = 40;
const ROW: i32 = 34;

impl Plane<'_> {
    fn sorted(&self, key: impl Fn(&Picked) -> usize) -> Vec<usize> {
        let mut all: Vec<usize> = self.all.iter().map(key).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Panel for Plane<'_> {
    fn height(&self, _width: u32) -> u32 {
        (TOP + ROW * self.sorted(|one| one.shape.0).len() as i32 + BELOW) as u32
    }

    fn draw(&self, area: &Area) -> lesson::Result {
        let (rows, columns) = (self.sorted(|one| one.shape.0), self.sorted(|one| one.shape.1));
        let width = area.dim_in_pixel().0 as i32 - LEFT - RIGHT;
        let x = |column: usize| LEFT + width * column as i32 / columns.len().max(1) as i32;
        let y = |row: usize| TOP + ROW * row as i32;
        left(area, self.title.clone(), (LEFT, 14), 15)?;
        for one in self.all {
            let place = |all: &[usize], key| all.iter().position(|&other| other == key);
            let (Some(row), Some(column)) =
                (place(&rows, one.shape.0), place(&columns, one.shape.1))
            else {
                continue;
            };
            let corners = [(x(column), y(row)), (x(column + 1) - 2, y(row + 1) - 2)];
            // The colour is transparent at a third of the roof and strongest at the roof, where
            // text must still be legible.
            let strength = (0.7 * (one.ratio - 0.3) / 0.7).clamp(0.0, 0.7);
            area.draw(&Rectangle::new(corners, COLORS[0].mix(strength).filled()))?;
            area.draw(&Rectangle::new(corners, GREY.stroke_width(1)))?;
            let center = (x(column) + x(column + 1) - 2) / 2;
            middle(area, format!("{:.2}", one.ratio), (center, y(row) + 10), 14)?;
            middle(area, one.choice.name(), (center, y(row) + 23), 11)?;
        }
        for (row, number) in rows.iter().enumerate() {
            middle(area, number.to_string(), (LEFT / 2, y(row) + ROW / 2), 13)?;
        }
        for (column, len) in columns.iter().enumerate() {
            let place = ((x(column) + x(column + 1)) / 2, y(rows.len()) + 9);
            middle(area, length(*len), place, 13)?;
        }
        left(area, "sequences", (2, TOP - 14), 12)?;
        left(area, "length", (LEFT, y(rows.len()) + 26), 12)?;
        Ok(())
    }
}

/// Formats a length in units of 1024 or of 1024 times 1024.
fn length(len: usize) -> String {
    match len {
        len if len.is_multiple_of(1 << 20) => format!("{} Mi", len >> 20),
        len if len.is_multiple_of(1 << 10) => format!("{} Ki", len >> 10),
        len => len.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(num_seqs: usize, seq_len: usize, ratio: f64) -> Picked {
        Picked { shape: (num_seqs, seq_len), choice: KernelChoice::default(), ms: 1.0, ratio }
    }

    #[test]
    fn a_dip_is_below_both_of_its_neighbours() {
        let all =
            [one(1, 16, 0.8), one(1, 32, 0.4), one(1, 64, 0.5), one(2, 16, 0.9), one(3, 16, 0.3)];
        let parts: Vec<_> = dips(&all).into_iter().map(|(part, one)| (one.shape, part)).collect();
        assert_eq!(parts, [((1, 32), 0.8), ((2, 16), 3.0)]);
        assert!(dips(&all[..2]).is_empty());
    }

    #[test]
    fn every_choice_of_the_rule_was_measured() {
        let lines = record::plane().unwrap();
        for pass in Pass::ALL {
            let mut few: Vec<_> = lines
                .iter()
                .filter(|line| line.pass == pass && line.num_seqs < 13_200)
                .map(|line| (line.num_seqs, line.seq_len))
                .collect();
            few.sort_unstable();
            few.dedup();
            let all = picked(&lines, pass);
            assert!(few.iter().all(|&shape| all.iter().any(|one| one.shape == shape)));
        }
    }

    #[test]
    fn lengths_have_binary_units() {
        assert_eq!(
            ["1 Ki", "64 Ki", "4 Mi", "1000"],
            [1 << 10, 1 << 16, 1 << 22, 1000].map(length)[..]
        );
    }
}
