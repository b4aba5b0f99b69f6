//! Types and directions, each with its own instance of the kernel.

use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine, Storage};
use linrec::kernels::{ElementType, Pass};
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::{Direction, Element};
use num_complex::Complex;

use crate::by_hand::CHOICE;

/// The longest sequence of the contract's table that runs here; the tests run them all.
const MAX_LEN: usize = 65;

/// Lists the instances, and holds each type to the contract.
pub fn dispatch(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("dispatch", "One source, many instances")?;
    lesson.say(&format!(
        "A type and a direction name an instance. This table has the forward ones, and what the contract \
         says of each type: both passes, both directions, sequences up to {MAX_LEN}. What is not shipped is \
         compiled on demand, by NVRTC.",
    ));
    let mut reports = vec![
        contract_of::<f32>(device)?,
        contract_of::<f64>(device)?,
        contract_of::<Complex<f32>>(device)?,
        contract_of::<Complex<f64>>(device)?,
    ]
    .into_iter();
    let mut table = Table::new(["element", "bytes", "instance", "PTX", "cases", "error / bound"]);
    let (mut worst, mut failures) = (0.0_f64, 0);
    for element in [
        ElementType::F32,
        ElementType::F64,
        ElementType::ComplexF32,
        ElementType::ComplexF64,
        ElementType::Bf16,
        ElementType::F16,
    ] {
        let shipped = CHOICE.program(element).shipped().is_some();
        let report = if shipped { reports.next() } else { None };
        let (cases, error) = match &report {
            Some(report) => (report.cases.to_string(), format!("{:.2}", report.worst)),
            None => (String::from("–"), String::from("–")),
        };
        if let Some(report) = &report {
            worst = worst.max(report.worst);
            failures += report.failures.len();
        }
        table.row([
            element.to_string(),
            element.bytes().to_string(),
            CHOICE.entry(element, Pass::Forward, Direction::Forward),
            String::from(if shipped { "shipped" } else { "on demand" }),
            cases,
            error,
        ]);
    }
    lesson.table("instances.csv", Kind::Computed, &table)?;
    lesson.check("the contract, largest error / bound", worst, 1.0);
    lesson.check("the contract, cases that failed", failures as f64, 0.0);
    Ok(())
}

fn contract_of<T: Element + Storage<Accum = T>>(
    device: &Device,
) -> lesson::Result<contract::Report> {
    let engine = KernelEngine::<T>::new(device, CHOICE)?;
    let domain = Domain { max_len: MAX_LEN, ..engine.domain() };
    Ok(contract::run::<T>(&engine, &domain))
}
