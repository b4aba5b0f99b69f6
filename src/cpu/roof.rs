//! The roof: element-wise kernels that read and write as many arrays as the recurrence.
//!
//! No engine is faster than the memory, and these kernels measure its speed: [`forward`] reads two
//! arrays and writes one, like a forward pass; [`backward`] reads three and writes two. They use
//! the threads, the vector instructions and the stores of a given [`Cpu`].
//!
//! The kernels run with one of two kinds of stores, and *the* roof is the faster run. Ordinary
//! stores first read the cache line that they overwrite (16 bytes are moved for 12, and 28 for 20);
//! streaming stores do not, and go past the caches. [`Cpu::streaming_beyond`] chooses: 0 for
//! streaming stores, `usize::MAX` for ordinary ones. By default the kernels do as the engine does.
//! (Arrays whose elements straddle cache lines have no whole vectors to stream.)

use rayon::prelude::*;

use super::Cpu;
use super::lanes::{LaneJob, Lanes};
use super::machine::Fence;
use super::stream::before_first_line;
use crate::Element;

/// The number of elements that a thread computes at once.
const GRAIN: usize = 1 << 16;

/// Computes `sums = a + b`, element by element, up to the end of the shortest slice.
pub fn forward<T: Element>(cpu: &Cpu, a: &[T], b: &[T], sums: &mut [T]) {
    let streams = cpu.streams(3 * size_of_val(sums));
    if cpu.parallel {
        (sums.par_chunks_mut(GRAIN), a.par_chunks(GRAIN), b.par_chunks(GRAIN))
            .into_par_iter()
            .for_each(|(sums, a, b)| T::dispatch(cpu.simd, Sum { a, b, sums, streams }));
    } else {
        T::dispatch(cpu.simd, Sum { a, b, sums, streams });
    }
}

/// Computes `sums = a + b` and `products = b * c`, element by element, up to the end of the
/// shortest slice.
pub fn backward<T: Element>(cpu: &Cpu, [a, b, c]: [&[T]; 3], sums: &mut [T], products: &mut [T]) {
    let streams = cpu.streams(5 * size_of_val(sums));
    if cpu.parallel {
        let results = (sums.par_chunks_mut(GRAIN), products.par_chunks_mut(GRAIN));
        (results.0, results.1, a.par_chunks(GRAIN), b.par_chunks(GRAIN), c.par_chunks(GRAIN))
            .into_par_iter()
            .for_each(|(sums, products, a, b, c)| {
                T::dispatch(cpu.simd, SumAndProduct { a, b, c, sums, products, streams });
            });
    } else {
        T::dispatch(cpu.simd, SumAndProduct { a, b, c, sums, products, streams });
    }
}

struct Sum<'a, T> {
    a: &'a [T],
    b: &'a [T],
    sums: &'a mut [T],
    streams: bool,
}

impl<T: Element> LaneJob<T> for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        let Sum { a, b, sums, streams } = self;
        let len = a.len().min(b.len()).min(sums.len());
        let sums = &mut sums[..len];
        let plain = if streams { before_first_line(sums) } else { len };
        let ((a, a_rest), (b, b_rest)) = (a[..len].split_at(plain), b[..len].split_at(plain));
        let (sums, sums_rest) = sums.split_at_mut(plain);
        let add = |a: &[T], b: &[T], sums: &mut [T]| {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum = *a + *b;
            }
        };
        add(a, b, sums);
        let ((a, a_tail), (b, b_tail)) = (a_rest.as_chunks::<W>(), b_rest.as_chunks::<W>());
        let (sums, sums_tail) = sums_rest.as_chunks_mut::<W>();
        let fence = Fence;
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            lanes.stream(lanes.add(lanes.load(a), lanes.load(b)), sum, &fence);
        }
        add(a_tail, b_tail, sums_tail);
    }
}

struct SumAndProduct<'a, T> {
    a: &'a [T],
    b: &'a [T],
    c: &'a [T],
    sums: &'a mut [T],
    products: &'a mut [T],
    streams: bool,
}

impl<T: Element> LaneJob<T> for SumAndProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, lanes: L) {
        let SumAndProduct { a, b, c, sums, products, streams } = self;
        let len = a.len().min(b.len()).min(c.len()).min(sums.len()).min(products.len());
        let sums = &mut sums[..len];
        let plain = if streams { before_first_line(sums) } else { len };
        let [(a, a_rest), (b, b_rest), (c, c_rest)] =
            [a, b, c].map(|array| array[..len].split_at(plain));
        let (sums, sums_rest) = sums.split_at_mut(plain);
        let (products, products_rest) = products[..len].split_at_mut(plain);
        let compute = |[a, b, c]: [&[T]; 3], sums: &mut [T], products: &mut [T]| {
            let results = sums.iter_mut().zip(products);
            for ((((sum, product), a), b), c) in results.zip(a).zip(b).zip(c) {
                *sum = *a + *b;
                *product = *b * *c;
            }
        };
        compute([a, b, c], sums, products);
        let [(a, a_tail), (b, b_tail), (c, c_tail)] =
            [a_rest, b_rest, c_rest].map(|array| array.as_chunks::<W>());
        let (sums, sums_tail) = sums_rest.as_chunks_mut::<W>();
        let (products, products_tail) = products_rest.as_chunks_mut::<W>();
        let fence = Fence;
        for ((((sum, product), a), b), c) in sums.iter_mut().zip(products).zip(a).zip(b).zip(c) {
            let [a, b, c] = [a, b, c].map(|vector| lanes.load(vector));
            lanes.stream(lanes.add(a, b), sum, &fence);
            lanes.stream(lanes.mul(b, c), product, &fence);
        }
        compute([a_tail, b_tail, c_tail], sums_tail, products_tail);
    }
}
