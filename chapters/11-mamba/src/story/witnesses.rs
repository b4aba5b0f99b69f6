//! Two references: the definition step by step, and Mamba's own numbers.

use linrec::contract::golden::array_distance;
use linrec::cpu::Cpu;
use linrec::lesson::{self, Kind, Lesson, Table};
use ndarray::Axis;

use crate::golden;
use crate::{direct, dissection, selective_scan};

/// Compares the three ways of this chapter with each other, and with Mamba's numbers.
pub fn witnesses(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("witnesses", "Two references")?;
    let cpu = Cpu::new();
    let cases = golden::cases()?;
    let (mut by_steps, mut by_dissection): (f64, f64) = (0.0, 0.0);
    for case in &cases {
        let arguments = case.given.arguments();
        let steps = direct(&arguments)?;
        let ours = selective_scan(&cpu, &arguments)?;
        by_steps = by_steps
            .max(array_distance(&ours.y, &steps.y))
            .max(array_distance(&ours.last_state, &steps.last_state));
        if case.given.z.is_none() {
            by_dissection =
                by_dissection.max(array_distance(&dissection::scan(&arguments)?, &steps.y));
        }
    }
    lesson.say("The first is the definition, step by step. In f64, over all cases:");
    lesson.check("dissected scan, largest relative difference", by_dissection, 1e-11);
    lesson.check("channel by channel, largest relative difference", by_steps, 1e-11);

    lesson.say(&format!(
        "The second is Mamba's own selective_scan_ref, with gradients by PyTorch's autograd: {} problems. Its \
         distances, max |a - b| / max |b| of each array:",
        cases.len(),
    ));
    let names: Vec<_> = cases.iter().map(|case| case.name).collect();
    let mut table = Table::new([&["array"][..], &names[..]].concat());
    let distances: Result<Vec<_>, _> =
        cases.iter().map(|case| golden::distances(&cpu, case)).collect();
    let distances = distances?;
    let mut worst: f64 = 0.0;
    for (array, _) in &distances[distances.len() - 1] {
        let cells = distances.iter().map(|case| {
            let found = case.iter().find(|(name, _)| name == array);
            worst = found.map_or(worst, |(_, distance)| worst.max(*distance));
            found.map_or("–".to_owned(), |(_, distance)| format!("{distance:.1e}"))
        });
        table.row([(*array).to_owned()].into_iter().chain(cells));
    }
    // The last digits depend on the machine's vector instructions.
    lesson.table("golden.csv", Kind::Timed, &table)?;
    lesson.check("Mamba's numbers and gradients, largest relative difference", worst, 1e-11);

    // The golden shapes are small: one more, whose rows fill many vectors.
    let given = crate::post::draw(1);
    let few = 0..8;
    let mut small = given.widen();
    small.u = small.u.slice_axis(Axis(1), few.clone().into()).to_owned();
    small.delta = small.delta.slice_axis(Axis(1), few.clone().into()).to_owned();
    small.a = small.a.slice_axis(Axis(0), few.into()).to_owned();
    let arguments = small.arguments();
    let difference = array_distance(&selective_scan(&cpu, &arguments)?.y, &direct(&arguments)?.y);
    lesson.check("8 of the post's channels, 1024 steps, in f64", difference, 1e-11);
    Ok(())
}
