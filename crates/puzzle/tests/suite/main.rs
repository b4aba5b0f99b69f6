//! Every puzzle: its solution reaches the goal, what stands there at first does not, and each wrong
//! answer fails with its sentence.

mod answers;
mod descriptions;
mod explanations;
