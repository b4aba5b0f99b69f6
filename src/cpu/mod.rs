//! The recurrence on a CPU, at the speed of its memory.
//!
//! [`Cpu`] is the engine behind [`forward`](crate::forward) and [`backward`](crate::backward), for
//! machines without a GPU. In a sequential loop each multiply-add waits for the one before it. Here
//!
//! - within a row, a vector of consecutive steps is scanned at once, with the widest vector
//!   instructions that the machine has ([`Simd`], chosen at run time);
//! - many rows are dealt to the threads of the current rayon pool;
//! - few long rows are cut into tiles on which all threads work at once;
//! - results that would not stay in the caches go past them ([`Cpu::streaming_beyond`]).
//!
//! The result is the same for every number of threads, to the last bit (except for the sign of a
//! zero): threads guess, and correct wrong guesses. It depends on the instruction set, whose
//! vectors differ in width.
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
mod machine;
mod memory;
mod pass;
mod portable;
pub mod roof;
mod rows;
mod scan;
mod selective_scan;
mod simd;
mod split;
mod stream;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod complex;

use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rayon::prelude::*;

use crate::validate::{self, allocate, initial_states};
use crate::{Element, Engine, Error, Gradients, Options, Outputs};

use pass::{BackwardPass, ForwardPass, Rectangle};
use scan::Formula;
pub use selective_scan::{
    Coupling, CouplingView, CouplingViewMut, ScanDerivatives, ScanReal, ScanResults, ScanViews,
    ScanViewsMut,
};
pub use simd::Simd;
#[doc(hidden)]
pub use simd::Vectors;

/// The engine for CPUs.
#[derive(Debug, Clone)]
pub struct Cpu {
    simd: Simd,
    parallel: bool,
    /// `None` means the size of the caches.
    streaming_beyond: Option<usize>,
}

impl Default for Cpu {
    fn default() -> Self {
        Cpu::new()
    }
}

impl Cpu {
    /// An engine that uses all threads of the rayon pool it is called in, and the widest vectors of
    /// this machine.
    pub fn new() -> Self {
        Cpu { simd: Simd::best(), parallel: true, streaming_beyond: None }
    }

    /// This engine on the calling thread alone: to measure one core, or where the other threads are
    /// busy.
    pub fn single_threaded(self) -> Self {
        Cpu { parallel: false, ..self }
    }

    /// This engine with these vector instructions; `None` if the machine does not have them.
    pub fn with_simd(self, simd: Simd) -> Option<Self> {
        simd.is_available().then_some(Cpu { simd, ..self })
    }

    /// This engine with one step after the other, as a loop takes them, in each pass of the
    /// recurrence: `y_l = y_{l-1} * c_l + x_l`, with one rounding where the machine has a fused
    /// multiply-add.
    ///
    /// By default, products of up to 16 coefficients are computed on the way. Where such a product
    /// overflows (`1e20 * 1e20` in `f32`), outputs can be infinite or NaN that are finite here. The
    /// price is time: each step waits some four cycles for the step before it. The results have
    /// the same bits for every instruction set with a multiply-add.
    ///
    /// ```
    /// use linrec::{Engine, Options, cpu::Cpu};
    /// use ndarray::array;
    ///
    /// let (inputs, coeffs) = (array![[0.0_f32, 1.0]], array![[1e20_f32, 1e20]]);
    /// let cpu = Cpu::new().in_order();
    /// let results = cpu.forward(inputs.view(), coeffs.view(), &Options::default())?;
    /// assert_eq!(results.outputs, array![[0.0, 1.0]]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn in_order(self) -> Self {
        Cpu { simd: Simd::Scalar, ..self }
    }

    /// This engine with streaming (non-temporal) stores where the arrays of a pass, three forward
    /// and five backward, take more than `bytes` bytes together: 0 for all passes, `usize::MAX` for
    /// none.
    ///
    /// Results of a streaming store go past the caches. That saves reading the memory that they
    /// overwrite, a quarter of what a forward pass moves; but the next reader of the results takes
    /// them from memory. So the default limit is the size of this machine's last cache. Where there
    /// are several such caches, it is the size of the caches of all threads together; and it is at
    /// most 16 MiB per core, since a virtual machine may show a cache of which it has only a part.
    /// On other processors than x86-64 nothing streams. Results have the same bits either way.
    pub fn streaming_beyond(self, bytes: usize) -> Self {
        Cpu { streaming_beyond: Some(bytes), ..self }
    }

    /// Returns the vector instructions that the engine uses.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Computes a pass; `carries` holds the carries before the rows, and then those after them.
    fn run<T, F, const I: usize, const O: usize>(
        &self,
        pass: Rectangle<T, F, I, O>,
        carries: ArrayViewMut1<T>,
    ) where
        T: Element,
        F: Formula<I, O>,
    {
        let (num_rows, num_columns) = pass.dim();
        if num_columns == 0 {
            return; // there may be more rows without elements than anyone can walk along
        }
        let threads = self.threads();
        let elements = num_rows.saturating_mul(num_columns);
        let bytes = elements.saturating_mul(Rectangle::<T, F, I, O>::ARRAYS * size_of::<T>());
        let streams = self.streams(bytes) && pass.can_stream();
        if split::pays::<T>(pass.dim(), threads) {
            pass.run_by_tiles(self.simd, threads, streams, carries);
        } else {
            pass.run_by_rows(self.simd, self.parallel, streams, carries);
        }
    }

    /// Does each of the tasks, on all threads of the engine.
    fn for_each<J: Send>(&self, tasks: Vec<J>, run: impl Fn(J) + Send + Sync) {
        match self.parallel {
            true => tasks.into_par_iter().for_each(run),
            false => tasks.into_iter().for_each(run),
        }
    }

    fn threads(&self) -> usize {
        if self.parallel { rayon::current_num_threads() } else { 1 }
    }

    /// Returns whether the results of a pass over `bytes` bytes go past the caches.
    fn streams(&self, bytes: usize) -> bool {
        bytes > self.streaming_beyond.unwrap_or_else(|| stream::beyond_caches(self.threads()))
    }

    /// Computes the outputs of arrays that fit together; returns the final state.
    pub(crate) fn outputs<T: Element>(
        &self,
        inputs: [ArrayView2<T>; 2],
        options: &Options<T>,
        outputs: [ArrayViewMut2<T>; 1],
    ) -> Result<Array1<T>, Error> {
        let mut carries = initial_states("forward", options, inputs[0].nrows())?;
        let no_states = ArrayView1::from(&[]);
        let pass = ForwardPass::new(options, inputs, no_states, outputs);
        T::forward(self, pass, carries.view_mut());
        Ok(carries)
    }

    /// Computes the gradients of arrays that fit together; returns the gradient of the initial
    /// state.
    pub(crate) fn gradients<T: Element>(
        &self,
        inputs: [ArrayView2<T>; 3],
        options: &Options<T>,
        gradients: [ArrayViewMut2<T>; 2],
    ) -> Result<Array1<T>, Error> {
        let num_seqs = inputs[0].nrows();
        let states = initial_states("backward", options, num_seqs)?;
        let mut carries: Array1<T> = allocate("backward", num_seqs)?;
        let pass = BackwardPass::new(options, inputs, states.view(), gradients);
        T::backward(self, pass, carries.view_mut());
        Ok(carries)
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
        let final_state = self.outputs([inputs, coeffs], options, [outputs.view_mut()])?;
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
        let gradients = [d_inputs.view_mut(), d_coeffs.view_mut()];
        let d_initial = self.gradients([d_outputs, coeffs, outputs], options, gradients)?;
        Ok(Gradients { d_inputs, d_coeffs, d_initial })
    }

    fn forward_into(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
        outputs: ArrayViewMut2<T>,
    ) -> Result<Array1<T>, Error> {
        validate::forward(&inputs, &coeffs, options)?;
        validate::outputs(&inputs, &outputs)?;
        self.outputs([inputs, coeffs], options, [outputs])
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
        validate::backward(&d_outputs, &coeffs, &outputs, options)?;
        validate::gradients(&d_outputs, [&d_inputs, &d_coeffs])?;
        self.gradients([d_outputs, coeffs, outputs], options, [d_inputs, d_coeffs])
    }
}
