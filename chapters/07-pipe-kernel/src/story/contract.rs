//! The contract, for the real element types; the tests hold the complex ones to it, too.

use linrec::Element;
use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine, Storage};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::PIPE;

/// The longest sequence of the contract's table that runs here, just beyond a tile; the tests run them all.
const MAX_LEN: usize = 513;

/// Holds both types to the contract.
pub fn contract(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("contract", "The contract")?;
    lesson.say(&format!(
        "Both passes, both directions, all kinds of coefficients, sequences up to {MAX_LEN}:",
    ));
    let reports = [judge::<f32>(device)?, judge::<f64>(device)?];
    let mut table = Table::new(["element", "cases", "failed", "largest error / bound"]);
    for report in &reports {
        table.row([
            report.element.to_owned(),
            report.cases.to_string(),
            report.failures.len().to_string(),
            format!("{:.2}", report.worst),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let worst = reports.iter().map(|report| report.worst).fold(0.0, f64::max);
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, largest error / bound", worst, 1.0);
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    Ok(())
}

fn judge<T: Element + Storage<Accum = T>>(device: &Device) -> lesson::Result<contract::Report> {
    let engine = KernelEngine::<T>::new(device, PIPE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}
