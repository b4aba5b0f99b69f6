//! Tests of the kernels that move 16-byte vectors: their memory requests, arrays at any address,
//! and rows far apart.
//!
//! On the emulator, the counters show that the wide kernel requests every sector once, and how
//! often the rows kernel does. On every device, arrays may begin anywhere, each at another offset,
//! with guards around the results. Rows beyond element 2^31 are computed on the emulator, which
//! stores only what is touched. Kernels whose blocks share rows are in `waves`.

use linrec::contract::Domain;
use linrec::device::{
    BackwardOptions, Buffer, Device, ForwardOptions, Launched, Recurrence, under_test,
};
use linrec::kernels::{ElementType, KernelChoice, Pass, RowsConfig, WideConfig};
use linrec::reference::{self, Rounding};
use linrec::simt::{Access, Counters};
use linrec::{Direction, Error, Options};
use ndarray::{Array2, ArrayView2};

const F32: ElementType = ElementType::F32;

/// Makes numbers such that every row begins differently.
fn numbers(seed: u32, shape: (usize, usize), low: f32, high: f32) -> Array2<f32> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(13) >> 8;
    Array2::from_shape_fn(shape, |(row, l)| {
        let unit = mixed((row * shape.1 + l) as u32) as f32 / (1 << 24) as f32;
        low + (high - low) * unit
    })
}

/// The arrays of both passes, with coefficients near one, and the expected results.
struct Problem {
    shape: (usize, usize),
    options: Options<'static, f32>,
    inputs: Array2<f32>,
    coeffs: Array2<f32>,
    outputs: Array2<f32>,
    d_outputs: Array2<f32>,
}

impl Problem {
    fn new(shape: (usize, usize), direction: Direction) -> Problem {
        let options = Options { direction, ..Options::default() };
        let (inputs, coeffs) = (numbers(1, shape, -1.0, 1.0), numbers(2, shape, 0.98, 1.0));
        let exact = reference::forward(inputs.view(), coeffs.view(), &options).unwrap();
        let outputs = exact.outputs.mapv(|y| y as f32);
        let d_outputs = numbers(3, shape, -1.0, 1.0);
        Problem { shape, options, inputs, coeffs, outputs, d_outputs }
    }

    fn rounding(&self) -> Rounding {
        Rounding { levels: Domain::tree_levels(self.shape.1), exp_ulps: 0.0 }
    }

    fn judge_outputs(&self, got: &[f32]) {
        let (x, c, options) = (self.inputs.view(), self.coeffs.view(), &self.options);
        let exact = reference::forward(x, c, options).unwrap().outputs;
        let bound = reference::forward_bound(x, c, options, self.rounding()).unwrap().outputs;
        judge("outputs", got, exact.view(), bound.view());
    }

    fn judge_gradients(&self, d_inputs: &[f32], d_coeffs: &[f32]) {
        let (c, options) = (self.coeffs.view(), &self.options);
        let (d, y) = (self.d_outputs.view(), self.outputs.view());
        let exact = reference::backward(d, c, y, options).unwrap();
        let bound = reference::backward_bound(d, c, y, options, self.rounding()).unwrap();
        judge("d_inputs", d_inputs, exact.d_inputs.view(), bound.d_inputs.view());
        judge("d_coeffs", d_coeffs, exact.d_coeffs.view(), bound.d_coeffs.view());
    }
}

fn judge(name: &str, got: &[f32], exact: ArrayView2<f64>, bound: ArrayView2<f64>) {
    assert_eq!(got.len(), exact.len());
    for (index, ((got, exact), bound)) in got.iter().zip(exact).zip(bound).enumerate() {
        let error = (f64::from(*got) - exact).abs();
        assert!(error <= *bound, "{name}[{index}] is {got} instead of {exact}");
    }
}

/// Uploads an array `skew` elements after a multiple of 16 bytes, with guards on both sides.
fn placed(device: &Device, values: &[f32], skew: usize) -> Result<[Buffer<f32>; 2], Error> {
    let mut around = vec![GUARD; skew];
    around.extend(values);
    around.extend([GUARD; 5]);
    let around = device.upload(&around)?;
    let inner = around.slice(skew..skew + values.len())?;
    assert_eq!(inner.is_aligned_to(16), skew.is_multiple_of(4));
    Ok([around, inner])
}

const GUARD: f32 = 77.0;

fn results(device: &Device, len: usize, skew: usize) -> Result<[Buffer<f32>; 2], Error> {
    placed(device, &vec![f32::NAN; len], skew)
}

fn fetch([around, inner]: &[Buffer<f32>; 2], skew: usize) -> Result<Vec<f32>, Error> {
    let all = around.download()?;
    let outside = all[..skew].iter().chain(&all[skew + inner.len()..]);
    assert!(outside.copied().all(|element| element == GUARD), "something outside was written");
    inner.download()
}

/// Runs the forward pass over arrays at the offsets `skews`: inputs, coefficients, outputs.
fn forward(
    recurrence: &Recurrence<f32>,
    problem: &Problem,
    skews: [usize; 3],
) -> Result<Launched, Error> {
    let (device, len) = (recurrence.device(), problem.inputs.len());
    let [_, x] = placed(device, problem.inputs.as_slice().unwrap(), skews[0])?;
    let [_, c] = placed(device, problem.coeffs.as_slice().unwrap(), skews[1])?;
    let mut y = results(device, len, skews[2])?;
    let options = ForwardOptions { direction: problem.options.direction, ..Default::default() };
    let launched = recurrence.forward_into(&x, &c, &mut y[1], problem.shape, options)?;
    problem.judge_outputs(&fetch(&y, skews[2])?);
    Ok(launched)
}

/// Runs the backward pass over arrays at the offsets `skews`: gradient of the outputs,
/// coefficients, outputs; gradients of inputs and coefficients.
fn backward(
    recurrence: &Recurrence<f32>,
    problem: &Problem,
    skews: [usize; 5],
) -> Result<Launched, Error> {
    let (device, len) = (recurrence.device(), problem.inputs.len());
    let [_, d] = placed(device, problem.d_outputs.as_slice().unwrap(), skews[0])?;
    let [_, c] = placed(device, problem.coeffs.as_slice().unwrap(), skews[1])?;
    let [_, y] = placed(device, problem.outputs.as_slice().unwrap(), skews[2])?;
    let (mut dx, mut dc) = (results(device, len, skews[3])?, results(device, len, skews[4])?);
    let (shape, direction) = (problem.shape, problem.options.direction);
    let options = BackwardOptions { direction, ..Default::default() };
    let launched = recurrence.backward_into(&d, &c, &y, &mut dx[1], &mut dc[1], shape, options)?;
    problem.judge_gradients(&fetch(&dx, skews[3])?, &fetch(&dc, skews[4])?);
    Ok(launched)
}

#[test]
fn arrays_may_begin_anywhere_and_each_somewhere_else() {
    let takes_any = |choice: &KernelChoice| choice.multiple_of(F32) == 1;
    for device in under_test() {
        for choice in KernelChoice::shipped(F32).filter(takes_any) {
            let recurrence = Recurrence::<f32>::new(&device, choice).unwrap();
            // 7 steps, and more than two tiles of the wide kernel if the kernel takes that many.
            let longest = choice.max_len(F32).map_or(2053, |most| most.min(2054) as usize - 1);
            for (seq_len, direction) in [
                (7, Direction::Forward),
                (7, Direction::Reverse),
                (longest, Direction::Forward),
                (longest, Direction::Reverse),
            ] {
                let problem = Problem::new((3, seq_len), direction);
                for skews in [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 2, 0], [3, 0, 2, 3, 1]] {
                    let [first, second, third, ..] = skews;
                    forward(&recurrence, &problem, [first, second, third]).unwrap();
                    backward(&recurrence, &problem, skews).unwrap();
                }
            }
        }
    }
}

/// Returns the numbers of requests and of sectors of one kind of access.
fn requests(launched: &Launched, access: Access) -> [u64; 2] {
    let counters = launched.counters().expect("the emulator counts");
    [counters.requests(access), counters.sectors(access)]
}

fn conflicts(counters: &Counters) -> u64 {
    counters.sites.iter().map(|site| site.conflicts).sum()
}

/// The number of pieces in a sequence; a piece is 128 elements, a warp's single request: 512 bytes,
/// 16 sectors. Blocks of 128 threads with two vectors each have two tiles and a quarter, and 256
/// threads with four vectors one tile, which is not full.
const PIECES: u64 = 18;
const ROWS: u64 = 3;

#[test]
fn wide_asks_for_every_sector_once() {
    let problem = Problem::new((ROWS as usize, 128 * PIECES as usize), Direction::Forward);
    let vectors = ROWS * PIECES;
    let wide = |config| {
        let choice = KernelChoice::Wide(config);
        let recurrence = Recurrence::<f32>::new(&Device::simt(), choice).unwrap();
        let forward = forward(&recurrence, &problem, [0; 3]).unwrap();
        (forward, backward(&recurrence, &problem, [0; 5]).unwrap())
    };
    // Besides its vectors, a warp of the backward pass takes one coefficient and one output from
    // the vectors of its neighbours: all nine warps with vectors do, except the one at an end of
    // the sequence; and the warp after the last of them takes a coefficient.
    let edges = ROWS * (9 + 8);

    let (forward, backward) = wide(WideConfig::default());
    assert_eq!(requests(&forward, Access::GlobalLoad), [2 * vectors, 16 * 2 * vectors]);
    assert_eq!(requests(&forward, Access::GlobalStore), [vectors, 16 * vectors]);
    assert_eq!(
        requests(&backward, Access::GlobalLoad),
        [3 * vectors + edges, 16 * 3 * vectors + edges]
    );
    assert_eq!(requests(&backward, Access::GlobalStore), [2 * vectors, 16 * 2 * vectors]);
    for launched in [&forward, &backward] {
        assert_eq!(conflicts(launched.counters().unwrap()), 0);
    }

    // With a tile in flight, all vectors pass through shared memory. A warp has four pieces: five
    // warps have vectors, and the last of them two.
    let edges = ROWS * (4 + 4);
    let (forward, backward) = wide(WideConfig { vectors: 4, threads: 256, ahead: 1, whole: true });
    assert_eq!(requests(&forward, Access::CopyAsync), [2 * vectors, 16 * 2 * vectors]);
    assert_eq!(requests(&forward, Access::GlobalLoad), [0, 0]);
    assert_eq!(requests(&forward, Access::GlobalStore), [vectors, 16 * vectors]);
    assert_eq!(requests(&backward, Access::CopyAsync), [3 * vectors, 16 * 3 * vectors]);
    assert_eq!(requests(&backward, Access::GlobalLoad), [edges, edges]);
    assert_eq!(requests(&backward, Access::GlobalStore), [2 * vectors, 16 * 2 * vectors]);
    for launched in [&forward, &backward] {
        assert_eq!(conflicts(launched.counters().unwrap()), 0);
    }
}

#[test]
fn rows_ask_for_a_sector_as_often_as_a_lane_has_vectors_or_elements_in_it() {
    // Eight rows of 16 lanes are four warps; a lane has one sector of each array, 32 bytes.
    let problem = Problem::new((8, 128), Direction::Forward);
    for (whole, times) in [(true, 2), (false, 8)] {
        let choice = KernelChoice::Rows(RowsConfig { whole, ..RowsConfig::default() });
        let recurrence = Recurrence::<f32>::new(&Device::simt(), choice).unwrap();
        let launched = forward(&recurrence, &problem, [0; 3]).unwrap();
        let one = [4 * times, 4 * times * 32];
        assert_eq!(requests(&launched, Access::GlobalLoad), one.map(|count| 2 * count), "{whole}");
        assert_eq!(requests(&launched, Access::GlobalStore), one, "{whole}");
        let launched = backward(&recurrence, &problem, [0; 5]).unwrap();
        assert_eq!(requests(&launched, Access::GlobalLoad), one.map(|count| 3 * count), "{whole}");
        assert_eq!(requests(&launched, Access::GlobalStore), one.map(|count| 2 * count), "{whole}");
        let counters = launched.counters().unwrap();
        assert_eq!(counters.sites.iter().map(|site| site.wavefronts).sum::<u64>(), 0);
    }
}

/// The last rows of arrays of some more than 2^31 elements, of which only these are stored.
struct Far {
    problem: Problem,
    num_seqs: usize,
    /// The element at which the last rows begin.
    start: usize,
}

impl Far {
    fn new(rows: usize, seq_len: usize) -> Far {
        // A multiple of `rows`, so that a block has only the last rows.
        let before = (1_usize << 31).div_ceil(seq_len).next_multiple_of(rows);
        let problem = Problem::new((rows, seq_len), Direction::Forward);
        Far { problem, num_seqs: before + rows, start: before * seq_len }
    }

    fn array(&self, name: &str, values: &Array2<f32>) -> Result<Buffer<f32>, Error> {
        let seq_len = self.problem.shape.1;
        let buffer = Device::simt().allocate_named(name, self.num_seqs * seq_len)?;
        buffer.slice(self.start..)?.upload(values.as_slice().unwrap())?;
        Ok(buffer)
    }

    fn results(&self, name: &str) -> Result<Buffer<f32>, Error> {
        self.array(name, &Array2::from_elem(self.problem.shape, f32::NAN))
    }

    fn run(&self, choice: KernelChoice, pass: Pass) -> Result<(), Error> {
        let recurrence = Recurrence::<f32>::new(&Device::simt(), choice)?;
        let ((rows, seq_len), num_seqs) = (self.problem.shape, self.num_seqs as u64);
        let geometry = choice.geometry(F32, pass, num_seqs, seq_len as u64);
        let all = geometry.blocks;
        let blocks = choice.geometry(F32, pass, rows as u64, seq_len as u64).blocks;
        let kernel = recurrence.function(pass, Direction::Forward)?;
        let launch = kernel.launch(all as u32, geometry.threads).shared(geometry.shared_bytes);
        let launch = launch.blocks(all - blocks..all);
        let (none, stream) = (None::<&Buffer<f32>>, Device::simt().stream());
        let c = self.array("coeffs", &self.problem.coeffs)?;
        let finish = |launch: linrec::device::Launch| {
            let launch = launch.arg(num_seqs as i64).arg(seq_len as i64);
            let launch = if choice.takes_direction() { launch.arg(0_i32) } else { launch };
            launch.run(&stream).map(drop)
        };
        match pass {
            Pass::Forward => {
                let x = self.array("inputs", &self.problem.inputs)?;
                let mut y = self.results("outputs")?;
                finish(launch.arg(&x).arg(&c).arg(&mut y).arg(none).arg(none))?;
                self.problem.judge_outputs(&y.slice(self.start..)?.download()?);
            }
            Pass::Backward => {
                let d = self.array("d_outputs", &self.problem.d_outputs)?;
                let y = self.array("outputs", &self.problem.outputs)?;
                let (mut dx, mut dc) = (self.results("d_inputs")?, self.results("d_coeffs")?);
                let launch = launch.arg(&d).arg(&c).arg(&y).arg(none);
                finish(launch.arg(&mut dx).arg(&mut dc).arg(none))?;
                let [dx, dc] = [dx, dc].map(|buffer| buffer.slice(self.start..));
                self.problem.judge_gradients(&dx?.download()?, &dc?.download()?);
            }
        }
        Ok(())
    }
}

#[test]
fn rows_past_element_2_31_are_right() {
    for choice in KernelChoice::shipped(F32) {
        let (rows, seq_len) = match choice {
            KernelChoice::Rows(config) => {
                let rows_per_block = (config.threads / config.lanes) as usize;
                (2 * rows_per_block, config.max_len(F32) as usize - 4)
            }
            KernelChoice::Wide(_) => (2, 5000),
            _ => continue, // those of blocks that share rows are in waves.rs
        };
        for pass in [Pass::Forward, Pass::Backward] {
            Far::new(rows, seq_len).run(choice, pass).unwrap();
        }
    }
}
