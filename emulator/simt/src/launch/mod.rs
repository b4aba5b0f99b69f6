//! Checks launches, and runs their blocks.

mod prepared;
mod run;
mod variables;

pub use prepared::Prepared;
pub(crate) use run::{QUANTUM, SHORT_QUANTUM, stuck};
pub use variables::Variable;
