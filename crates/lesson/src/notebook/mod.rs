//! Displays values in a Jupyter notebook that runs on evcxr.
//!
//! evcxr displays the last expression of a cell with its method `evcxr_display`, or else its
//! `Debug` form. [`Show`] adds that method to arrays, results, reports, counters, tables and
//! figures. A notebook begins with
//!
//! ```text
//! :dep linrec = { path = "..", features = ["notebook"] }
//! use lesson::notebook::prelude::*;
//! let machine = begin();
//! ```
//!
//! Every value has two displayed forms: plain text, which tests compare and a terminal can print,
//! and HTML or a picture.
//!
//! ```
//! use lesson::notebook::prelude::*;
//!
//! let decay = array![1.0, 0.5, 0.25];
//! assert_eq!(decay.content().plain, "f64 [3]: 1, 0.5, 0.25");
//! assert!(decay.content().rich.is_some_and(|rich| rich.text.contains("<svg")));
//! ```

mod array;
mod content;
mod exercise;
mod figure;
mod kernel;
mod lanes;
mod machine;
mod number;
mod report;
mod results;
mod sparkline;

pub use content::{Content, Rich, Show};
pub use exercise::exercise;
pub use figure::{Figure, figure};
pub use kernel::kernel;
pub use lanes::lanes;
pub use machine::{Machine, begin};

/// The names that a notebook imports.
pub mod prelude {
    pub use super::{Show, begin, exercise, figure, lanes};
    pub use crate::Table;
    pub use crate::plot::{self, Chart, HeatMap};
    pub use linrec::simt::Trace;
    pub use linrec::{Direction, Element, Engine, Gradients, Options, Outputs};
    pub use ndarray::{self, Array1, Array2, Axis, array, s};
    pub use plotters;
}

/// The library's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
