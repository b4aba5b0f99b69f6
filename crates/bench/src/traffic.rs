//! The traffic between the caches and the memory of an H200, as counted by a profiler.

use crate::csv::{Row, Table};

/// The number of sequences of the recorded runs: 100 for each of the GPU's SMs.
pub(crate) const NUM_SEQS: u64 = 13_200;

/// The traffic of one kernel at one length. A value of 1 means that each sector of the arrays moved
/// once.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The engine, named as in [`crate::runs`].
    pub engine: String,
    /// The length of a sequence, in steps.
    pub seq_len: usize,
    /// The number of warps on an SM, on average while it works.
    pub warps: f64,
    /// The percentage of requested sectors that the L1 caches contain.
    pub loads_in_l1: f64,
    /// Sectors read from the L2 cache, and from memory, per sector of both inputs.
    pub read: [f64; 2],
    /// Sectors written to the L2 cache, and to memory, per sector of the outputs.
    pub written: [f64; 2],
    /// The percentage of time that the L1 caches, the inputs of the L2 cache and the memory are
    /// busy.
    pub busy: [f64; 3],
}

/// Reads a table that [`ncu::by_shape`](crate::ncu::by_shape) made.
///
/// # Errors
///
/// Returns an error if a column is missing or a number cannot be read.
pub fn read(csv: &str) -> lesson::Result<Vec<Traffic>> {
    Table::read(csv)?.rows().map(|row| of(&row)).collect()
}

fn of(row: &Row) -> lesson::Result<Traffic> {
    let number = |column| row.number::<f64>(column);
    let seq_len = number("seq_len")?;
    let bytes = 4.0 * NUM_SEQS as f64 * seq_len;
    let (sectors, inputs) = (bytes / 32.0, 2.0);
    Ok(Traffic {
        engine: row.text("engine")?.to_owned(),
        seq_len: seq_len as usize,
        warps: 0.64 * number("resident_warps_percent")?,
        loads_in_l1: number("loads_in_l1_percent")?,
        read: [
            number("l2_sectors_read")? / sectors / inputs,
            number("dram_bytes_read")? / bytes / inputs,
        ],
        written: [number("l2_sectors_written")? / sectors, number("dram_bytes_written")? / bytes],
        busy: [
            number("l1_busy_percent")?,
            number("l2_input_busy_percent")?,
            number("dram_busy_percent")?,
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    const HEADER: &str = "engine,seq_len,resident_warps_percent,loads_in_l1_percent,l2_sectors_read,\
                          l2_sectors_written,dram_bytes_read,dram_bytes_written,l1_busy_percent,\
                          l2_input_busy_percent,dram_busy_percent";

    #[test]
    fn traffic_is_in_multiples_of_the_arrays() {
        // An array of 13,200 sequences of 8 elements has as many sectors as sequences.
        let csv = format!("{HEADER}\npipe:a,8,50,75,26400,39600,844800,211200,1,2,3\n");
        let [row] = &read(&csv).unwrap()[..] else { panic!("one row") };
        assert_eq!((row.engine.as_str(), row.seq_len), ("pipe:a", 8));
        assert_eq!((row.warps, row.loads_in_l1), (32.0, 75.0));
        assert_eq!((row.read, row.written), ([1.0, 1.0], [3.0, 0.5]));
        assert_eq!(row.busy, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn unreadable_records_are_explained() {
        let error = read("engine,seq_len\nroof,8\n").unwrap_err().to_string();
        assert!(error.contains("`resident_warps_percent`"), "{error}");
        let many = format!("{HEADER}\nroof,8,many,1,1,1,1,1,1,1,1\n");
        let error = read(&many).unwrap_err().to_string();
        assert!(error.contains("`many`"), "{error}");
    }
}
