//! The time it takes, where there is a clock that means something.

use linrec::device::{Device, ForwardOptions, Function, Recurrence};
use linrec::lesson::{self, Kind, Lesson, Table};

use crate::by_hand::{CHOICE, shipped};

/// Measurements of each length; their median counts.
const RUNS: usize = 9;

/// Measures the kernel beside the roof on a GPU.
pub fn clock(lesson: &mut Lesson, device: &Device) -> lesson::Result {
    lesson.step("clock", "How long it takes")?;
    if device.is_simt() {
        lesson.say(
            "An emulator cannot tell. It knows how many instructions, requests and sectors there are, but not \
             how many of them a GPU has under way at the same time, nor what its caches still hold.",
        );
        return Ok(());
    }
    let roof = shipped(device, "elementwise")?.function("elementwise_fwd<float4>")?;
    let recurrence = Recurrence::<f32>::new(device, CHOICE)?;
    let num_seqs = 100 * device.attributes().multiprocessors as usize;
    lesson.say(&format!(
        "{num_seqs} sequences forward, medians of {RUNS} runs, beside an addition of two arrays. GB/s counts \
         12 bytes per element.",
    ));
    let header = ["length", "kernel, ms", "kernel, GB/s", "roof, GB/s", "kernel / roof"];
    let mut table = Table::new(header);
    for seq_len in [1024, 4096] {
        let elements = num_seqs * seq_len;
        let (inputs, coeffs) = (filled(device, elements, 1.0)?, filled(device, elements, 0.5)?);
        let mut outputs = device.allocate::<f32>(elements)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ours.push(milliseconds(device, || {
                let shape = (num_seqs, seq_len);
                recurrence.forward_into(
                    &inputs,
                    &coeffs,
                    &mut outputs,
                    shape,
                    ForwardOptions::default(),
                )?;
                Ok(())
            })?);
            theirs.push(milliseconds(device, || add(&roof, &inputs, &coeffs, &mut outputs))?);
        }
        let [ours, theirs] = [ours, theirs].map(median);
        let speed = |milliseconds: f64| 12.0 * elements as f64 / milliseconds / 1e6;
        table.row([
            seq_len.to_string(),
            format!("{ours:.3}"),
            format!("{:.0}", speed(ours)),
            format!("{:.0}", speed(theirs)),
            format!("{:.2}", theirs / ours),
        ]);
    }
    lesson.table("clock.csv", Kind::Timed, &table)
}

type Floats = linrec::device::Buffer<f32>;

fn filled(device: &Device, len: usize, value: f32) -> Result<Floats, linrec::Error> {
    device.upload(&vec![value; len])
}

/// The roof: reads two arrays and writes one, four floats a thread.
fn add(roof: &Function, a: &Floats, b: &Floats, sum: &mut Floats) -> Result<(), linrec::Error> {
    let packs = a.len() / 4;
    let launch = roof.launch(packs.div_ceil(256) as u32, 256).arg(a).arg(b).arg(sum);
    launch.arg(packs as i64).run(&roof.device().stream())?;
    Ok(())
}

/// The time on the device between before and after.
fn milliseconds(
    device: &Device,
    work: impl FnOnce() -> Result<(), linrec::Error>,
) -> Result<f64, linrec::Error> {
    let (start, end) = (device.event()?, device.event()?);
    let stream = device.stream();
    start.record(&stream)?;
    work()?;
    end.record(&stream)?;
    start.elapsed_ms(&end)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
