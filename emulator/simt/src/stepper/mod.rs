//! Steps through a launch, one instruction at a time.

mod moments;
mod state;
mod view;

pub use moments::Stepper;
pub use state::Step;
pub use view::{Cell, Path, Register, Values, Waits, Warp};
