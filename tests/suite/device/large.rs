//! Arrays of more than 2^31 elements.

use super::gpus;
use linrec::contract::Domain;
use linrec::device::{Buffer, Device, ForwardOptions, Recurrence};
use linrec::kernels::{ElementType, KernelChoice, PipeConfig, RowsConfig, WideConfig};
use linrec::reference::{self, Rounding};
use linrec::{Error, Options};
use ndarray::{Array2, ArrayView2};

const NUM_SEQS: usize = 40_000;
const SEQ_LEN: usize = 65_536;
/// The kernels that the test runs.
const CHOICES: [KernelChoice; 4] = [
    KernelChoice::Pipe(PipeConfig::DEFAULT),
    KernelChoice::Rows(RowsConfig { lanes: 16, vectors: 2, threads: 32, whole: true }),
    KernelChoice::Wide(WideConfig { vectors: 2, threads: 128, ahead: 0, whole: false }),
    KernelChoice::Wide(WideConfig { vectors: 4, threads: 256, ahead: 1, whole: true }),
];
/// The arrays repeat these rows.
const ROWS: usize = 25;

/// Numbers; every row begins with another one.
fn rows(seed: u32, low: f32, high: f32) -> Array2<f32> {
    let mixed = |i: u32| (i ^ seed).wrapping_mul(2_654_435_761).rotate_left(13) >> 8;
    Array2::from_shape_fn((ROWS, SEQ_LEN), |(row, l)| {
        let unit = mixed((row * SEQ_LEN + l) as u32) as f32 / (1 << 24) as f32;
        low + (high - low) * unit
    })
}

fn repeated(device: &Device, rows: &Array2<f32>) -> Result<Buffer<f32>, Error> {
    let buffer = device.allocate(NUM_SEQS * SEQ_LEN)?;
    let values = rows.as_slice().expect("rows in order");
    for start in (0..NUM_SEQS * SEQ_LEN).step_by(values.len()) {
        buffer.slice(start..start + values.len())?.upload(values)?;
    }
    Ok(buffer)
}

#[test]
#[ignore = "needs a GPU with 34 GiB of free memory"]
fn rows_past_element_2_31_are_right() {
    let (inputs, coeffs) = (rows(1, -1.0, 1.0), rows(2, 0.98, 1.0));
    for device in &gpus() {
        let (x, c) = (repeated(device, &inputs).unwrap(), repeated(device, &coeffs).unwrap());
        let mut y = device.allocate(NUM_SEQS * SEQ_LEN).unwrap();
        for choice in CHOICES {
            // More and shorter rows of the same elements, if a kernel takes no long rows.
            let seq_len = choice.max_len(ElementType::F32).map_or(SEQ_LEN, |most| most as usize);
            y.poison().unwrap();
            let recurrence = Recurrence::<f32>::new(device, choice).unwrap();
            let shape = (NUM_SEQS * (SEQ_LEN / seq_len), seq_len);
            recurrence.forward_into(&x, &c, &mut y, shape, ForwardOptions::default()).unwrap();
            judge(&y, inputs.view(), coeffs.view(), seq_len);
            println!("{}: {choice}, {} elements in one launch are right", device.label(), y.len());
        }
    }
}

/// Checks the first rows against the bound, and the others against the first.
fn judge(y: &Buffer<f32>, inputs: ArrayView2<f32>, coeffs: ArrayView2<f32>, seq_len: usize) {
    let shape = (inputs.len() / seq_len, seq_len);
    let [x, c] = [inputs, coeffs].map(|array| array.into_shape_with_order(shape).unwrap());
    let options = Options::default();
    let rounding = Rounding { levels: Domain::tree_levels(seq_len), exp_ulps: 0.0 };
    let exact = reference::forward(x, c, &options).unwrap().outputs;
    let bound = reference::forward_bound(x, c, &options, rounding).unwrap().outputs;
    let len = ROWS * SEQ_LEN;
    let chunk = |number: usize| y.slice(number * len..(number + 1) * len)?.download();
    let first = chunk(0).unwrap();
    for ((got, exact), bound) in first.iter().zip(&exact).zip(&bound) {
        assert!((f64::from(*got) - exact).abs() <= *bound, "{got} instead of {exact}");
    }
    // Equal rows give equal bits, wherever they are.
    let chunks = NUM_SEQS / ROWS;
    for number in [1, chunks / 2, chunks * 4 / 5, chunks - 2, chunks - 1] {
        assert!(chunk(number).unwrap() == first, "rows from {} on differ", number * ROWS);
    }
}
