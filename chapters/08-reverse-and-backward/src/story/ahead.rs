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
    let kernels = [
        ("0", "pipe:8x64:0", first_requests(Kernel::Way(0))?),
        ("1", "pipe:8x64:1", first_requests(Kernel::Way(1))?),
        ("2", "pipe:8x64:2", first_requests(Kernel::Way(2))?),
        ("1, ahead", "ahead:8x64:0", first_requests(Kernel::Ahead)?),
    ];
    for (name, engine, (requests, bytes)) in kernels {
        let get =
            |what| traffic(Pass::Forward, engine, what).ok_or("a kernel is not in the record");
        if get("warps").is_err() {
            continue;
        }
        let warps = get("warps")?;
        // Two arrays of four bytes.
        let rate = 8.0 * traffic_elements() / get("nanoseconds")? / multiprocessors();
        let under_way = warps * f64::from(bytes) / rate;
        let ratio = runs.median(engine, 4096).map_or(f64::NAN, |run| run.ratio);
        table.row([
            name.to_owned(),
            requests.to_string(),
            bytes.to_string(),
            format!("{warps:.0}"),
            format!("{rate:.1}"),
            format!("{under_way:.0}"),
            format!("{ratio:.2}"),
        ]);
        let key = name.replace(", ", "_");
        lesson.value(&format!("under_way_{key}"), format!("{under_way:.0}"), Kind::Computed);
        lesson.value(&format!("ratio_{key}"), format!("{ratio:.2}"), Kind::Computed);
    }
    lesson.table("ahead.csv", Kind::Computed, &table)?;

    lesson.say("Asking ahead, with a word left free after every 32 and without:");
    let mut table =
        Table::new(["kernel", "free words", "conflicts", "L2 busy", "DRAM busy", "speed / roof"]);
    for (elems, threads) in exercise::SIZES {
        for free in exercise::FREE {
            let engine = format!("ahead:{elems}x{threads}:{free}");
            let get = |what| traffic(Pass::Forward, &engine, what).unwrap_or(f64::NAN);
            let conflicts = get("shared_load_conflicts") + get("shared_store_conflicts");
            let ratio = runs.median(&engine, 4096).map_or(f64::NAN, |run| run.ratio);
            table.row([
                format!("{elems} x {threads}"),
                free.to_string(),
                format!("{:.1}", 32.0 * conflicts / traffic_elements()),
                format!("{:.0} %", get("l2_percent")),
                format!("{:.0} %", get("dram_percent")),
                format!("{ratio:.2}"),
            ]);
            let key = format!("ahead_{elems}_{free}");
            lesson.value(&key, format!("{ratio:.2}"), Kind::Computed);
        }
    }
    lesson.table("free.csv", Kind::Computed, &table)
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
