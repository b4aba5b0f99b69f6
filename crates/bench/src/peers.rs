//! Speeds that other people's code reached, quoted with their sources.

use linrec::kernels::Pass;
use serde::Deserialize;

use crate::csv::displayed;

/// A speed that somebody else's code reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Peer {
    /// The pass.
    #[serde(rename = "workload", with = "displayed")]
    pub pass: Pass,
    /// The number of sequences.
    pub num_seqs: usize,
    /// The length of each sequence.
    pub seq_len: usize,
    /// The name of the implementation.
    #[serde(rename = "implementation")]
    pub name: String,
    /// The speed in GB/s, with bytes counted as in this project.
    pub gb_per_s: f64,
}
