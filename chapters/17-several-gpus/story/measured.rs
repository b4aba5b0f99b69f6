//! The measurements on several GPUs of a host: by trial programs, and by this library.
//!
//! This module times nothing, because the machine of a reader has no such GPUs: `quoted` reads the
//! records in `results`. The module shows the records as tables and publishes every value that the
//! page quotes. A missing measurement is an error that names it, so the page cannot quote a number
//! without a record.

use lesson::{Kind, Lesson, Table};
use linrec::device::Links;

use crate::quoted::{self, Reached, Trial};
use crate::simulate::MESSAGE;

/// Formats a value with its unit.
fn amount(trial: &Trial) -> String {
    match trial.unit.as_str() {
        "us" => format!("{} µs", trial.value),
        "part" => format!("{}", trial.value),
        unit => format!("{} {unit}", trial.value),
    }
}

pub(super) fn links(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("links", "What a link moves, and what a message costs")?;
    lesson.say(
        "Four H200s of one host, November 2026. These are figures of trial programs, written to find out what is worth \
         building (trials.csv in results/h200/tables.json):",
    );
    let mut table = Table::new(["what", "GPUs", "measured"]);
    for trial in quoted::trials()?.iter().filter(|trial| trial.what == "link") {
        table.row([trial.case.clone(), trial.gpus.to_string(), amount(trial)]);
    }
    lesson.table("links.csv", Kind::Computed, &table)?;
    lesson.value("message", format!("{:.1}", 1e6 * MESSAGE), Kind::Computed);
    lesson.value("link", format!("{:.0}", 1e-9 * Links::H200.link), Kind::Computed);
    lesson.value("seen", format!("{:.2}", 1e6 * Links::H200.store), Kind::Computed);
    Ok(())
}

/// Rows, coefficients and way.
type Case<'a> = (usize, &'a str, &'a str);

/// The cases that the page shows for one process, a line for each kind of work.
const CASES: [Case; 8] = [
    (13_200, "0.98 to 1", "rows"),
    (13_200, "0.98 to 1", "mailboxes"),
    (264, "0.98 to 1", "mailboxes"),
    (64, "0.98 to 1", "mailboxes"),
    (16, "0.98 to 1", "mailboxes"),
    (16, "0.98 to 1", "tail by mail"),
    (1, "0 to 1", "tail by mail"),
    (1, "1 to 1", "passes by mail"),
];

/// Returns one of the measurements in one process.
fn of<'a>(reached: &'a [Reached], pass: &str, case: Case) -> lesson::Result<&'a Reached> {
    of_ranks(reached, pass, case, false)
}

/// Returns one of the measurements, in one process or in one for each GPU.
fn of_ranks<'a>(
    reached: &'a [Reached],
    pass: &str,
    (rows, coeffs, way): Case,
    is_spread: bool,
) -> lesson::Result<&'a Reached> {
    let is_it = |one: &&Reached| {
        one.shape.0 == rows
            && one.coeffs == coeffs
            && one.is_by(way)
            && one.pass == pass
            && one.is_spread == is_spread
    };
    let missing = || format!("{pass} by {way} of {rows} rows was not measured");
    Ok(reached.iter().find(is_it).ok_or_else(missing)?)
}

pub(super) fn reached(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("reached", "What was reached")?;
    let reached = quoted::reached()?;
    let first = reached.first().ok_or("the record of this chapter is empty")?;
    let (date, machine) = &first.measured;
    lesson.say(&format!(
        "Efficiency: the time on one GPU, over their number times that on all of them. This library, {machine}, {date}, one \
         process, in f32, medians (results/h100/group.csv.gz):"
    ));
    let mut table = Table::new(["sequences", "coefficients", "way", "forward", "backward"]);
    for case in CASES {
        let (forward, backward) = (of(&reached, "forward", case)?, of(&reached, "backward", case)?);
        let cells = [forward, backward].map(|one| format!("{:.2}", one.efficiency));
        let (_, coeffs, way) = case;
        let named = [sequences(forward.shape), coeffs.to_owned(), way.to_owned()];
        table.row(named.into_iter().chain(cells));
    }
    lesson.table("reached.csv", Kind::Computed, &table)?;
    values(lesson, &reached)
}

/// Formats rows and steps: `264 x 2^22`.
fn sequences((rows, steps): (usize, usize)) -> String {
    if steps.is_power_of_two() {
        format!("{rows} x 2^{}", steps.ilog2())
    } else {
        format!("{rows} x {steps}")
    }
}

/// Publishes numbers of the record for the page.
fn values(lesson: &mut Lesson, reached: &[Reached]) -> lesson::Result {
    for (name, rows, coeffs, way) in [
        ("reached_rows", 13_200, "0.98 to 1", "rows"),
        ("reached_passes", 13_200, "0.98 to 1", "passes"),
        ("reached_pipeline", 13_200, "0.98 to 1", "pipeline"),
        ("reached_mailboxes", 13_200, "0.98 to 1", "mailboxes"),
        ("reached_tail", 13_200, "0 to 1", "tail first"),
        ("reached_tail_near", 13_200, "0.98 to 1", "tail first"),
        ("reached_row_tail", 1, "0 to 1", "tail by mail"),
        ("reached_row", 1, "1 to 1", "passes by mail"),
        ("reached_few", 264, "0.98 to 1", "mailboxes"),
        ("reached_few_passes", 264, "0.98 to 1", "passes"),
        ("reached_fewer", 16, "0.98 to 1", "mailboxes"),
        ("reached_fewer_tail", 16, "0.98 to 1", "tail by mail"),
    ] {
        let efficiency = of(reached, "forward", (rows, coeffs, way))?.efficiency;
        lesson.value(name, format!("{efficiency:.2}"), Kind::Computed);
    }
    for (name, what, pieces) in [
        ("walk_pieces_us", "walk over pieces", 32_768),
        ("walk_groups_us", "walk over groups", 32_768),
    ] {
        let microseconds = 1e3 * quoted::in_pieces(what, pieces)?;
        lesson.value(name, format!("{microseconds:.0}"), Kind::Computed);
    }
    for (name, what, pieces) in [
        ("gradients_few_ms", "gradients", 1024),
        ("gradients_many_ms", "gradients", 32_768),
        ("outputs_few_ms", "outputs by wide:8x256:a1:w", 1024),
        ("outputs_many_ms", "outputs by wide:8x256:a1:w", 32_768),
    ] {
        lesson.value(name, format!("{:.2}", quoted::in_pieces(what, pieces)?), Kind::Computed);
    }
    for how in ["asleep", "awake"] {
        let micros = format!("{:.0}", quoted::of_processes(how, "us")?);
        lesson.value(&format!("told_{how}_us"), micros, Kind::Computed);
        let efficiency = format!("{:.2}", quoted::of_processes(how, "efficiency")?);
        lesson.value(&format!("processes_{how}"), efficiency, Kind::Computed);
    }
    let row_back = of(reached, "backward", (1, "1 to 1", "passes by mail"))?.efficiency;
    lesson.value("reached_row_back", format!("{row_back:.2}"), Kind::Computed);
    let by_mail = of(reached, "forward", (13_200, "0.98 to 1", "mailboxes"))?;
    let alone = by_mail.ms * by_mail.efficiency;
    lesson.value("mail_alone_ms", format!("{alone:.2}"), Kind::Computed);
    lesson.value("mail_ms", format!("{:.2}", by_mail.ms), Kind::Computed);
    for (name, how) in [("asked_waited", "waits"), ("asked_sent", "sent")] {
        let ms = quoted::asked_early(how)?;
        lesson.value(name, format!("{ms:.2}"), Kind::Computed);
    }
    let row_tail = (1, "0 to 1", "tail by mail");
    for (name, case) in [
        ("row_tail_ms", row_tail),
        ("row_mail_ms", (1, "1 to 1", "passes by mail")),
        ("row_gather_ms", (1, "1 to 1", "passes")),
    ] {
        let ms = of(reached, "forward", case)?.ms;
        lesson.value(name, format!("{ms:.2}"), Kind::Computed);
    }
    let in_vain = of(reached, "forward", (1, "1 to 1", "tail by mail"))?.efficiency;
    lesson.value("row_tail_in_vain", format!("{in_vain:.2}"), Kind::Computed);
    let spread = of_ranks(reached, "forward", row_tail, true)?.efficiency;
    lesson.value("row_tail_processes", format!("{spread:.2}"), Kind::Computed);
    let one_row = of(reached, "backward", (1, "1 to 1", "pipeline"))?;
    // The ratio of the two passes has more digits than the pipeline's.
    let passes = of(reached, "backward", (1, "1 to 1", "passes"))?;
    let alone = passes.ms * passes.efficiency * passes.gpus as f64;
    lesson.value("pipeline_times", format!("{:.0}", one_row.ms / alone), Kind::Computed);
    Ok(())
}

pub(super) fn all_ways(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("measured", "By every way")?;
    let reached = quoted::reached()?;
    lesson.say(
        "The same record: rows dealt out, and by each way of cutting them; and that of a process for each GPU \
         (results/h100/processes.csv.gz).",
    );
    for (is_spread, started) in [(false, "one process"), (true, "a process for each GPU")] {
        for pass in ["forward", "backward"] {
            let of_table: Vec<_> = reached
                .iter()
                .filter(|one| one.is_spread == is_spread && one.pass == pass)
                .collect();
            lesson.say(&format!("The {pass} pass, {started}:"));
            let file = format!("{pass}-{}.csv", if is_spread { "processes" } else { "threads" });
            lesson.table(&file, Kind::Computed, &table(&of_table))?;
        }
    }
    Ok(())
}

pub(super) fn trials(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("trials", "What the trials reached")?;
    lesson.say(
        "Trial programs, forward, on four H200s of one host, November 2026 (trials.csv in results/h200/tables.json):",
    );
    let all = quoted::trials()?;
    let mut table = Table::new(["case", "efficiency"]);
    for trial in all.iter().filter(|trial| trial.what == "efficiency") {
        table.row([trial.case.clone(), amount(trial)]);
    }
    lesson.table("trials.csv", Kind::Computed, &table)?;
    for (name, words) in [
        ("trial_passes", "in two passes with an all-gather"),
        ("trial_pipeline", "as a pipeline of 12 groups"),
        ("trial_mailboxes", "mailboxes and an ordinary kernel"),
        ("trial_tail", "tail first with gates of 0 to 1"),
        ("trial_tail_near", "tail first with gates of 0.98 to 1"),
        ("trial_tail_ones", "tail first with ones"),
    ] {
        let missing = || format!("`{words}` was not tried");
        let trial = all.iter().find(|trial| trial.case.contains(words)).ok_or_else(missing)?;
        lesson.value(name, format!("{:.2}", trial.value), Kind::Computed);
    }
    Ok(())
}

/// Makes a table with one row for each case and one column for each way.
fn table(reached: &[&Reached]) -> Table {
    const WAYS: [&str; 7] =
        ["rows", "passes", "tail first", "pipeline", "passes by mail", "mailboxes", "tail by mail"];
    let mut table = Table::new(["sequences", "coefficients", "GPUs"].into_iter().chain(WAYS));
    let mut cases = Vec::new();
    for one in reached {
        let case = (one.shape, one.coeffs.as_str(), one.gpus);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    for case in cases {
        let (shape, coeffs, gpus) = case;
        let by = |way: &str| {
            let is_it = |one: &&&Reached| {
                (one.shape, one.coeffs.as_str(), one.gpus) == case && one.is_by(way)
            };
            reached
                .iter()
                .find(is_it)
                .map_or_else(String::new, |one| format!("{:.2}", one.efficiency))
        };
        let named = [format!("{} x {}", shape.0, shape.1), coeffs.to_owned(), gpus.to_string()];
        table.row(named.into_iter().chain(WAYS.map(by)));
    }
    table
}
