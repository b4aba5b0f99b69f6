//! Reports, counters and traces of a launch, and the bounds of what it may use.

mod bounds;
mod counters;
pub(crate) mod fault;
mod finding;
mod trace;
mod traffic;

pub(crate) use bounds::{Account, Bounds, bytes_of, refill, reserve};
pub(crate) use counters::Tally;
pub use counters::{Counters, Printed, Site};
pub(crate) use fault::{Fault, Result, fault, uncounted};
pub(crate) use finding::{Count, Lanes};
pub use finding::{Report, ReportKind};
pub use trace::{Accessed, Copied, Event, Trace, What};
pub(crate) use traffic::{lanes, sectors_apart, stride};
pub use traffic::{sectors, wavefronts};
