//! How long a scan takes at least, by what it asks of a GPU.

/// What a GPU can do at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpu {
    /// Multiprocessors.
    pub sms: f64,
    /// Their clock, in GHz.
    pub clock_ghz: f64,
    /// What its memory moves, in bytes per ns, which are GB/s.
    pub gb_per_s: f64,
}

impl Gpu {
    /// By the data sheet of an H200.
    pub const H200: Gpu = Gpu { sms: 132.0, clock_ghz: 1.98, gb_per_s: 4800.0 };
}

/// What a kernel does for each output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Bytes that are moved.
    pub bytes: f64,
    /// Powers of two and reciprocals.
    pub special: f64,
    /// Instructions, those among them.
    pub instructions: f64,
}

/// The least times in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofs {
    /// To move the bytes.
    pub memory: f64,
    /// To compute powers and reciprocals.
    pub special: f64,
    /// To issue all instructions.
    pub issue: f64,
}

/// What an SM does in a clock: 16 powers of two; and an instruction of a warp for each of four
/// schedulers.
const SPECIAL: f64 = 16.0;
const LANES: f64 = 4.0 * 32.0;
/// Places of ordinary instructions that a power of two takes.
const PLACES: f64 = 4.0;

// ANCHOR: roofs
/// The least times for so many outputs.
pub fn roofs(gpu: &Gpu, work: &Work, outputs: f64) -> Roofs {
    let clocks_per_ms = 1e6 * gpu.clock_ghz * gpu.sms;
    let places = work.instructions + (PLACES - 1.0) * work.special;
    Roofs {
        memory: outputs * work.bytes / (1e6 * gpu.gb_per_s),
        special: outputs * work.special / (SPECIAL * clocks_per_ms),
        issue: outputs * places / (LANES * clocks_per_ms),
    }
}
// ANCHOR_END: roofs

impl Roofs {
    /// The largest of them, and what it is.
    pub fn binding(&self) -> (&'static str, f64) {
        let all =
            [("memory", self.memory), ("special functions", self.special), ("issue", self.issue)];
        all.into_iter().fold(all[0], |most, other| if other.1 > most.1 { other } else { most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roof_by_hand() {
        // 1000 SMs of 1 GHz are 10^9 SM clocks in a ms.
        let gpu = Gpu { sms: 1000.0, clock_ghz: 1.0, gb_per_s: 1000.0 };
        let work = Work { bytes: 16.0, special: 16.0, instructions: 80.0 };
        let roofs = roofs(&gpu, &work, 1e9);
        assert_eq!(roofs, Roofs { memory: 16.0, special: 1.0, issue: 1.0 });
        assert_eq!(roofs.binding(), ("memory", 16.0));
    }
}
