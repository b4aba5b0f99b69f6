//! The roof: element-wise kernels that read and write what the recurrence reads and writes.
//!
//! No engine is faster than the memory, and these say how fast that is: [`forward`] reads two arrays and
//! writes one, as a forward pass does, [`backward`] reads three and writes two. They run on the
//! threads and with the vector instructions of a given [`Cpu`].

use rayon::prelude::*;

use super::Cpu;
use super::lanes::{Job, Lanes};
use crate::Element;

/// The number of elements that a thread computes at a time.
const GRAIN: usize = 1 << 16;

/// `sums = a + b`, element by element, as far as the shortest slice goes.
pub fn forward<T: Element>(cpu: &Cpu, a: &[T], b: &[T], sums: &mut [T]) {
    if cpu.parallel {
        (sums.par_chunks_mut(GRAIN), a.par_chunks(GRAIN), b.par_chunks(GRAIN))
            .into_par_iter()
            .for_each(|(sums, a, b)| T::dispatch(cpu.simd, Sum { a, b, sums }));
    } else {
        T::dispatch(cpu.simd, Sum { a, b, sums });
    }
}

/// `sums = a + b` and `products = b * c`, element by element, as far as the shortest slice goes.
pub fn backward<T: Element>(cpu: &Cpu, [a, b, c]: [&[T]; 3], sums: &mut [T], products: &mut [T]) {
    if cpu.parallel {
        let results = (sums.par_chunks_mut(GRAIN), products.par_chunks_mut(GRAIN));
        (results.0, results.1, a.par_chunks(GRAIN), b.par_chunks(GRAIN), c.par_chunks(GRAIN))
            .into_par_iter()
            .for_each(|(sums, products, a, b, c)| {
                T::dispatch(cpu.simd, SumAndProduct { a, b, c, sums, products });
            });
    } else {
        T::dispatch(cpu.simd, SumAndProduct { a, b, c, sums, products });
    }
}

struct Sum<'a, T> {
    a: &'a [T],
    b: &'a [T],
    sums: &'a mut [T],
}

impl<T: Element> Job<T> for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, _lanes: L) {
        for ((sum, a), b) in self.sums.iter_mut().zip(self.a).zip(self.b) {
            *sum = *a + *b;
        }
    }
}

struct SumAndProduct<'a, T> {
    a: &'a [T],
    b: &'a [T],
    c: &'a [T],
    sums: &'a mut [T],
    products: &'a mut [T],
}

impl<T: Element> Job<T> for SumAndProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const W: usize, L: Lanes<T, W>>(self, _lanes: L) {
        let results = self.sums.iter_mut().zip(self.products);
        for ((((sum, product), a), b), c) in results.zip(self.a).zip(self.b).zip(self.c) {
            *sum = *a + *b;
            *product = *b * *c;
        }
    }
}
