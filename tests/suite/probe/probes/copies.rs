//! The kernels that copy and add: their results must be exact.

use linrec::Error;
use linrec::device::{Buffer, Device, Function, Launched};

use super::Ran;
use super::numbers::floats;

/// The number of threads in a block: the grid has several blocks, and the last is not full.
const THREADS: u32 = 128;
/// The number of elements to copy or add, in the units of a thread.
const LEN: usize = 1000;
/// The value of an element that is not written.
const UNWRITTEN: f32 = -1.0;

fn blocks(threads: usize) -> u32 {
    (threads as u32).div_ceil(THREADS)
}

/// `sum = a + b`, in packs of some floats.
pub fn elementwise_forward(kernel: &Function, floats_per_pack: usize) -> Result<Ran, Error> {
    let device = kernel.device();
    let len = LEN * floats_per_pack;
    let [a, b] = [1, 2].map(|seed| floats(seed, len));
    let mut sum = unwritten(device, "sum", len)?;
    let launched = kernel
        .launch(blocks(LEN), THREADS)
        .arg(&array(device, "a", &a)?)
        .arg(&array(device, "b", &b)?)
        .arg(&mut sum)
        .arg(LEN as i64)
        .run(&device.stream())?;
    device.synchronize()?;
    let verdict = judge("sum", &sum.download()?, |i| a[i] + b[i]);
    Ok(ran(&launched, verdict))
}

/// `sum_ab = a + b` and `sum_bc = b + c`.
pub fn elementwise_backward(kernel: &Function, floats_per_pack: usize) -> Result<Ran, Error> {
    let device = kernel.device();
    let len = LEN * floats_per_pack;
    let [a, b, c] = [1, 2, 3].map(|seed| floats(seed, len));
    let mut sum_ab = unwritten(device, "sum_ab", len)?;
    let mut sum_bc = unwritten(device, "sum_bc", len)?;
    let launched = kernel
        .launch(blocks(LEN), THREADS)
        .arg(&array(device, "a", &a)?)
        .arg(&array(device, "b", &b)?)
        .arg(&array(device, "c", &c)?)
        .arg(&mut sum_ab)
        .arg(&mut sum_bc)
        .arg(LEN as i64)
        .run(&device.stream())?;
    device.synchronize()?;
    let (sum_ab, sum_bc) = (sum_ab.download()?, sum_bc.download()?);
    let verdict = judge("sum_ab", &sum_ab, |i| a[i] + b[i])
        .and_then(|()| judge("sum_bc", &sum_bc, |i| b[i] + c[i]));
    Ok(ran(&launched, verdict))
}

/// Neighbouring threads copy neighbouring packs.
pub fn coalesced(kernel: &Function, floats_per_pack: usize) -> Result<Ran, Error> {
    let launch = |from: &Buffer<f32>, to: &mut Buffer<f32>| {
        let launch = kernel.launch(blocks(LEN), THREADS).arg(from).arg(to).arg(LEN as i64);
        launch.run(&kernel.device().stream())
    };
    copy(kernel, LEN * floats_per_pack, launch, |from, i| from[i])
}

/// Neighbouring threads copy neighbouring floats, starting from float number 3.
pub fn shifted(kernel: &Function) -> Result<Ran, Error> {
    const SHIFT: usize = 3;
    let launch = |from: &Buffer<f32>, to: &mut Buffer<f32>| {
        let launch = kernel.launch(blocks(LEN), THREADS).arg(from).arg(to);
        launch.arg(LEN as i64).arg(SHIFT as i32).run(&kernel.device().stream())
    };
    copy(kernel, LEN + SHIFT, launch, |from, i| if i < SHIFT { UNWRITTEN } else { from[i] })
}

/// Copies every third element, so that lanes share sectors unevenly.
pub fn strided(kernel: &Function) -> Result<Ran, Error> {
    const STRIDE: usize = 3;
    let launch = |from: &Buffer<f32>, to: &mut Buffer<f32>| {
        let blocks = blocks(LEN.div_ceil(STRIDE));
        let launch = kernel.launch(blocks, THREADS).arg(from).arg(to);
        launch.arg(LEN as i64).arg(STRIDE as i32).run(&kernel.device().stream())
    };
    copy(kernel, LEN, launch, |from, i| if i % STRIDE == 0 { from[i] } else { UNWRITTEN })
}

/// One thread per row.
pub fn rows(kernel: &Function) -> Result<Ran, Error> {
    const ROW_LEN: usize = 21;
    let launch = |from: &Buffer<f32>, to: &mut Buffer<f32>| {
        let launch = kernel.launch(blocks(LEN), THREADS).arg(from).arg(to);
        launch.arg(LEN as i64).arg(ROW_LEN as i64).run(&kernel.device().stream())
    };
    copy(kernel, LEN * ROW_LEN, launch, |from, i| from[i])
}

/// Copies the first element everywhere.
pub fn broadcast(kernel: &Function) -> Result<Ran, Error> {
    let launch = |from: &Buffer<f32>, to: &mut Buffer<f32>| {
        let launch = kernel.launch(blocks(LEN), THREADS).arg(from).arg(to).arg(LEN as i64);
        launch.run(&kernel.device().stream())
    };
    copy(kernel, LEN, launch, |from, _| from[0])
}

fn copy(
    kernel: &Function,
    len: usize,
    launch: impl FnOnce(&Buffer<f32>, &mut Buffer<f32>) -> Result<Launched, Error>,
    expected: impl Fn(&[f32], usize) -> f32,
) -> Result<Ran, Error> {
    let device = kernel.device();
    let from = floats(1, len);
    let mut to = unwritten(device, "to", len)?;
    let launched = launch(&array(device, "from", &from)?, &mut to)?;
    device.synchronize()?;
    let verdict = judge("to", &to.download()?, |i| expected(&from, i));
    Ok(ran(&launched, verdict))
}

fn ran(launched: &Launched, verdict: Result<(), String>) -> Ran {
    Ran { counters: launched.counters().cloned(), verdict }
}

fn array(device: &Device, name: &str, values: &[f32]) -> Result<Buffer<f32>, Error> {
    let mut buffer = device.allocate_named(name, values.len())?;
    buffer.upload(values)?;
    Ok(buffer)
}

fn unwritten(device: &Device, name: &str, len: usize) -> Result<Buffer<f32>, Error> {
    array(device, name, &vec![UNWRITTEN; len])
}

fn judge(name: &str, got: &[f32], expected: impl Fn(usize) -> f32) -> Result<(), String> {
    let wrong = (0..got.len()).find(|&i| got[i].to_bits() != expected(i).to_bits());
    wrong.map_or(Ok(()), |i| {
        Err(format!("element {i} of {name} is {} instead of {}", got[i], expected(i)))
    })
}
