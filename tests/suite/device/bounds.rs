//! The limits of a launch on the emulator: instructions, memory of the host, and time.

use std::time::{Duration, Instant};

use linrec::Error;
use linrec::device::{Buffer, Device, Function};
use linrec::simt::{Report, ReportKind};

use super::{assert_error, on_every_device};

/// A kernel that loops as long as its first value is 0.
const WAIT: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry wait(.param .u64 p) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p1;
    .local .align 4 .b8 l[65536];
    ld.param.u64 %rd1, [p];
    ld.global.u32 %r1, [%rd1];
    st.local.u32 [l], %r1;
    setp.eq.u32 %p1, %r1, 0;
AGAIN:
    @%p1 bra AGAIN;
    ret;
}";

fn wait(device: &Device) -> Result<(Function, Buffer<u32>), Error> {
    Ok((device.module(WAIT)?.function("wait")?, device.upload(&[0])?))
}

fn report<T>(result: Result<T, Error>) -> Report {
    match result.err() {
        Some(Error::Kernel(report)) => *report,
        other => panic!("a report of the emulator, not {other:?}"),
    }
}

#[test]
fn endless_launches_are_stopped() {
    let device = Device::simt();
    let (function, values) = wait(&device).unwrap();
    let stream = device.stream();
    let launch = || function.launch(100, 64).arg(&values);

    let found = report(launch().instructions(1 << 16).run(&stream));
    assert_eq!(found.kind, ReportKind::Instructions);
    assert!(found.message.contains("bound of 65536 instructions"), "{found}");

    let found = report(launch().host_bytes(1 << 20).run(&stream));
    assert_eq!(found.kind, ReportKind::HostBytes);
    assert!(found.message.contains("the launch's bound is 1048576 bytes"), "{found}");

    for time in [Duration::ZERO, Duration::from_millis(30)] {
        let start = Instant::now();
        let found = report(launch().instructions(u64::MAX).deadline(time).run(&stream));
        assert!(start.elapsed() >= time && start.elapsed() < Duration::from_secs(30));
        assert_eq!(found.kind, ReportKind::Cancelled);
        let words = format!("passes its deadline of {time:?}: it is cancelled");
        assert!(found.message.contains(&words), "{found}");
    }
}

#[test]
fn launches_within_their_bounds() {
    let device = Device::simt();
    let (function, mut values) = wait(&device).unwrap();
    values.upload(&[1]).unwrap();
    let launch = || function.launch(100, 64).arg(&values);
    // A block has 4 MiB of local memory: as many run at a time as the memory allows.
    let bounded = launch().host_bytes(10 << 20).deadline(Duration::from_secs(600));
    let counters = bounded.run(&device.stream()).unwrap();
    let counters = counters.counters().unwrap();
    assert_eq!((counters.blocks, counters.sites.len()), (100, 2));
    let exact = launch().instructions(counters.instructions).blocks(0..1);
    exact.run(&device.stream()).unwrap();
}

#[test]
fn replays_keep_the_bounds_of_the_recording() {
    let device = Device::simt();
    let (function, mut values) = wait(&device).unwrap();
    let time = Duration::from_millis(20);
    let graph = device
        .record(|stream| {
            let launch = function.launch(1, 64).arg(&values);
            launch.instructions(u64::MAX).deadline(time).run(stream).map(drop)
        })
        .unwrap();
    for _ in 0..2 {
        assert_eq!(report(graph.replay(&device.stream())).kind, ReportKind::Cancelled);
    }
    values.upload(&[1]).unwrap();
    graph.replay(&device.stream()).unwrap();
}

#[test]
fn only_the_emulator_takes_bounds() {
    on_every_device(|device| {
        if device.is_simt() {
            return Ok(());
        }
        let (function, values) = wait(device)?;
        let launch = || function.launch(1, 64).arg(&values);
        for launch in
            [launch().instructions(1), launch().host_bytes(1), launch().deadline(Duration::ZERO)]
        {
            assert_error(launch.run(&device.stream()), &["only the emulator bounds a launch"]);
        }
        Ok(())
    });
}
