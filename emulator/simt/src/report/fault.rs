//! Faults: errors of an instruction, before their place is added.

use super::finding::{Report, ReportKind};
use crate::isa::Kernel;

/// A finding without its place; `lanes` 0 means all lanes that execute the instruction.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ReportKind,
    pub(crate) lanes: u32,
    pub(crate) message: String,
}

/// The result of an instruction, with a boxed fault because nearly all results have none.
pub(crate) type Result<T> = std::result::Result<T, Box<Fault>>;

/// Returns a fault of the given lanes as an error.
pub(crate) fn fault<T>(kind: ReportKind, lanes: u32, message: String) -> Result<T> {
    Err(Fault::new(kind, lanes, message))
}

impl Fault {
    pub(crate) fn new(kind: ReportKind, lanes: u32, message: String) -> Box<Fault> {
        Box::new(Fault { kind, lanes, message })
    }

    /// Returns the report of a fault that occurs before a block begins, without an instruction.
    pub(crate) fn before(self, kernel: &Kernel, block: [u32; 3]) -> Report {
        Report { kind: self.kind, block, ..Report::launch(kernel, self.message) }
    }

    /// Returns the report with the place of the instruction.
    pub(crate) fn at(self, kernel: &Kernel, block: [u32; 3], warp: u32, pc: u32) -> Box<Report> {
        Box::new(Report {
            kind: self.kind,
            kernel: kernel.name().to_string(),
            block,
            warp,
            lanes: self.lanes,
            line: kernel.places[pc as usize].line,
            source: kernel.source_of(pc as usize),
            message: self.message,
        })
    }
}

/// Returns the fault of a counter that exceeds 32 bits.
#[cold]
pub(crate) fn uncounted<T>(what: &str, lanes: u32) -> Result<T> {
    let message = format!("passes more than {} {what}, as many as the emulator counts", u32::MAX);
    fault(ReportKind::Instructions, lanes, message)
}
