//! The least time of a scan, by the resources of a GPU that it uses.

/// The peak rates of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpu {
    /// The number of multiprocessors.
    pub sms: f64,
    /// The clock of the multiprocessors in GHz.
    pub clock_ghz: f64,
    /// The bandwidth of the memory in GB/s, or bytes per ns.
    pub gb_per_s: f64,
}

impl Gpu {
    /// An H200, by its data sheet.
    pub const H200: Gpu = Gpu { sms: 132.0, clock_ghz: 1.98, gb_per_s: 4800.0 };
}

/// The work of a kernel for each output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// The number of bytes that move.
    pub bytes: f64,
    /// The number of powers of two and reciprocals.
    pub special: f64,
    /// The number of instructions, including powers and reciprocals.
    pub instructions: f64,
}

/// The least times in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roofs {
    /// The time to move the bytes.
    pub memory: f64,
    /// The time to compute powers and reciprocals.
    pub special: f64,
    /// The time to issue all instructions.
    pub issue: f64,
}

/// The rates of an SM per clock: 16 powers of two, and one instruction for each of four warps.
const SPECIAL: f64 = 16.0;
const LANES: f64 = 4.0 * 32.0;
/// The number of ordinary instructions that one power of two displaces.
const PLACES: f64 = 4.0;

// ANCHOR: roofs
/// Returns the least times for `outputs` outputs.
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
    /// Returns the largest time and the name of its resource.
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
    fn a_roof_equals_the_formula_by_hand() {
        // 1000 SMs of 1 GHz have 10^9 SM clocks in a ms.
        let gpu = Gpu { sms: 1000.0, clock_ghz: 1.0, gb_per_s: 1000.0 };
        let work = Work { bytes: 16.0, special: 16.0, instructions: 80.0 };
        let roofs = roofs(&gpu, &work, 1e9);
        assert_eq!(roofs, Roofs { memory: 16.0, special: 1.0, issue: 1.0 });
        assert_eq!(roofs.binding(), ("memory", 16.0));
    }
}
