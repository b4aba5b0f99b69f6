//! The solutions of the exercises.

use linrec::kernels::{KernelChoice, Tuned};

use crate::occupancy::{self, Limits};

/// Returns the largest number of registers per thread with which an SM of these limits holds
/// `warps` warps, in blocks of `threads` threads without shared memory, or `None` if it cannot.
// ANCHOR: most_registers
pub fn most_registers(limits: &Limits, threads: u32, warps: u32) -> Option<u32> {
    (1..=255).rev().find(|&registers| {
        let (blocks, _) = occupancy::blocks(limits, registers, threads, 0);
        blocks * threads.div_ceil(32) >= warps
    })
}
// ANCHOR_END: most_registers

/// Returns the bytes that must be in flight at any time to keep a memory of this bandwidth (in
/// units of 10^9 bytes per second) busy, if a request takes `nanoseconds`: Little's law.
// ANCHOR: little
pub fn bytes_in_flight(gb_per_s: f64, nanoseconds: f64) -> f64 {
    gb_per_s * nanoseconds
}

/// Returns the share of [`bytes_in_flight`] of each lane of a GPU with `warps` warps on each of
/// `sms` SMs.
pub fn bytes_for_each_lane(gb_per_s: f64, nanoseconds: f64, sms: u32, warps: u32) -> f64 {
    bytes_in_flight(gb_per_s, nanoseconds) / f64::from(sms * warps * 32)
}
// ANCHOR_END: little

/// Selects the kernel that loses the least at its worst shape if one kernel must serve all shapes
/// of the rule. Also returns its speed at that shape, as a fraction of the fastest kernel's: 1
/// means no loss.
// ANCHOR: one_for_all
pub fn one_for_all(rule: &[Tuned]) -> Option<(KernelChoice, f64)> {
    let shape = |line: &Tuned| (line.pass.name(), line.num_seqs, line.seq_len);
    let best = |of: &Tuned| {
        let here = rule.iter().filter(|line| shape(line) == shape(of));
        here.map(|line| line.ratio).fold(0.0, f64::max)
    };
    let mut shapes: Vec<_> = rule.iter().map(shape).collect();
    shapes.sort_unstable();
    shapes.dedup();
    let worst = |choice: KernelChoice| -> Option<f64> {
        let mine: Vec<&Tuned> = rule.iter().filter(|line| line.choice == choice).collect();
        // A candidate must have been measured at every shape.
        let everywhere = shapes.iter().all(|&at| mine.iter().any(|line| shape(line) == at));
        let parts = mine.iter().map(|line| line.ratio / best(line));
        everywhere.then(|| parts.fold(1.0, f64::min))
    };
    let kernels = rule.iter().filter_map(|line| Some((line.choice, worst(line.choice)?)));
    kernels.max_by(|a, b| a.1.total_cmp(&b.1))
}
// ANCHOR_END: one_for_all

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_for_half_of_the_warp_slots() {
        let h200 = Limits::H200;
        assert_eq!(most_registers(&h200, 256, 64), Some(32));
        assert_eq!(most_registers(&h200, 256, 32), Some(64));
        assert_eq!(most_registers(&h200, 1024, 32), Some(64));
        assert_eq!(most_registers(&h200, 32, 32), Some(64));
        // Blocks of one warp: an SM has 32 block slots.
        assert_eq!(most_registers(&h200, 32, 33), None);
    }

    #[test]
    fn littles_law_gives_bytes_in_flight() {
        assert_eq!(bytes_in_flight(4000.0, 800.0), 3.2e6);
        let each = bytes_for_each_lane(4000.0, 800.0, 132, 64);
        assert!((11.0..12.0).contains(&each), "{each}");
    }

    #[test]
    fn one_kernel_for_two_lengths() {
        let csv = format!(
            "{}\nf32,forward,10,16,ref:64,1,0.6\nf32,forward,10,16,pipe:8x64:0,1,0.3\n\
             f32,forward,10,4096,ref:64,1,0.1\nf32,forward,10,4096,pipe:8x64:0,1,0.5\n\
             f32,forward,10,4096,pipe:4x128:0,1,0.9\n",
            Tuned::HEADER
        );
        let rule = Tuned::read(&csv).unwrap();
        let (choice, part) = one_for_all(&rule).unwrap();
        assert_eq!((choice.to_string().as_str(), part), ("pipe:8x64:0", 0.5));
        assert!(one_for_all(&[]).is_none());
    }
}
