//! The recurrence on a CPU, at the speed of its memory.
//!
//! [`Cpu`] is the engine behind [`forward`](crate::forward) and [`backward`](crate::backward), and
//! the one to use where there is no GPU. A sequential loop waits for its multiply-add: each needs
//! the result of the one before. Here
//!
//! - within a row, a vector of consecutive steps is scanned at once, with the widest vector
//!   instructions that the machine has ([`Simd`], chosen at run time);
//! - many rows are dealt to the threads of the current rayon pool;
//! - few long rows are cut into tiles on which all threads work at once;
//! - results that would not stay in the caches go past them ([`Cpu::streaming_beyond`]).
//!
//! The result is the same for every number of threads, to the last bit (but for the sign of a
//! zero): threads guess, and correct what they guessed wrong. It does depend on the instruction
//! set, whose vectors differ in width.
//!
//! [`roof`] measures how fast the memory is.
//!
//! ```
//! use linrec::{Engine, Options, cpu::Cpu};
//! use ndarray::{Array2, array};
//!
//! let inputs = array![[1.0, 2.0, 3.0, 4.0]];
//! let coeffs = array![[0.0, 1.0, 0.5, 0.5]];
//! let mut outputs = Array2::zeros((1, 4));
//! let final_state = Cpu::new().forward_into(
//!     inputs.view(), coeffs.view(), &Options::default(), outputs.view_mut())?;
//! assert_eq!(outputs, array![[1.0, 3.0, 4.5, 6.25]]);
//! assert_eq!(final_state, array![6.25]);
//! # Ok::<(), linrec::Error>(())
//! ```

mod lanes;
mod memory;
mod pass;
mod portable;
pub mod roof;
mod rows;
mod scan;
mod simd;
mod split;
mod stream;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod complex;

use ndarray::{Array1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

use crate::validate::{self, allocate, initial_states, same_shape};
use crate::{Element, Engine, Error, Gradients, Options, Outputs};

#[doc(hidden)]
pub use simd::Kernel;
pub use simd::Simd;

/// The engine for CPUs.
#[derive(Debug, Clone)]
pub struct Cpu {
    simd: Simd,
    parallel: bool,
    /// `None`: beyond the caches.
    streaming_beyond: Option<usize>,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu::new()
    }
}

impl Cpu {
    /// All threads of the rayon pool it is called in, and the widest vectors of this machine.
    pub fn new() -> Self {
        Cpu { simd: Simd::best(), parallel: true, streaming_beyond: None }
    }

    /// This engine on the calling thread alone: to measure one core, or where the other threads
    /// have other work.
    pub fn single_threaded(self) -> Self {
        Cpu { parallel: false, ..self }
    }

    /// This engine with these vector instructions; `None` if the machine does not have them.
    pub fn with_simd(self, simd: Simd) -> Option<Self> {
        simd.is_available().then_some(Cpu { simd, ..self })
    }

    /// This engine with streaming (non-temporal) stores where the arrays of a pass, three forward
    /// and five backward, take more than so many bytes together: 0 for all passes, `usize::MAX` for
    /// none.
    ///
    /// Results of a streaming store go past the caches. That saves reading what they overwrite,
    /// which is a quarter of what a forward pass moves; but who reads them next takes them from
    /// memory. So by default the limit is what this machine's last cache holds (for all threads
    /// together where there are several such caches, and at most 16 MiB for each core, as virtual
    /// machines show caches of which they have a part). On other processors than x86-64 nothing
    /// streams. Results have the same bits either way.
    pub fn streaming_beyond(self, bytes: usize) -> Self {
        Cpu { streaming_beyond: Some(bytes), ..self }
    }

    /// The vector instructions it uses.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Computes a pass; `carries` holds what comes before and then after each row.
    fn run<T: Element, P: pass::Pass<T>>(&self, pass: P, carries: ArrayViewMut1<T>) {
        let (num_rows, num_columns) = pass.dim();
        if num_columns == 0 {
            return; // there may be more rows of no elements than anyone can walk along
        }
        let threads = self.threads();
        let bytes = num_rows.saturating_mul(num_columns).saturating_mul(P::ARRAYS * size_of::<T>());
        let streams = self.streams(bytes) && rows::can_stream(&pass);
        if split::pays::<T>(pass.dim(), threads) {
            split::run(self.simd, threads, streams, pass, carries);
        } else {
            rows::run(self.simd, self.parallel, streams, pass, carries);
        }
    }

    fn threads(&self) -> usize {
        if self.parallel { rayon::current_num_threads() } else { 1 }
    }

    /// Whether the results of a pass over so many bytes go past the caches.
    fn streams(&self, bytes: usize) -> bool {
        bytes > self.streaming_beyond.unwrap_or_else(|| stream::beyond_caches(self.threads()))
    }
}

impl<T: Element> Engine<T> for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let shape = validate::forward(&inputs, &coeffs, options)?;
        let mut outputs = allocate("forward", shape)?;
        let final_state = self.forward_into(inputs, coeffs, options, outputs.view_mut())?;
        Ok(Outputs { outputs, final_state })
    }

    fn backward(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Gradients<T>, Error> {
        let shape = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let mut d_inputs = allocate("backward", shape)?;
        let mut d_coeffs = allocate("backward", shape)?;
        let d_initial = self.backward_into(
            d_outputs,
            coeffs,
            outputs,
            options,
            d_inputs.view_mut(),
            d_coeffs.view_mut(),
        )?;
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }

    fn forward_into(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
        outputs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        let shape = validate::forward(&inputs, &coeffs, options)?;
        same_shape("forward", ("inputs", inputs.shape()), ("outputs", outputs.shape()))?;
        let mut carries = initial_states("forward", options, shape.0)?;
        let Options { direction, log_coeffs, .. } = *options;
        let pass = pass::Forward { direction, log_coeffs, inputs, coeffs, outputs };
        T::forward(self, pass, carries.view_mut());
        Ok(carries)
    }

    fn backward_into(
        &self,
        d_outputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        outputs: ArrayView2<T>,
        options: &Options<T>,
        d_inputs: ArrayViewMut2<T>,
        d_coeffs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        let shape = validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        let expected = ("d_outputs", d_outputs.shape());
        same_shape("backward", expected, ("d_inputs", d_inputs.shape()))?;
        same_shape("backward", expected, ("d_coeffs", d_coeffs.shape()))?;
        let states = initial_states("backward", options, shape.0)?;
        let mut carries: Array1<T> = allocate("backward", shape.0)?;
        let Options { direction, log_coeffs, .. } = *options;
        let pass = pass::Backward {
            direction,
            log_coeffs,
            d_outputs,
            coeffs,
            outputs,
            states: states.view(),
            d_inputs,
            d_coeffs,
        };
        T::backward(self, pass, carries.view_mut());
        Ok(carries)
    }
}
