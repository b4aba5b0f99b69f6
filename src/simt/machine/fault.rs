//! What goes wrong in an instruction, before it is known where.

use crate::simt::program::Kernel;
use crate::simt::report::{Report, ReportKind};

/// A finding without its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: ReportKind,
    pub(super) lanes: u32,
    pub(super) message: String,
}

/// Boxed: instructions return it by value, and nearly always none.
pub(super) type Result<T> = std::result::Result<T, Box<Fault>>;

/// A fault of the given lanes.
pub(super) fn fault<T>(kind: ReportKind, lanes: u32, message: String) -> Result<T> {
    Err(Box::new(Fault { kind, lanes, message }))
}

impl Fault {
    /// The report, with everything that says where it was.
    pub(super) fn at(self, kernel: &Kernel, block: [u32; 3], warp: u32, pc: u32) -> Box<Report> {
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
