//! The contract, for what the last chapter has not tried: the other ways, and the narrow types.

use half::{bf16, f16};
use linrec::contract::{self, Domain, Report};
use linrec::device::{Device, KernelEngine};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::pipe;

/// The longest sequence of the contract's table that runs here; the tests run them all.
const MAX_LEN: usize = 257;

/// Holds each kernel to the contract, in both passes.
pub fn contract(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("contract", "The contract")?;
    lesson.say(&format!("Both passes, both directions, sequences up to {MAX_LEN}:"));
    let of_way = |memcode: u32| -> lesson::Result<Report> {
        let engine = KernelEngine::<f32>::new(device, pipe(memcode))?;
        let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
        Ok(contract::run::<f32>(&engine, &domain))
    };
    let reports = [of_way(1)?, of_way(2)?, narrow::<bf16>(device)?, narrow::<f16>(device)?];
    let mut table = Table::new(["kernel", "element", "cases", "failed", "error / bound"]);
    for report in &reports {
        table.row([
            report.engine.clone(),
            report.element.to_owned(),
            report.cases.to_string(),
            report.failures.len().to_string(),
            format!("{:.2}", report.worst),
        ]);
    }
    lesson.table("contract.csv", Kind::Computed, &table)?;
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    lesson.check("the contract, cases that failed", failed as f64, 0.0);
    let worst = reports.iter().map(|report| report.worst).fold(0.0, f64::max);
    lesson.check("the contract, largest error / bound", worst, 1.0);
    Ok(())
}

fn narrow<S: linrec::device::Storage>(device: &Device) -> lesson::Result<Report> {
    let engine = KernelEngine::<S>::new(device, pipe(0))?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run_stored::<S>(&engine, &domain))
}
