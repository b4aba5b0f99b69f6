//! Both ways as engines: row by row, with several threads for each row.

use std::io;

use ch01_sequential_loop::rows;
use linrec::contract::Domain;
use linrec::{Element, Engine, Error, Gradients, Options, Outputs};
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1};

use crate::{Part, many_threads, two_threads};

/// Two threads for every row, each with half of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TwoThreads;

impl TwoThreads {
    /// Returns the domain of the test contract. Rounding has one level: the second half adds the
    /// contribution of the first.
    pub fn domain() -> Domain {
        Domain { levels: |_| 1, ..Domain::default() }
    }
}

fn row_on_two<T: Element>(
    inputs: ArrayView1<T>,
    coeffs: ArrayView1<T>,
    initial: T,
    outputs: ArrayViewMut1<T>,
) -> Result<T, Error> {
    let sequence = Part::new(inputs, coeffs, outputs)?;
    let split = sequence.len() / 2;
    two_threads(sequence, initial, split).map_err(|error| unsupported("two threads", 2, &error))
}

impl<T: Element> Engine<T> for TwoThreads {
    fn name(&self) -> &str {
        "two threads"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        rows::forward(inputs, coeffs, options, row_on_two)
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        rows::backward(d_outputs, coeffs, outputs, options, row_on_two)
    }
}

/// `T` threads for every row, each with a part of it, and a tree over the parts' transitions.
///
/// A sequence with fewer elements than threads gets one thread per element. Every call returns
/// [`Error::Unsupported`] if the number of threads is 0, or more than the system can start.
#[derive(Debug, Clone)]
pub struct ManyThreads {
    name: String,
    threads: usize,
}

impl ManyThreads {
    /// Makes an engine with this number of threads.
    pub fn new(threads: usize) -> Self {
        ManyThreads { name: format!("{threads} threads"), threads }
    }

    /// Returns the domain of the test contract. Rounding has the levels of a tree over the threads,
    /// of which there are never more than elements, and one level where each part adds the
    /// contribution of the earlier parts.
    pub fn domain(&self) -> Domain {
        Domain { tile: self.threads, levels: Domain::tree_levels, ..Domain::default() }
    }

    fn row<T: Element>(
        &self,
        inputs: ArrayView1<T>,
        coeffs: ArrayView1<T>,
        initial: T,
        outputs: ArrayViewMut1<T>,
    ) -> Result<T, Error> {
        let sequence = Part::new(inputs, coeffs, outputs)?;
        let (state, _steps) = many_threads(sequence, initial, self.threads)
            .map_err(|error| unsupported("many threads", self.threads, &error))?;
        Ok(state)
    }
}

impl<T: Element> Engine<T> for ManyThreads {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        rows::forward(inputs, coeffs, options, |x, c, initial, y| self.row(x, c, initial, y))
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        rows::backward(d_outputs, coeffs, outputs, options, |x, c, initial, y| {
            self.row(x, c, initial, y)
        })
    }
}

fn unsupported(engine: &str, threads: usize, error: &io::Error) -> Error {
    Error::Unsupported { engine: engine.to_owned(), what: format!("{threads} threads: {error}") }
}
