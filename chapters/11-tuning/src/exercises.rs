//! The solutions of the exercises.

use linrec::kernels::{KernelChoice, Tuned};

use crate::occupancy::{self, Limits};

/// The most registers that a thread may have so that an SM of these limits holds so many warps, in
/// blocks of `threads` threads without shared memory; `None` if it cannot.
// ANCHOR: most_registers
pub fn most_registers(limits: &Limits, threads: u32, warps: u32) -> Option<u32> {
    (1..=255).rev().find(|&registers| {
        let (blocks, _) = occupancy::blocks(limits, registers, threads, 0);
        blocks * threads.div_ceil(32) >= warps
    })
}
// ANCHOR_END: most_registers

/// Bytes that have to be in flight at any time, so that a memory of this bandwidth (in units of
/// 10^9 bytes per second) is kept busy, if each of them takes `nanoseconds` to arrive: Little's
/// law.
// ANCHOR: little
pub fn bytes_in_flight(gb_per_s: f64, nanoseconds: f64) -> f64 {
    gb_per_s * nanoseconds
}

/// The part of [`bytes_in_flight`] that falls to each lane of a GPU with `warps` warps on each of
/// its `sms`: the bytes that a lane has to have in flight so that the memory is kept busy.
pub fn bytes_for_each_lane(gb_per_s: f64, nanoseconds: f64, sms: u32, warps: u32) -> f64 {
    bytes_in_flight(gb_per_s, nanoseconds) / f64::from(sms * warps * 32)
}
// ANCHOR_END: little

/// The one kernel that gives away the least, at the shape where it gives away most, if it has to
/// serve all the shapes of the rule; and how much that is: 1 means nothing.
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
        // It has to have been measured everywhere.
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
    fn registers_for_half_of_the_places() {
        let h200 = Limits::H200;
        assert_eq!(most_registers(&h200, 256, 64), Some(32));
        assert_eq!(most_registers(&h200, 256, 32), Some(64));
        assert_eq!(most_registers(&h200, 1024, 32), Some(64));
        assert_eq!(most_registers(&h200, 32, 32), Some(64));
        // Blocks of one warp: there are 32 places.
        assert_eq!(most_registers(&h200, 32, 33), None);
    }

    #[test]
    fn little() {
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
