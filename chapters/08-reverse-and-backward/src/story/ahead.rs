//! How much a warp asks for before it has to wait.

use linrec::Direction;
use linrec::device::{Buffer, Device, Function, Recurrence};
use linrec::kernels::Pass as KernelPass;
use linrec::lesson::{self, Kind, Lesson, Table};
use linrec::simt::{Trace, What};

use crate::record::{Pass, times, traffic, traffic_elements};
use crate::{TILE_LEN, ahead as exercise, pipe, strides};

/// Multiprocessors of the H200 that the record is from: it gives each of them 100 sequences.
fn multiprocessors() -> f64 {
    traffic(Pass::Forward, "roof", "num_seqs").unwrap_or(f64::NAN) / 100.0
}

/// Traces what is asked for, and does the sum that tells how long an answer takes.
pub fn ahead(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ahead", "Asking and waiting")?;
    lesson.say(
        "Up to 8 elements for each of 64 threads. Requests of a warp in the emulator's trace, before the first \
         instruction that needs what they bring, and their bytes. Then, from the H200, warps on a multiprocessor, bytes \
         that are loaded in a nanosecond, and how long a request is under way if each warp always has that many:",
    );
    let header =
        ["memcode", "requests", "bytes", "warps", "bytes / ns", "under way, ns", "speed / roof"];
    let mut table = Table::new(header);
    let runs = times(Pass::Forward, "f32")?;
    for memcode in 0..3 {
        let (requests, bytes) = first_requests(Kernel::Way(memcode))?;
        let engine = format!("pipe:8x64:{memcode}");
        let get = |what| traffic(Pass::Forward, &engine, what).ok_or("the record has a gap");
        let (warps, run) = (get("warps")?, runs.median(&engine, 4096));
        // Two arrays of four bytes.
        let rate = 8.0 * traffic_elements() / get("nanoseconds")? / multiprocessors();
        let under_way = warps * f64::from(bytes) / rate;
        table.row([
            memcode.to_string(),
            requests.to_string(),
            bytes.to_string(),
            format!("{warps:.0}"),
            format!("{rate:.1}"),
            format!("{under_way:.0}"),
            run.map_or(String::from("–"), |run| format!("{:.2}", run.ratio)),
        ]);
        for (key, value) in [("under_way", under_way), ("warps", warps)] {
            lesson.value(&format!("{key}_{memcode}"), format!("{value:.0}"), Kind::Computed);
        }
    }
    lesson.table("ahead.csv", Kind::Computed, &table)?;
    let ms = |engine| runs.median(engine, 4096).map_or(f64::NAN, |run| run.milliseconds);
    let gain = ms("pipe:8x64:1") / ms("pipe:8x64:2");
    lesson.value("gain_2", format!("{gain:.1}"), Kind::Computed);
    let (requests, bytes) = first_requests(Kernel::Ahead)?;
    lesson.say(&format!(
        "The exercise's kernel, which does as memcode 1 but asks first, has {requests} requests of {bytes} bytes under way.",
    ));
    lesson.value("ahead_requests", requests, Kind::Computed);
    lesson.value("ahead_bytes", bytes, Kind::Computed);
    Ok(())
}

enum Kernel {
    /// The shipped one with this memcode.
    Way(u32),
    /// The exercise's.
    Ahead,
}

/// Requests of a warp to global memory before the first instruction that needs what they bring, which puts it into
/// shared memory or hands it to another lane; and their bytes.
fn first_requests(kernel: Kernel) -> lesson::Result<(usize, u32)> {
    let device = Device::simt();
    let ones = device.upload(&vec![1.0_f32; TILE_LEN])?;
    let mut outputs = device.allocate::<f32>(TILE_LEN)?;
    let mut trace = Trace::new(1 << 14);
    let mut run = |function: &Function, shared: u32| -> lesson::Result {
        let launch = function.launch(1, 64).shared(shared);
        let launch = launch.arg(&ones).arg(&ones).arg(&mut outputs);
        let launch = launch.arg(None::<&Buffer<f32>>).arg(None::<&Buffer<f32>>);
        let launch = launch.arg(1_i64).arg(TILE_LEN as i64).arg(0_i32);
        launch.traced(&mut trace).run(&device.stream())?;
        Ok(())
    };
    match kernel {
        Kernel::Way(memcode) => {
            let recurrence = Recurrence::<f32>::new(&device, pipe(memcode))?;
            let function = recurrence.function(KernelPass::Forward, Direction::Forward)?;
            let element = linrec::kernels::ElementType::F32;
            run(function, pipe(memcode).geometry(element, 1, TILE_LEN as u64).shared_bytes)?;
        }
        Kernel::Ahead => {
            let size = strides::SIZES[1];
            let function = exercise::module(&device)?.function(&exercise::entry(size, 0))?;
            run(&function, exercise::shared_bytes(size, 0))?;
        }
    }
    let (mut requests, mut bytes) = (0, 0);
    for event in trace.events.iter().filter(|event| event.warp == 0) {
        match &event.what {
            What::Load(load) if !load.shared => {
                requests += 1;
                bytes += load.bytes * load.values.len() as u32 * event.lanes.count_ones();
            }
            _ => break,
        }
    }
    Ok((requests, bytes))
}
