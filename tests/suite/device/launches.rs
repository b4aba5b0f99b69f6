//! Launches: their results, and the launches that are refused before a device sees them.

use linrec::Error;
use linrec::device::{Buffer, Device, Function};
use linrec::simt::{ReportKind, Trace};
use num_complex::Complex;

use super::programs::{ECHO, SCALE, THROUGH_SHARED};
use super::{assert_error, on_every_device};

fn scale(device: &Device) -> Result<Function, Error> {
    device.module(SCALE)?.function("scale")
}

#[test]
fn every_element_is_reached_and_none_beyond() {
    on_every_device(|device| {
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let buffer = device.upload(&values)?;
        let mut part = buffer.slice(1..999)?;
        let function = scale(device)?;
        let launch = function.launch(8, 128).arg(&mut part).arg(0.5_f32).arg(998_u32);
        let launched = launch.run(&device.stream())?;
        let scaled = buffer.download()?;
        for (i, (was, is)) in values.iter().zip(scaled).enumerate() {
            let factor = if (1..999).contains(&i) { 0.5 } else { 1.0 };
            assert_eq!(is, was * factor, "at {i}");
        }
        assert_eq!(launched.counters().is_some(), device.is_simt());
        if let Some(counters) = launched.counters() {
            assert_eq!(counters.blocks, 8);
        }
        Ok(())
    });
}

#[test]
fn every_kind_of_argument_arrives() {
    on_every_device(|device| {
        let echo = device.module(ECHO)?.function("echo")?;
        let mut out: Buffer<u8> = device.allocate(32)?;
        let mut maybe: Buffer<u64> = device.upload(&[0])?;
        for given in [false, true] {
            out.zero()?;
            echo.launch(1, 1)
                .arg(&mut out)
                .arg(true)
                .arg(-2_i16)
                .arg(0.1_f32)
                .arg(0.2)
                .arg(Complex::new(3.0, 4.0))
                .arg(given.then_some(&mut maybe))
                .run(&device.stream())?;
            let mut expected = vec![1, 0];
            expected.extend((-2_i16).to_le_bytes());
            expected.extend(0.1_f32.to_le_bytes());
            for double in [0.2_f64, 3.0, 4.0] {
                expected.extend(double.to_le_bytes());
            }
            assert_eq!(out.download()?, expected);
            assert_eq!(maybe.download()?, [u64::from(given)]);
        }
        Ok(())
    });
}

#[test]
fn shared_memory_beyond_48_kib_is_asked_for() {
    on_every_device(|device| {
        let function = device.module(THROUGH_SHARED)?.function("through_shared")?;
        for bytes in [4, 48 << 10, 64 << 10, 56 << 10, device.attributes().shared_bytes_opt_in] {
            let mut found: Buffer<u32> = device.allocate(3)?;
            found.poison()?;
            let launch = function.launch(3, 1).shared(bytes);
            launch.arg(&mut found).arg(bytes).run(&device.stream())?;
            assert_eq!(found.download()?, [0, 1, 2], "through {bytes} bytes");
        }
        Ok(())
    });
}

#[test]
fn arguments_are_checked() {
    on_every_device(|device| {
        let function = scale(device)?;
        let (stream, mut values) = (device.stream(), device.upload(&[1.0_f32; 4])?);
        let launching = "launching `scale`: ";
        let few = function.launch(1, 4).arg(&mut values).arg(1.0_f32).run(&stream);
        assert_error(
            few,
            &[device.label(), launching, "2 arguments were given, and the kernel takes 3"],
        );
        let wide = function.launch(1, 4).arg(&mut values).arg(1.0_f64).arg(4_u32).run(&stream);
        assert_error(
            wide,
            &[launching, "argument 2 is a number of 8 bytes, and the kernel takes 4 there"],
        );
        let swapped = function.launch(1, 4).arg(&values).arg(&values).arg(4_u32);
        assert_error(swapped.run(&stream), &["argument 2 is a buffer of 8 bytes"]);
        for other in linrec::device::under_test() {
            if other != *device {
                let mut values = other.upload(&[1.0_f32])?;
                let launch = function.launch(1, 1).arg(&mut values).arg(1.0_f32).arg(1_u32);
                let there = format!("argument 1 is on {}; keep all on one device", other.label());
                assert_error(launch.run(&stream), &[launching, &there]);
                assert_error(function.launch(1, 1).run(&other.stream()), &["the stream is on"]);
            }
        }
        assert_eq!(values.download()?, [1.0; 4], "nothing ran");
        Ok(())
    });
}

#[test]
fn extents_are_checked() {
    on_every_device(|device| {
        let (function, stream) = (scale(device)?, device.stream());
        let mut values = device.upload(&[1.0_f32; 4])?;
        let mut refused = |grid: [u32; 3], block: [u32; 3], shared, parts: &[&str]| {
            let launch = function.launch(grid, block).shared(shared).arg(&mut values);
            assert_error(launch.arg(1.0_f32).arg(4_u32).run(&stream), parts);
        };
        refused([0, 1, 1], [1, 1, 1], 0, &["is empty", "launch at least one"]);
        refused([1, 1, 1], [32, 0, 1], 0, &["is empty"]);
        refused(
            [1 << 31, 1, 1],
            [1, 1, 1],
            0,
            &["a grid of [2147483648, 1, 1] blocks is too large"],
        );
        refused([1, 65536, 1], [1, 1, 1], 0, &["is too large"]);
        refused([1, 1, 1], [1025, 1, 1], 0, &["a block of [1025, 1, 1] threads is too large"]);
        refused([1, 1, 1], [64, 17, 1], 0, &["the kernel takes 1024 threads"]);
        refused([1, 1, 1], [1, 1, 65], 0, &["is too large"]);
        refused([1, 1, 1], [u32::MAX, u32::MAX, 2], 0, &["is too large"]);
        refused([1, 1, 1], [1, 1, 1], 1 << 20, &["1048576 bytes of shared memory", "are too many"]);
        refused([1, 1, 1], [1, 1, 1], u32::MAX, &["are too many"]);
        Ok(())
    });
}

#[test]
fn only_the_emulator_takes_blocks_and_traces() {
    on_every_device(|device| {
        let (function, stream) = (scale(device)?, device.stream());
        let mut values = device.upload(&[1.0_f32; 96])?;
        let launch = function.launch(3, 32).arg(&mut values).arg(2.0_f32).arg(96_u32);
        let some = launch.blocks(1..2).run(&stream);
        let mut trace = Trace::new(1000);
        if device.is_simt() {
            assert_eq!(some?.counters().map(|counters| counters.blocks), Some(1));
            let expected = [[1.0; 32], [2.0; 32], [1.0; 32]].concat();
            assert_eq!(values.download()?, expected);
            let launch = function.launch(3, 32).arg(&mut values).arg(2.0_f32).arg(96_u32);
            launch.traced(&mut trace).run(&stream)?;
            assert!(!trace.events.is_empty());
            let launch = function.launch(3, 32).arg(&mut values).arg(2.0_f32).arg(96_u32);
            assert_error(
                launch.blocks(2..4).run(&stream),
                &["blocks 2..4 are not in the grid's 0..3"],
            );
        } else {
            assert_error(some, &["only the emulator runs some blocks of a grid"]);
            let launch = function.launch(3, 32).arg(&mut values).arg(2.0_f32).arg(96_u32);
            assert_error(
                launch.traced(&mut trace).run(&stream),
                &["only the emulator traces a launch"],
            );
            assert_eq!(values.download()?, [1.0; 96]);
        }
        Ok(())
    });
}

/// The report is about the lowest block, however the blocks are dealt to threads.
#[test]
fn the_emulator_reports_the_first_block_that_fails() {
    let device = Device::simt();
    let function = scale(&device).unwrap();
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut short = device.allocate_named::<f32>("too_short", 32 * 700).unwrap();
        short.zero().unwrap();
        let launch = function.launch(1000, 32).arg(&mut short).arg(1.0_f32).arg(32_000_u32);
        match pool.install(|| launch.run(&device.stream())) {
            Err(Error::Kernel(report)) => {
                assert_eq!((report.kind, report.block), (ReportKind::OutOfBounds, [700, 0, 0]));
                assert!(report.to_string().contains("too_short"), "{report}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_emulator_counts_the_same_on_any_number_of_threads() {
    let device = Device::simt();
    let function = scale(&device).unwrap();
    let count = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut values = device.upload(&[1.0_f32; 10_000]).unwrap();
        let launch = function.launch(100, 128).arg(&mut values).arg(3.0_f32).arg(10_000_u32);
        let launched = pool.install(|| launch.run(&device.stream())).unwrap();
        assert_eq!(values.download().unwrap(), [3.0; 10_000]);
        launched.counters().cloned()
    };
    assert_eq!(count(1), count(3));
}

#[test]
fn the_emulator_reports_a_read_before_a_write() {
    let device = Device::simt();
    let mut values = device.allocate::<f32>(4).unwrap();
    let function = scale(&device).unwrap();
    let launch = function.launch(1, 4).arg(&mut values).arg(1.0_f32).arg(4_u32);
    match launch.run(&device.stream()) {
        Err(Error::Kernel(report)) => assert_eq!(report.kind, ReportKind::Uninitialized),
        other => panic!("{other:?}"),
    }
}
