//! The loads that a warp has in flight, and the time that it waits for them.

use ch08_reverse_and_backward::{TILE_LEN, pipe};
use lesson::{Kind, Lesson, Table};
use linrec::Direction;
use linrec::device::{Buffer, Device, Function, Recurrence};
use linrec::kernels::{Memcode, Pass};
use linrec::simt::{Trace, What};

use crate::ahead as exercise;
use crate::record::{times, traffic, traffic_elements};
use crate::strides;

/// Returns the number of SMs of the recorded H200, which has 100 sequences for each of them.
fn sms() -> f64 {
    traffic(Pass::Forward, "roof", "num_seqs").unwrap_or(f64::NAN) / 100.0
}

/// Traces the requests, and computes how long an answer takes.
pub(super) fn ahead(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("ahead", "Asking and waiting")?;
    lesson.say(
        "Up to 8 elements for each of 64 threads. Requests of a warp in the emulator's trace, before the first \
         instruction that needs what they bring, and their bytes. Then, from the H200, warps on an SM, bytes \
         that are loaded in a nanosecond, and how long a request is in flight if each warp always has that many:",
    );
    let header =
        ["memcode", "requests", "bytes", "warps", "bytes / ns", "in flight, ns", "speed / roof"];
    let mut table = Table::new(header);
    let runs = times(Pass::Forward, "f32")?;
    let kernels = [
        ("0", "pipe:8x64:0", Kernel::Way(Memcode::Direct)),
        ("1", "pipe:8x64:1", Kernel::Way(Memcode::Shared)),
        ("2", "pipe:8x64:2", Kernel::Way(Memcode::SharedVectors)),
    ];
    for (name, engine, kernel) in kernels {
        let (requests, bytes) = first_requests(kernel)?;
        let get = |what| traffic(Pass::Forward, engine, what).ok_or("the record has a gap");
        let run = runs.median(engine, 4096).ok_or("the record has a gap")?;
        let warps = get("warps")?;
        // Two arrays of four bytes.
        let rate = 8.0 * traffic_elements() / get("nanoseconds")? / sms();
        let in_flight = warps * f64::from(bytes) / rate;
        table.row([
            name.to_owned(),
            requests.to_string(),
            bytes.to_string(),
            format!("{warps:.0}"),
            format!("{rate:.1}"),
            format!("{in_flight:.0}"),
            format!("{:.2}", run.ratio),
        ]);
        for (what, value) in [("in_flight", in_flight), ("warps", warps)] {
            lesson.value(&format!("{what}_{name}"), format!("{value:.0}"), Kind::Computed);
        }
    }
    lesson.table("ahead.csv", Kind::Computed, &table)?;
    let ms = |engine| runs.median(engine, 4096).map_or(f64::NAN, |run| run.ms);
    let gain = ms("pipe:8x64:1") / ms("pipe:8x64:2");
    lesson.value("gain_2", format!("{gain:.1}"), Kind::Computed);
    Ok(())
}

/// Shows what remains if a kernel requests everything first: bank conflicts, and their cost.
pub(super) fn first(lesson: &mut Lesson) -> lesson::Result {
    lesson.step("first", "Ask first, wait later")?;
    let (requests, bytes) = first_requests(Kernel::Ahead)?;
    lesson.say(&format!(
        "In the emulator's trace of a full tile, 8 x 64, a warp now has {requests} requests and {bytes} bytes in flight \
         when it needs the first.",
    ));
    lesson.say(
        "The kernels that ask first, on the H200. After every 32 bank words of shared memory, some are left free. Conflicts \
         are for every 32 elements:",
    );
    let header = [
        "kernel",
        "free bank words",
        "conflicts",
        "L1 busy",
        "L2 busy",
        "DRAM busy",
        "speed / roof",
    ];
    let mut table = Table::new(header);
    let runs = times(Pass::Forward, "f32")?;
    for (elems, threads) in exercise::SIZES {
        for free in exercise::FREE {
            let engine = format!("ahead:{elems}x{threads}:{free}");
            let get = |what| traffic(Pass::Forward, &engine, what).ok_or("the record has a gap");
            let conflicts = get("shared_load_conflicts")? + get("shared_store_conflicts")?;
            let run = runs.median(&engine, 4096).ok_or("the record has a gap")?;
            table.row([
                format!("{elems} x {threads}"),
                free.to_string(),
                format!("{:.1}", 32.0 * conflicts / traffic_elements()),
                format!("{:.0} %", get("l1_percent")?),
                format!("{:.0} %", get("l2_percent")?),
                format!("{:.0} %", get("dram_percent")?),
                format!("{:.2}", run.ratio),
            ]);
            lesson.value(
                &format!("ahead_{elems}_{free}"),
                format!("{:.2}", run.ratio),
                Kind::Computed,
            );
            if free == 0 {
                let busy = format!("{:.0} %", get("l1_percent")?);
                lesson.value(&format!("ahead_l1_{elems}"), busy, Kind::Computed);
            }
        }
    }
    lesson.table("first.csv", Kind::Computed, &table)
}

enum Kernel {
    /// The shipped kernel with this memcode.
    Way(Memcode),
    /// The exercise's kernel.
    Ahead,
}

/// Counts the requests of a warp to global memory, and their bytes, before the first instruction
/// that needs the loaded data. That instruction stores it to shared memory or passes it to another
/// lane.
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
            let function = recurrence.function(Pass::Forward, Direction::Forward)?;
            let element = linrec::kernels::ElementType::F32;
            run(
                function,
                pipe(memcode).geometry(element, Pass::Forward, 1, TILE_LEN as u64).shared_bytes,
            )?;
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
