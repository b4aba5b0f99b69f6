//! The way back through log space, and other people's numbers.

use linrec::contract::golden::array_distance;
use linrec::contract::{self, Case, CoeffKind, Domain, InputKind, Layout};
use linrec::lesson::{Kind, Lesson, Result, Table};
use linrec::{Direction, Engine};

use super::number;
use crate::{LogSpace, golden};

/// Gradients within the bound, golden data, the table of cases.
pub fn gradients(lesson: &mut Lesson) -> Result {
    lesson.step("gradients", "The way back, and the witnesses")?;
    let seq_len = lesson.size(4093, 65_537);
    let case = |coeffs, log_coeffs| Case {
        num_seqs: 17,
        seq_len,
        direction: Direction::Forward,
        initial: true,
        coeffs,
        log_coeffs,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    };
    lesson.say(&format!(
        "17 sequences of {seq_len} elements, forward and backward in f32, all outputs and gradients beside the \
         reference in double precision, in units of their bounds:",
    ));
    let mut table = Table::new(["coefficients", "as numbers", "as logarithms"]);
    let mut worst = 0.0_f64;
    let engine = LogSpace::whole();
    let kinds = [
        ("in [0, 1)", CoeffKind::Gate),
        ("in [0.98, 1)", CoeffKind::NearOne),
        ("in [0.98, 1), some 0", CoeffKind::Zeros),
        ("in (-1.2, 1.2)", CoeffKind::Signed),
        ("in [1, 1 + 16/L]", CoeffKind::Growing),
        ("below 1e-12", CoeffKind::Underflow),
    ];
    let domain = LogSpace::domain();
    let share = |case: &Case| contract::check_within::<f32>(&engine, &domain, &engine, case);
    for (name, kind) in kinds {
        let plain = share(&case(kind, false))?;
        let log = match kind.has_log() {
            true => Some(share(&case(kind, true))?),
            false => None,
        };
        worst = worst.max(plain).max(log.unwrap_or(0.0));
        let log = log.map_or("–".to_owned(), |share| format!("{share:.3}"));
        table.row([name.to_owned(), format!("{plain:.3}"), log]);
    }
    lesson.table("gradients.csv", Kind::Computed, &table)?;
    lesson.check("f32, largest error / bound", worst, 1.0);

    let mut distances = [0.0_f64; 3];
    for case in golden::recurrences()? {
        let kind = ["positive", "signed", "zeros"].iter().position(|k| case.name.ends_with(k));
        let (x, c) = (case.inputs.view(), case.coeffs.view());
        let y = engine.forward(x, c, &case.options::<f64>())?.outputs;
        let distance = &mut distances[kind.unwrap_or(0)];
        *distance = distance.max(array_distance(&y, &case.outputs));
    }
    lesson.say(&format!(
        "Heinsen's sequences as PyTorch computed them, in f64, largest difference relative to each array's \
         maximum: {} where all is positive, {} with signs, {} with zeros.",
        number(distances[0]), number(distances[1]), number(distances[2]),
    ));
    lesson.value("golden_signed", number(distances[1]), Kind::Computed);
    let largest = distances.into_iter().fold(0.0, f64::max);
    lesson.check("golden sequences, relative difference", largest, 1e-11);
    let mut largest = 0.0_f64;
    for case in contract::golden::real()? {
        largest = largest.max(contract::golden::distance::<f64>(&engine, &case)?);
    }
    lesson.check("golden recurrences with gradients, relative difference", largest, 1e-11);

    let domain = Domain { max_len: 64, ..domain };
    let report = contract::run_within::<f64>(&engine, &domain, &engine);
    lesson.say(&format!(
        "The contract's table of cases, in f64, with the bound of log space: {} cases up to 64 elements.",
        report.cases,
    ));
    lesson.check("cases that failed", report.failures.len() as f64, 0.0);
    lesson.check("the contract, largest error / bound", report.worst, 1.0);
    lesson.value("contract_cases", report.cases, Kind::Computed);
    Ok(())
}
