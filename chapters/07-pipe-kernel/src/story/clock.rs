//! The time it takes, where there is a clock that means something.

use ch05_ref_kernel::by_hand::shipped;
use linrec::Error;
use linrec::device::{Bench, Buffer, Device, ForwardOptions, Recurrence};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::PIPE;

/// Measurements of each length; their median counts.
const RUNS: usize = 9;

/// Measures the kernel beside the roof on a GPU.
pub fn clock(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("clock", "On this machine")?;
    if device.is_simt() {
        lesson.say(
            "There is no GPU here, and an emulator cannot tell how long one takes. Where there is one, this step times \
             the kernel beside the roof.",
        );
        return Ok(());
    }
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{} with {num_seqs} sequences in f32, forward, medians of {RUNS} runs. GB/s counts 12 bytes per element.",
        device.name(),
    ));
    let header = ["length", "kernel, ms", "kernel, GB/s", "roof, GB/s", "kernel / roof"];
    let mut table = Table::new(header);
    for seq_len in [64, 1024, 4096] {
        let [ours, theirs] = race(device, (num_seqs, seq_len))?;
        let speed = |ms: f64| 12.0 * (num_seqs * seq_len) as f64 / ms / 1e6;
        table.row([
            seq_len.to_string(),
            format!("{ours:.4}"),
            format!("{:.0}", speed(ours)),
            format!("{:.0}", speed(theirs)),
            format!("{:.2}", theirs / ours),
        ]);
    }
    lesson.table("clock.csv", Kind::Timed, &table)
}

/// Milliseconds of the kernel and of the roof, in turns.
fn race(device: &Device, shape: (usize, usize)) -> Result<[f64; 2], Error> {
    let elements = shape.0 * shape.1;
    let roof = shipped(device, "elementwise")?.function("elementwise_fwd<float4>")?;
    let recurrence = Recurrence::<f32>::new(device, PIPE)?;
    let filled = |value: f32| device.upload(&vec![value; elements]);
    let (x, c) = (filled(1.0)?, filled(0.5)?);
    let mut y: Buffer<f32> = device.allocate(elements)?;
    let mut bench = Bench::new(device)?;
    let (packs, mut times) = (elements / 4, [Vec::new(), Vec::new()]);
    for run in 0..=RUNS {
        let ours = bench.time_ms(|_| {
            recurrence.forward_into(&x, &c, &mut y, shape, ForwardOptions::default()).map(drop)
        })?;
        let theirs = bench.time_ms(|stream| {
            let launch = roof.launch(packs.div_ceil(256) as u32, 256).arg(&x).arg(&c).arg(&mut y);
            launch.arg(packs as i64).run(stream).map(drop)
        })?;
        // The first of each is for what is loaded late.
        if run > 0 {
            times[0].push(ours);
            times[1].push(theirs);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

#[cfg(test)]
mod tests {
    use super::race;
    use linrec::device::under_test;

    #[test]
    fn a_race_has_two_times() {
        for device in under_test() {
            let [ours, theirs] = race(&device, (64, 64)).unwrap();
            assert!(ours >= 0.0 && theirs >= 0.0);
        }
    }
}
