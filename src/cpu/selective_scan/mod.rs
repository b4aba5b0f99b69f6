//! Mamba's selective scan on the CPU, fused into one pass: nothing with an axis of time and one of
//! states is in memory.
//!
//! A vector holds the same step of 16 neighbouring channels. So each state is walked from
//! the first step to the last, channels do not wait for each other, and the sum over the states
//! needs no exchange between lanes. The inputs of a tile of 64 steps are transposed on the way,
//! into a cache. Blocks of 16 channels are dealt to the threads of the rayon pool.
//!
//! `functions` has the exponential, `arrays` the arguments, `tile` the transposed inputs, `forward`
//! and `backward` the passes. `tests/suite/cpu_selective_scan.rs` compares the results with an
//! oracle in double precision and its bounds.

mod arrays;
mod backward;
mod forward;
mod functions;
mod tile;

pub use arrays::{
    Coupling, CouplingView, CouplingViewMut, ScanDerivatives, ScanResults, ScanViews, ScanViewsMut,
};
pub use functions::ScanReal;

use super::Cpu;
use crate::Error;
use tile::TILE;

impl Cpu {
    /// The number of steps between the checkpoints of [`Cpu::selective_scan`].
    pub const CHECKPOINT_STEPS: usize = TILE;

    /// Computes Mamba's selective scan. For each batch, channel `c` and state `n`, with `B` and `C`
    /// of the channel's group,
    ///
    /// ```text
    /// d_t   = softplus(delta_t + delta_bias_c)
    /// h_t   = exp(d_t A_cn) h_{t-1} + (d_t u_t) B_tn
    /// y_t   = sum over n of C_tn h_t  +  D_c u_t
    /// out_t = y_t z_t sigmoid(z_t)
    /// ```
    ///
    /// (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023; the
    /// arguments are those of the `selective_scan_fn` of the package `mamba_ssm`). The result has
    /// the same bits for every number of threads and every instruction set. Beside the results a
    /// thread uses some 25 KB of memory and 640 bytes for each state of a channel (`f32`).
    ///
    /// ```
    /// use linrec::cpu::{Coupling, Cpu, ScanResults, ScanViews};
    /// use ndarray::{Array3, array};
    ///
    /// let (u, delta) = (array![[[1.0, 1.0, 1.0]]], array![[[1.0, 1.0, 1.0]]]);
    /// let a = array![[0.0, -1e30]]; // a sum, and nothing but the step itself
    /// let (b, c) = (array![[1.0, 1.0]], array![[1.0, 10.0]]);
    /// let inputs = ScanViews {
    ///     u: u.view(),
    ///     delta: delta.view(),
    ///     a: a.view(),
    ///     b: Coupling::Constant(b.view()),
    ///     c: Coupling::Constant(c.view()),
    ///     d: None,
    ///     z: None,
    ///     delta_bias: None,
    ///     softplus: false,
    ///     initial: None,
    ///     restarts: None,
    /// };
    /// let mut out = Array3::zeros((1, 1, 3));
    /// let results = ScanResults { out: out.view_mut(), last: None, checkpoints: None };
    /// Cpu::new().selective_scan(&inputs, results)?;
    /// assert_eq!(out, array![[[11.0, 12.0, 13.0]]]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] or [`Error::Unsupported`] if the shapes do not fit together.
    pub fn selective_scan<T: ScanReal>(
        &self,
        inputs: &ScanViews<T>,
        results: ScanResults<T>,
    ) -> Result<(), Error> {
        let sizes = arrays::check_forward(inputs, &results, TILE)?;
        forward::run(self, inputs, sizes, results);
        Ok(())
    }

    /// Computes the gradients of a loss with respect to the inputs of [`Cpu::selective_scan`] from
    /// its gradients with respect to the results.
    ///
    /// The states between two checkpoints are computed again. The result has the same bits for
    /// every number of threads and every instruction set: the terms of a group's channels in the
    /// gradients of a varying `B` and `C` are added in a fixed order. For that, each 64 channels of
    /// a group and batch use the memory of its `B` and `C`. A thread uses some 16 KB for each state
    /// of a channel and 120 KB more (`f32`).
    ///
    /// ```
    /// use linrec::cpu::{Coupling, Cpu, ScanDerivatives, ScanResults, ScanViews, ScanViewsMut};
    /// use ndarray::{Array2, Array3, Array4, array};
    ///
    /// // The loss is the second output of a sum: 10 (2 + 3).
    /// let (u, delta) = (array![[[2.0, 3.0]]], array![[[1.0, 1.0]]]);
    /// let (a, b, c) = (array![[0.0]], array![[1.0]], array![[10.0]]);
    /// let inputs = ScanViews {
    ///     u: u.view(),
    ///     delta: delta.view(),
    ///     a: a.view(),
    ///     b: Coupling::Constant(b.view()),
    ///     c: Coupling::Constant(c.view()),
    ///     d: None,
    ///     z: None,
    ///     delta_bias: None,
    ///     softplus: false,
    ///     initial: None,
    ///     restarts: None,
    /// };
    /// let (mut out, mut checkpoints) = (Array3::zeros((1, 1, 2)), Array4::zeros((1, 1, 1, 1)));
    /// let checkpoints_mut = Some(checkpoints.view_mut());
    /// let results =
    ///     ScanResults { out: out.view_mut(), last: None, checkpoints: checkpoints_mut };
    /// Cpu::new().selective_scan(&inputs, results)?;
    /// assert_eq!(out, array![[[20.0, 50.0]]]);
    ///
    /// let d_out = array![[[0.0, 1.0]]];
    /// let given =
    ///     ScanDerivatives { d_out: d_out.view(), d_last: None, checkpoints: checkpoints.view() };
    /// let (mut d_u, mut d_delta) = (Array3::zeros((1, 1, 2)), Array3::zeros((1, 1, 2)));
    /// let [mut d_a, mut d_b, mut d_c] = [(); 3].map(|()| Array2::zeros((1, 1)));
    /// let gradients = ScanViewsMut {
    ///     u: d_u.view_mut(),
    ///     delta: d_delta.view_mut(),
    ///     a: d_a.view_mut(),
    ///     b: Coupling::Constant(d_b.view_mut()),
    ///     c: Coupling::Constant(d_c.view_mut()),
    ///     d: None,
    ///     z: None,
    ///     delta_bias: None,
    ///     initial: None,
    /// };
    /// Cpu::new().selective_scan_backward(&inputs, &given, gradients)?;
    /// assert_eq!(d_u, array![[[10.0, 10.0]]]);
    /// assert_eq!(d_delta, array![[[20.0, 30.0]]]);
    /// assert_eq!((d_a, d_b, d_c), (array![[20.0]], array![[50.0]], array![[5.0]]));
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] or [`Error::Unsupported`] if the shapes do not fit together.
    pub fn selective_scan_backward<T: ScanReal>(
        &self,
        inputs: &ScanViews<T>,
        given: &ScanDerivatives<T>,
        gradients: ScanViewsMut<T>,
    ) -> Result<(), Error> {
        let sizes = arrays::check_backward(inputs, given, &gradients, TILE)?;
        backward::run(self, inputs, given, sizes, gradients);
        Ok(())
    }
}
