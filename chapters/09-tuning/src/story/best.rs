//! The fastest configurations, as recorded.

use linrec::device::Device;
use linrec::kernels::{ElementType, KernelChoice, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};

use super::NOTHING;
use crate::log::Line;
use crate::{judge, record};

/// First the errors, of the shipped configurations, here.
pub fn judged(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("judged", "First, is it right?")?;
    lesson.say(
        "Before a configuration is measured, its results are compared with the loop in double precision. The largest \
         errors of the shipped ones on this machine, in units of the bound that is derived for each result:",
    );
    let mut table = Table::new(["configuration", "largest error"]);
    let mut worst = 0.0_f64;
    for choice in KernelChoice::shipped(ElementType::F32) {
        let error = judge::worst::<f32>(&Device::simt(), choice)?;
        table.row([choice.spec(), format!("{error:.3}")]);
        worst = worst.max(error);
    }
    lesson.table("judged.csv", Kind::Computed, &table)?;
    lesson.check("largest error in units of its bound", worst, 1.0);
    Ok(())
}

/// The tables of the post, of an H200.
pub fn best(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("best", "The fastest at each length")?;
    let lines = record::tuning()?;
    let runs = lines.iter().map(|line| line.runs.len()).min().unwrap_or(0);
    lesson.value("runs", runs, Kind::Computed);
    lesson.value("measured", lines.len(), Kind::Computed);
    if lines.is_empty() {
        lesson.say(NOTHING);
    }
    for kernel in ["pipe", "rows", "wide"] {
        for pass in Pass::ALL {
            let (name, file) = (pass.name(), format!("best-{kernel}-{}.csv", pass.name()));
            lesson.say(&format!("{kernel}, {name}, 13200 sequences of f32 on an H200:"));
            lesson.table(&file, Kind::Computed, &table(&lines, kernel, pass))?;
        }
    }
    Ok(())
}

fn table(lines: &[Line], kernel: &str, pass: Pass) -> Table {
    let mut table = Table::new(["length", "ms", "GB", "GB/s", "/ roof", "configuration"]);
    for seq_len in crate::LENGTHS {
        let Some(best) = fastest(lines, kernel, pass, seq_len) else { continue };
        table.row([
            seq_len.to_string(),
            format!("{:.4}", best.ms()),
            format!("{:.3}", best.bytes() as f64 / 1e9),
            format!("{:.0}", best.gb_per_s()),
            format!("{:.3}", best.ratio),
            best.engine.split_once(':').map_or("", |(_, rest)| rest).to_owned(),
        ]);
    }
    table
}

/// The lines of a kernel at a length.
pub fn of<'a>(
    lines: &'a [Line],
    kernel: &str,
    pass: Pass,
    seq_len: usize,
) -> impl Iterator<Item = &'a Line> {
    let beginning = format!("{kernel}:");
    lines.iter().filter(move |line| {
        let shape = (line.num_seqs, line.seq_len) == (13_200, seq_len);
        line.pass == pass && shape && line.engine.starts_with(&beginning)
    })
}

/// The fastest of them.
pub fn fastest<'a>(
    lines: &'a [Line],
    kernel: &str,
    pass: Pass,
    seq_len: usize,
) -> Option<&'a Line> {
    of(lines, kernel, pass, seq_len).max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}
