//! Streaming stores write the bits of ordinary ones, to every element and no other.

use bytemuck::{Pod, cast_slice};
use linrec::cpu::{Cpu, Simd, roof};
use linrec::{Direction, Element, Engine, Options};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};
use num_complex::Complex;

/// Returns one engine per set of vector instructions of this machine, on one thread and on all.
fn engines() -> impl Iterator<Item = Cpu> {
    let levels = Simd::ALL.into_iter().filter_map(|simd| Cpu::new().with_simd(simd));
    levels.flat_map(|cpu| [cpu.clone(), cpu.single_threaded()])
}

/// Returns numbers from `low` to 1; no two rows are equal.
fn numbers<T: Element>(seed: u32, len: usize, low: f64) -> Vec<T> {
    let mixed = |i: usize| (i as u32 ^ seed << 20).wrapping_mul(2_654_435_761).rotate_left(13) >> 8;
    let unit = |i| f64::from(mixed(i)) / f64::from(1 << 24);
    (0..len).map(|i| T::from_polar(low + (1.0 - low) * unit(i), 0.1 * unit(i + 7))).collect()
}

const GUARDS: usize = 40;

/// An array filled with a value that no result has. It begins `skew` elements after a multiple of
/// 64 bytes (or of the allocation's alignment), with guards before and after it.
struct Placed<T> {
    all: Vec<T>,
    poison: T,
    start: usize,
    shape: (usize, usize),
    stride: usize,
}

impl<T: Element + Pod> Placed<T> {
    fn new(shape: (usize, usize), gap: usize, skew: usize, poison: T) -> Self {
        let stride = shape.1 + gap;
        let all = [poison].repeat(shape.0 * stride + 2 * GUARDS);
        let aligned = all.as_ptr().align_offset(64).min(GUARDS - 17);
        Placed { start: aligned + skew, all, poison, shape, stride }
    }

    fn view(&mut self) -> ArrayViewMut2<'_, T> {
        let Placed { start, shape, stride, .. } = *self;
        let rows = &mut self.all[start..start + shape.0 * stride];
        let all = ArrayViewMut2::from_shape((shape.0, stride), rows).unwrap();
        all.split_at(ndarray::Axis(1), shape.1).0
    }

    /// Returns what was written, and asserts that nothing else was.
    fn take(self) -> Array2<T> {
        let Placed { all, poison, start, shape, stride } = self;
        let (mut written, mut outside) = (Vec::new(), all[..start].to_vec());
        let (rows, behind) = all[start..].split_at(shape.0 * stride);
        for row in rows.chunks(stride) {
            written.extend_from_slice(&row[..shape.1]);
            outside.extend_from_slice(&row[shape.1..]);
        }
        outside.extend_from_slice(behind);
        let untouched = [poison].repeat(outside.len());
        assert!(bytes(&outside) == bytes(&untouched), "something outside was written");
        Array2::from_shape_vec(shape, written).unwrap()
    }
}

fn bytes<T: Pod>(numbers: &[T]) -> &[u8] {
    cast_slice(numbers)
}

fn same<T: Element + Pod>(a: &Array2<T>, b: &Array2<T>) {
    let is_same = bytes(a.as_slice().unwrap()) == bytes(b.as_slice().unwrap());
    assert!(is_same, "{:?}", a.iter().zip(b).position(|(a, b)| a != b));
}

fn check<T: Element + Pod>(shape: (usize, usize), gap: usize, skews: [usize; 2], log_coeffs: bool) {
    let len = shape.0 * shape.1;
    let array = |seed, low| Array2::from_shape_vec(shape, numbers::<T>(seed, len, low)).unwrap();
    let (inputs, d_outputs) = (array(1, -1.0), array(2, -1.0));
    let coeffs = if log_coeffs { array(3, -0.1).mapv(|c| c - T::one()) } else { array(3, 0.98) };
    let initial = Array1::from_vec(numbers::<T>(4, shape.0, 0.0));
    for direction in [Direction::Forward, Direction::Reverse] {
        let options = Options { direction, initial: Some(initial.view().into()), log_coeffs };
        let run = |cpu: &Cpu, poison: T, outputs: Option<ArrayView2<T>>| {
            let mut y = Placed::new(shape, gap, skews[0], poison);
            let (x, c) = (inputs.view(), coeffs.view());
            let last = cpu.forward_into(x, c, &options, y.view()).unwrap();
            let y = y.take();
            let [mut d_x, mut d_c] = skews.map(|skew| Placed::new(shape, gap, skew, poison));
            let (d, outputs) = (d_outputs.view(), outputs.unwrap_or(y.view()));
            let first = cpu.backward_into(d, c, outputs, &options, d_x.view(), d_c.view()).unwrap();
            (y, d_x.take(), d_c.take(), last, first)
        };
        for cpu in engines() {
            // Elements that neither has written differ too.
            let (nan, large) = (T::nan(), T::from_real(1e30));
            let ordinary = run(&cpu.clone().streaming_beyond(usize::MAX), nan, None);
            let streamed = run(&cpu.clone().streaming_beyond(0), large, Some(ordinary.0.view()));
            same(&ordinary.0, &streamed.0);
            same(&ordinary.1, &streamed.1);
            same(&ordinary.2, &streamed.2);
            assert!(ordinary.3 == streamed.3 && ordinary.4 == streamed.4, "{cpu:?} {shape:?}");
        }
    }
}

fn all<T: Element + Pod>() {
    for (number, shape) in
        [(1, 1), (3, 7), (40, 16), (33, 33), (70, 64), (5, 2100), (9, 4096), (2, 9001)]
            .into_iter()
            .enumerate()
    {
        for (skew, gap) in [(0, 0), (1, 0), (4, 3), (13, 0), (7, 64)] {
            check::<T>(shape, gap, [skew, (skew * number) % 16], number % 3 == 2);
        }
    }
}

#[test]
fn f32_streams_with_the_same_bits() {
    all::<f32>();
}

#[test]
fn f64_streams_with_the_same_bits() {
    all::<f64>();
}

#[test]
fn complex_f32_streams_with_the_same_bits() {
    all::<Complex<f32>>();
}

#[test]
fn complex_f64_streams_with_the_same_bits() {
    all::<Complex<f64>>();
}

/// Rows that several threads share on any machine.
#[test]
fn long_rows_stream_with_the_same_bits() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.install(|| {
        check::<f32>((1, (1 << 20) + 3), 0, [4, 4], false);
        check::<f32>((2, (1 << 20) + 33_000), 5, [3, 11], false);
        check::<f64>((1, (1 << 19) + 1), 0, [1, 1], true);
        check::<Complex<f32>>((1, (1 << 19) + 17), 0, [2, 5], false);
        check::<Complex<f64>>((1, (1 << 18) + 5), 0, [1, 3], false);
    });
}

/// A complex number has the alignment of its parts, so cache lines may end within a number: then
/// nothing streams, and everything is written.
#[test]
fn numbers_that_straddle_lines_are_written() {
    for skew in 0..16 {
        let mut floats = vec![f32::NAN; 20_000 + skew];
        let aligned = floats.as_ptr().align_offset(64).min(16);
        let place = &mut floats[aligned + skew..][..18_000];
        let (inputs, coeffs) = (numbers::<Complex<f32>>(1, 9000, 0.0), numbers(2, 9000, 0.98));
        let [inputs, coeffs] =
            [inputs, coeffs].map(|x| Array2::from_shape_vec((3, 3000), x).unwrap());
        let numbers: &mut [Complex<f32>] = bytemuck::cast_slice_mut(place);
        let outputs = ArrayViewMut2::from_shape((3, 3000), numbers).unwrap();
        let cpu = Cpu::new().streaming_beyond(0);
        let options = Options::default();
        cpu.forward_into(inputs.view(), coeffs.view(), &options, outputs).unwrap();
        let expected = Cpu::new().forward(inputs.view(), coeffs.view(), &options).unwrap();
        let written = expected.outputs.iter().flat_map(|y| [y.re, y.im]);
        assert!(floats[aligned + skew..].iter().copied().zip(written).all(|(a, b)| a == b));
    }
}

#[test]
fn both_roofs_add_and_multiply() {
    fn check<T: Element>() {
        let [a, b, c] = [1, 2, 3].map(|seed| numbers::<T>(seed, 70_001, -1.0));
        for (cpu, skew) in engines().flat_map(|cpu| [0, 1, 5].map(|skew| (cpu.clone(), skew))) {
            let len = a.len() - skew;
            for cpu in [cpu.clone().streaming_beyond(0), cpu.streaming_beyond(usize::MAX)] {
                let (mut sums, mut products) = (vec![T::nan(); a.len()], vec![T::nan(); a.len()]);
                roof::forward(&cpu, &a[..len], &b[..len], &mut sums[skew..]);
                assert!((0..len).all(|i| sums[i + skew] == a[i] + b[i]));
                sums.fill(T::nan());
                let given = [&a[..len], &b[..len], &c[..len]];
                roof::backward(&cpu, given, &mut sums[skew..], &mut products[skew..]);
                let close = |x: T, y: T| (x - y).modulus() <= 8.0 * T::UNIT_ROUNDOFF;
                assert!((0..len).all(
                    |i| sums[i + skew] == a[i] + b[i] && close(products[i + skew], b[i] * c[i])
                ));
                assert!(sums[..skew].iter().chain(&products[..skew]).all(|x| x.modulus().is_nan()));
            }
        }
    }
    check::<f32>();
    check::<f64>();
    check::<Complex<f32>>();
    check::<Complex<f64>>();
}
