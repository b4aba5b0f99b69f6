//! Chapter 11: Mamba.

pub mod activation;
pub mod block;
pub mod bounds;
pub mod channel;
pub mod competitors;
pub mod dissection;
pub mod exercises;
pub mod golden;
pub mod post;
pub mod rounding;
pub mod task;
pub mod training;

mod arguments;
mod direct;
mod gradients;
mod real;
mod scan;
mod story;

use linrec::lesson::Chapter;

pub use arguments::{Arguments, Sizes};
pub use direct::direct;
pub use gradients::{Gradients, selective_scan_backward};
pub use real::Real;
pub use scan::{Output, selective_scan};

/// This chapter.
pub const CHAPTER: Chapter =
    Chapter { number: 11, slug: "11-mamba", title: "Mamba", run: story::run };
