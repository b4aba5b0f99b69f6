//! Rounds of measurement: every engine once, in turn, on the same problem.

use std::time::Instant;

use linrec::cpu::{Cpu, roof};
use linrec::{Options, lesson};
use ndarray::{ArrayView2, ArrayViewMut2};

use super::buffers::{Buffers, Direction, Problem};
use super::plain;

/// The engines, in the order in which a round runs them.
pub const ENGINES: [&str; 3] = ["roof", "loop", "cpu"];

/// The seconds that each engine took.
pub type Round = [f64; ENGINES.len()];

/// A sample shorter than this is repeated, and divided by the repetitions.
const SHORTEST_SAMPLE: f64 = 1e-3;
