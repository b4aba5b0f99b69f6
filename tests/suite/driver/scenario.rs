//! A process's steps with the fake driver: every step runs, whatever happened in the steps before.
//!
//! A test of `driver` names a scenario in an environment variable; this module plays it in the new
//! process and prints one line for each step, with its result or its error. The test then compares
//! the lines. Nothing here panics on an error, so that a failing driver is tried to the end. The
//! head of `driver` describes the failures.

use std::ffi::c_void;
use std::fmt::Display;
use std::ptr;

use linrec::Error;
use linrec::device::{Buffer, Device, Function, Stream, driver};

use crate::device::programs::SCALE;

/// Two kernels, only one of which the driver finds.
const NOT_COMPILED: &str = ".version 8.0 .target sm_80 .address_size 64 .visible .entry other() { ret; } \
                            .visible .entry not_compiled() { ret; }";
/// More than an allocator caches: freed memory of this size goes back to the system at once.
const LARGE: usize = 64 << 20;

pub fn play(name: &str) {
    // The harness has begun a line.
    println!();
    match name {
        "everything" => everything(),
        "open twice" => {
            step("opening", Device::cuda(0));
            step("opening again", Device::cuda(0));
        }
        "launch among secrets" => among_secrets(),
        "leave a buffer" => leave_a_buffer(),
        "a late download" => late_download(),
        "a late upload" => late_upload(),
        "many chunks" => many_chunks(),
        "cooperative" => cooperative(),
        "lent" => lent(),
        _ => panic!("there is no scenario {name}"),
    }
    println!("step end");
}

fn step<T>(name: &str, result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => {
            println!("step {name}: ok");
            Some(value)
        }
        Err(error) => {
            println!("step {name}: error: {}", error.to_string().replace('\n', " "));
            None
        }
    }
}

fn value(name: &str, value: impl Display) {
    println!("step {name}: {value}");
}

fn everything() {
    step("driver", driver());
    if let Some(device) = step("opening", Device::cuda(0)) {
        value("name", device.name());
        use_all(&device);
    }
    step("opening again", Device::cuda(0));
}

fn use_all(device: &Device) {
    step("free memory", device.memory());
    let home = device.stream();
    let mut values = step("upload", device.upload(&[1.0_f32, 2.0, 3.0]));
    let function = step("module", device.module(SCALE).and_then(|module| module.function("scale")));
    if let Some(function) = &function {
        step("occupancy", function.occupancy(128, 64 << 10));
        step("resident blocks", function.resident_blocks(128, 64 << 10));
    }
    let scale = |stream: &Stream, values: &mut Option<Buffer<f32>>| {
        let (Some(function), Some(values)) = (&function, values) else { return };
        step("launch", double(function, stream, values));
    };
    scale(&home, &mut values);
    read(&values);
    if let (Some(function), Some(values)) = (&function, &mut values) {
        step("cooperative launch", halve_together(function, &home, values));
        step("launch", double(function, &home, values));
    }

    let events = (step("event", device.event()), step("event", device.event()));
    if let (Some(start), Some(end)) = &events {
        step("record start", start.record(&home));
        scale(&home, &mut values);
        step("record end", end.record(&home));
        step("elapsed", start.elapsed_ms(end));
    }
    if let Some(other) = step("stream", device.new_stream()) {
        if let (Some(start), _) = &events {
            step("wait for event", other.wait(start));
        }
        scale(&other, &mut values);
        step("wait for stream", other.synchronize());
        read(&values);
        scale(&other, &mut values);
        if let (Some(function), Some(values)) = (&function, &mut values) {
            let graph = device.record(|stream| {
                double(function, stream, values)?;
                halve_together(function, stream, values)?;
                double(function, stream, values)?;
                double(function, stream, values)
            });
            if let Some(graph) = step("graph", graph) {
                step("replay", graph.replay(&other));
                step("replay", graph.replay(&home));
            }
        }
        read(&values);
        // Dropped while in use on another stream.
        let mut dropped = step("allocate", device.allocate::<f32>(100));
        scale(&other, &mut dropped);
    }
    if let Some(values) = &mut values {
        step("zero", values.zero());
        step("poison", values.poison());
    }
    step("PTX that is refused", device.module(".version 8.0\n.nothing"));
    step("a kernel that is not there", device.module(NOT_COMPILED));
    step("synchronize", device.synchronize());
    step("too much", device.allocate::<f32>(1 << 40));
}

/// Uses memory and a stream of another library, which here come from the driver itself.
#[allow(unsafe_code)]
fn lent() {
    type Allocate = unsafe extern "C" fn(*mut u64, usize) -> i32;
    type Free = unsafe extern "C" fn(u64) -> i32;
    type Create = unsafe extern "C" fn(*mut *mut c_void, u32) -> i32;
    type Destroy = unsafe extern "C" fn(*mut c_void) -> i32;

    let Some(device) = step("opening", Device::cuda(0)) else { return };
    // SAFETY: (1) the fake driver does nothing when it is loaded; (2) its functions have CUDA's
    // types, and it stays open until they have been called; (3) both results may be written.
    let (library, address, handle) = unsafe {
        let library = libloading::Library::new("libcuda.so.1").unwrap();
        let (mut address, mut handle) = (0, ptr::null_mut());
        assert_eq!(library.get::<Allocate>("cuMemAlloc_v2").unwrap()(&mut address, 12), 0);
        assert_eq!(library.get::<Create>("cuStreamCreate").unwrap()(&mut handle, 1), 0);
        (library, address, handle)
    };
    {
        // The library has a stream too, so that it keeps the order of work across streams.
        let _own = step("stream", device.new_stream());
        // SAFETY: (1) the stream exists until the end; (2) everything used on it is dropped before.
        let Some(stream) = step("lent stream", unsafe { device.lent_stream(handle) }) else {
            return;
        };
        // SAFETY: (1) three numbers exist until the end; (2) the fake driver does everything at
        // once.
        let mut values = step("lent buffer", unsafe { device.lent_buffer::<f32>(address, 3) });
        if let Some(values) = &mut values {
            step("upload", values.upload(&[1.0, 2.0, 3.0]));
            let function = device.module(SCALE).and_then(|module| module.function("scale"));
            if let Some(function) = step("module", function) {
                step("launch", double(&function, &stream, values));
                step("launch", double(&function, &stream, values));
            }
            value("aligned", values.is_aligned_to(16));
            // SAFETY: as above, without the first number.
            let inner = step("lent part", unsafe { device.lent_buffer::<f32>(address + 4, 2) });
            if let Some(inner) = inner {
                value("part aligned", inner.is_aligned_to(8));
                read(&Some(inner));
            }
        }
        step("wait for stream", stream.synchronize());
        read(&values);
        for (what, address) in [("null", 0), ("odd", address + 2), ("the end", u64::MAX - 3)] {
            // SAFETY: these are refused.
            step(what, unsafe { device.lent_buffer::<f32>(address, 3) });
        }
        // SAFETY: the buffer has no number.
        step("none", unsafe { device.lent_buffer::<f32>(0, 0) });
    }
    // SAFETY: the device no longer uses either of them. If it had released one, the driver would
    // complain.
    unsafe {
        assert_eq!(library.get::<Free>("cuMemFree_v2").unwrap()(address), 0);
        assert_eq!(library.get::<Destroy>("cuStreamDestroy_v2").unwrap()(handle), 0);
    }
}

fn double(function: &Function, stream: &Stream, values: &mut Buffer<f32>) -> Result<(), Error> {
    let len = values.len() as u32;
    function.launch(1, 32).arg(values).arg(2.0_f32).arg(len).run(stream).map(drop)
}

/// Halves the values by the scenarios' kernel, in a cooperative launch.
fn halve_together(
    function: &Function,
    stream: &Stream,
    values: &mut Buffer<f32>,
) -> Result<(), Error> {
    let len = values.len() as u32;
    let launch = function.launch(2, 32).arg(values).arg(0.5_f32).arg(len).cooperative();
    launch.run(stream).map(drop)
}

fn read(values: &Option<Buffer<f32>>) {
    if let Some(values) = values
        && let Some(values) = step("download", values.download())
    {
        value("values", format!("{values:?}"));
    }
}

/// A kernel writes outside of its buffer; then the device is dropped and opened again.
fn leave_a_buffer() {
    let device = Device::cuda(0).unwrap();
    let function = device.module(SCALE).unwrap().function("scale").unwrap();
    let mut values = device.upload(&[1.0_f32; 8]).unwrap();
    // Far outside, so that a GPU would notice it too.
    let launch = function.launch(1 << 22, 256).arg(&mut values).arg(2.0_f32).arg(1_u32 << 30);
    step("launch", launch.run(&device.stream()));
    step("download", values.download());
    step("upload", values.upload(&[2.0; 8]));
    step("allocate", device.allocate::<f32>(8));
    step("synchronize", device.synchronize());
    drop((function, values, device));
    step("opening again", Device::cuda(0));
    step("and again", Device::cuda(0));
    value("devices", Device::all().len());
}

/// A launch while the heap is full of data that the kernel must not see.
fn among_secrets() {
    let device = Device::cuda(0).unwrap();
    let function = step("module", device.module(SCALE).and_then(|module| module.function("scale")));
    let Some(function) = function else { return };
    let mut values = device.upload(&[1.0_f32, 2.0]).unwrap();
    let planted: Vec<_> = (1..4096).map(|len| vec![0x55_u8; len]).collect();
    for len in (1..4096).step_by(3) {
        drop(vec![0x55_u8; len]);
    }
    let launch = function.launch(1, 32).arg(&mut values).arg(2.0_f32).arg(2_u32);
    step("launch", launch.run(&device.stream()));
    value("scaled", values.download().unwrap() == [2.0, 4.0] && planted.len() == 4095);
}

/// A copy to the host that ends after the wait for it has failed.
fn late_download() {
    let device = Device::cuda(0).unwrap();
    let values = device.upload(&vec![1_u8; LARGE]).unwrap();
    step("download", values.download());
    // If the first target had been freed, one of these would be in its place.
    let others = [vec![7_u8; LARGE], vec![7_u8; LARGE]];
    step("the copy ends", device.memory());
    let untouched = others.iter().all(|other| other.iter().all(|&byte| byte == 7));
    value("untouched", untouched);
}

/// A copy to the device that begins after the wait for it has failed.
fn late_upload() {
    let device = Device::cuda(0).unwrap();
    let mut buffer = device.allocate::<u8>(1 << 20).unwrap();
    let mut values = vec![1_u8; 1 << 20];
    step("upload", buffer.upload(&values));
    // The borrow is over: the values belong to the caller again.
    values.fill(2);
    step("the copy ends", device.memory());
    let copied = buffer.download().unwrap();
    value("copied", copied.iter().all(|&byte| byte == 1));
}

/// Copies longer than the staging memory.
fn many_chunks() {
    let device = Device::cuda(0).unwrap();
    let values: Vec<u32> = (0..(9 << 20) / 4 + 1).collect();
    let buffer = device.upload(&values).unwrap();
    value("equal", buffer.download().unwrap() == values);
}

/// Cooperative launches of the largest number of blocks and of one more, directly and recorded.
fn cooperative() {
    let device = Device::cuda(0).unwrap();
    value("attribute", device.attributes().cooperative);
    let function = device.module(SCALE).unwrap().function("scale").unwrap();
    let Some(most) = step("resident blocks", function.resident_blocks(64, 0)) else { return };
    value("blocks", most);
    let mut values = device.upload(&[1.0_f32, 2.0]).unwrap();
    let launch = |stream: &Stream, blocks: u32, values: &mut Buffer<f32>| {
        let launch = function.launch(blocks, 64).arg(values).arg(2.0_f32).arg(2_u32);
        launch.cooperative().run(stream).map(drop)
    };
    let home = device.stream();
    step("launch", launch(&home, most, &mut values));
    step("too many", launch(&home, most + 1, &mut values));
    let graph = step("graph", device.record(|stream| launch(stream, most, &mut values)));
    step("graph of too many", device.record(|stream| launch(stream, most + 1, &mut values)));
    if let Some(graph) = graph {
        step("replay", graph.replay(&home));
        step("replay", graph.replay(&home));
    }
    read(&Some(values));
}
