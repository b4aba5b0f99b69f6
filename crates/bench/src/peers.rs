//! Speeds that other people's code reached: quoted, with their sources.

use linrec::kernels::Pass;
use serde::Deserialize;

use crate::csv::{self, displayed};

/// A speed that somebody else's code reached.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Peer {
    /// Which computation.
    #[serde(rename = "workload", with = "displayed")]
    pub pass: Pass,
    /// How many sequences.
    pub num_seqs: usize,
    /// How long they are.
    pub seq_len: usize,
    /// Whose it is.
    #[serde(rename = "implementation")]
    pub name: String,
    /// Its speed, with the same count of bytes as ours.
    pub gb_per_s: f64,
}

impl Peer {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// A sentence with the line that cannot be read.
    pub fn read(text: &str) -> lesson::Result<Vec<Peer>> {
        csv::read(text)
    }
}
