//! What was measured on several H200s, and what was not.

use lesson::{Kind, Lesson, Table};
use linrec::device::Links;

use crate::quoted::{self, Trial};

/// A number with its unit.
fn amount(trial: &Trial) -> String {
    match trial.unit.as_str() {
        "us" => format!("{} µs", trial.value),
        "part" => format!("{}", trial.value),
        unit => format!("{} {unit}", trial.value),
    }
}

/// What messages and links take.
pub(super) fn links(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("links", "What a link moves, and what a message costs")?;
    lesson.say(
        "Four H200s of one host, November 2026. These are figures of trial programs, written to find out what is worth \
         building; this library has not been run on several GPUs:",
    );
    let mut table = Table::new(["what", "GPUs", "measured"]);
    for trial in quoted::trials()?.iter().filter(|trial| trial.what == "link") {
        table.row([trial.case.clone(), trial.gpus.to_string(), amount(trial)]);
    }
    lesson.table("links.csv", Kind::Computed, &table)?;
    lesson.value("seen", 1e6 * Links::H200.store, Kind::Computed);
    Ok(())
}

/// What the trials reached, and that there is no record of the library.
pub(super) fn record(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("measured", "What was reached, and by what")?;
    lesson.say(
        "Efficiency on four H200s of one host, in f32, forward: the time on one GPU, over four times that on four. Of trial programs, \
         November 2026:",
    );
    let mut table = Table::new(["case", "efficiency"]);
    for trial in quoted::trials()?.iter().filter(|trial| trial.what == "efficiency") {
        table.row([trial.case.clone(), amount(trial)]);
    }
    lesson.table("trials.csv", Kind::Computed, &table)?;
    let recorded = quoted::recorded()?;
    if recorded == 0 {
        lesson.say(
            "The record of this library on several GPUs is empty: results/h200/group.csv has no rows. The bundle's step \
             for hosts with several GPUs fills it, where there is such a host.",
        );
    }
    lesson.value("recorded", recorded, Kind::Computed);
    Ok(())
}
