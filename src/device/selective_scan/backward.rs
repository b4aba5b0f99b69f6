//! The backward pass of the selective scan: its arrays, its options, and the launches of a call.
//!
//! A call queues up to three kernels: one for the gradients at the ends of chunks, if sequences are
//! cut; one for all gradients, which leaves sums over parts of the channels; and one that adds
//! these up, always in the same order. [`BackwardPlan`] cuts the shape.
//! `tests/suite/scan_gradients` tests it against a reference in double precision.

use super::plan::{BackwardPlan, LANES};
use super::shape::{check, check_optional};
use super::{Exponential, ScanCouplingGradient, ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::recurrence::scratch::Scratch;
use crate::device::{Buffer, Function, Launched, Storage, Stream};

/// The arrays for the gradients of [`SelectiveScan::backward_into`]. Each has the shape of its
/// array in [`ScanInputs`], and every element is written. A gradient that is `None` is not
/// computed.
#[derive(Debug)]
pub struct ScanGradients<'a, S> {
    /// The gradient with respect to `u`.
    pub u: &'a mut Buffer<S>,
    /// The gradient with respect to `delta`, before bias and softplus.
    pub delta: &'a mut Buffer<S>,
    /// The gradient with respect to `A`.
    pub a: &'a mut Buffer<f32>,
    /// The gradient with respect to `B`.
    pub b: ScanCouplingGradient<'a, S>,
    /// The gradient with respect to `C`.
    pub c: ScanCouplingGradient<'a, S>,
    /// The gradient with respect to `D`, even if the input has none.
    pub d: Option<&'a mut Buffer<f32>>,
    /// The gradient with respect to `z`, only if the input has one.
    pub z: Option<&'a mut Buffer<S>>,
    /// The gradient with respect to `delta_bias`, even if the input has none.
    pub delta_bias: Option<&'a mut Buffer<f32>>,
    /// The gradient with respect to the states before the first step, given or zero.
    pub initial: Option<&'a mut Buffer<f32>>,
}

/// The options of [`SelectiveScan::backward_into`]. By default the loss does not depend on the last
/// states, and the stream is the device's default one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanBackwardOptions<'a> {
    /// The gradient with respect to the last states, `[batch, channels, states]`; `None` means
    /// zero.
    pub d_last: Option<&'a Buffer<f32>>,
    /// The most chunks of time that sequences are cut into, so that few channels keep the whole
    /// device busy. Chunks consist of whole tiles of 8 steps. `None` means the number that is
    /// expected to be fastest, by the shape alone. Gradients for different numbers of chunks differ
    /// in their last bits. One chunk is walked from the last step to the first, so that a sequence
    /// may be computed in stretches: with the gradient of the states before the following stretch
    /// as [`d_last`](ScanBackwardOptions::d_last), all gradients but those that are sums over time
    /// have the bits of a single call (if that has at most 2^22 steps).
    pub chunks: Option<usize>,
    /// The stream to work on, or the stream of a [recording](crate::device::Device::record); `None`
    /// means [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

/// Bits of the kernels' argument `flags` that only the backward pass has.
mod flags {
    pub(super) const WHOLE: i32 = 8;
    pub(super) const ENDS: i32 = 16;
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Computes the gradients of a loss from its gradient with respect to the outputs, `d_out`, and
    /// from the `checkpoints` that [`SelectiveScan::forward_into`] has written for the same inputs.
    ///
    /// A call queues two kernels, or three if sequences are cut so that few channels keep the whole
    /// device busy. Sums are taken in the same order in every run, so the gradients have the same
    /// bits each time.
    ///
    /// ```
    /// use linrec::device::{
    ///     Device, Exponential, ScanForwardOptions, ScanGradients, ScanInputs, ScanShape, SelectiveScan,
    /// };
    ///
    /// let device = Device::auto()?;
    /// let scan = SelectiveScan::<f32>::new(&device, Exponential::Exact);
    /// let shape = ScanShape { batch: 1, channels: 1, seq_len: 3, states: 1, groups: 1 };
    /// let (ones, a) = (device.upload(&[1.0_f32; 3])?, device.upload(&[0.0_f32])?); // a running sum
    /// let inputs = ScanInputs {
    ///     u: &ones,
    ///     delta: &ones,
    ///     a: &a,
    ///     b: (&ones).into(),
    ///     c: (&ones).into(),
    ///     d: None,
    ///     z: None,
    ///     delta_bias: None,
    ///     softplus: false,
    ///     initial: None,
    ///     restarts: None,
    /// };
    /// let mut out = device.allocate(3)?;
    /// let mut checkpoints = device.allocate(1)?;
    /// let options = ScanForwardOptions { checkpoints: Some(&mut checkpoints), ..Default::default() };
    /// scan.forward_into(&inputs, &mut out, shape, options)?;
    ///
    /// let [mut u, mut delta, mut b, mut c] = [(); 4].map(|()| device.allocate(3).unwrap());
    /// let mut a = device.allocate(1)?;
    /// let gradients = ScanGradients {
    ///     u: &mut u,
    ///     delta: &mut delta,
    ///     a: &mut a,
    ///     b: (&mut b).into(),
    ///     c: (&mut c).into(),
    ///     d: None,
    ///     z: None,
    ///     delta_bias: None,
    ///     initial: None,
    /// };
    /// scan.backward_into(&inputs, &ones, &checkpoints, gradients, shape, Default::default())?;
    /// assert_eq!(u.download()?, [3.0, 2.0, 1.0]); // the number of sums that each input is in
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SelectiveScan::forward_into`]; [`Error::Unsupported`] for a gradient with respect to a
    /// `z` that is not there, or with respect to a `B` or `C` of the other kind, or for
    /// `checkpoints` that are read in vectors (for a multiple of 4 states) and begin at no
    /// multiple of 16 bytes; [`Error::Device`] if there is no memory for the workspace, which later
    /// calls reuse.
    pub fn backward_into(
        &self,
        inputs: &ScanInputs<S>,
        d_out: &Buffer<S>,
        checkpoints: &Buffer<f32>,
        gradients: ScanGradients<S>,
        shape: ScanShape,
        options: ScanBackwardOptions,
    ) -> Result<Launched, Error> {
        let operation = "backward_into";
        self.check_backward(inputs, d_out, checkpoints, &gradients, shape, options)?;
        let ScanBackwardOptions { d_last, chunks, stream } = options;

        let (vary_b, vary_c) = (inputs.b.varies(), inputs.c.varies());
        let plan = BackwardPlan::new(shape, vary_b && vary_c, self.exponential());
        let plan = chunks.map_or(plan, |most| plan.cut(most));
        let whole = inputs.have_whole_rows(d_out, shape)
            && gradients.b.is_aligned_to(16)
            && gradients.c.is_aligned_to(16);
        let kernels = self.backward_kernels(inputs, plan, shape, whole)?;
        let sums = self.kernels.entry(
            &self.device,
            "selective_scan_bwd.cu",
            format!("selective_scan_bwd_sums<{}>", S::ELEMENT.cuda_name()),
        )?;
        let blocks = plan.blocks.saturating_mul(plan.chunks);
        self.check_launch(operation, shape, blocks, plan.shared_bytes(vary_b && vary_c))?;
        let lengths = plan.workspace(shape, vary_b || vary_c);
        let mut workspace = self.workspace(operation, lengths, stream)?;

        let home = self.device.stream();
        let stream = stream.unwrap_or(&home);
        let ScanGradients { u, delta, a, b, c, d, mut z, delta_bias, mut initial } = gradients;
        let flags = Self::flags(inputs) | if whole { flags::WHOLE } else { 0 };
        let [ends, all] = &kernels;
        let mut launched = Launched::nothing(&all.0);
        for ((kernel, shared_bytes), chunks, flags) in
            [(ends, plan.chunks - 1, flags | flags::ENDS), (all, plan.chunks, flags)]
        {
            if plan.blocks * chunks == 0 {
                continue;
            }
            let launch = kernel
                .launch((plan.blocks * chunks) as u32, 32 * plan.warps as u32)
                .shared(*shared_bytes as u32)
                .arg(inputs.u)
                .arg(inputs.delta)
                .arg(inputs.z)
                .arg(d_out)
                .arg(inputs.b)
                .arg(inputs.c)
                .arg(inputs.a)
                .arg(inputs.d)
                .arg(inputs.delta_bias)
                .arg(inputs.restarts)
                .arg(checkpoints)
                .arg(d_last)
                .arg(&mut workspace.ends)
                .arg(&mut *u)
                .arg(&mut *delta)
                .arg(z.as_deref_mut())
                .arg(initial.as_deref_mut())
                .arg(&mut workspace.rows)
                .arg(&mut workspace.totals);
            let launch = shape.pass_to(launch).arg(plan.quads as i32).arg(plan.chunk_tiles as i32);
            launched = launched.and(&launch.arg(flags).run(stream)?);
        }
        // A thread has four numbers of B and C, which have gradients even without a channel.
        let fours = (inputs.b.len() + inputs.c.len()).div_ceil(4);
        let numbers = fours + 3 * inputs.a.len() + 2 * shape.channels;
        if numbers == 0 {
            return Ok(launched);
        }
        let launch = sums
            .launch(numbers.div_ceil(256).min(1 << 20) as u32, 256)
            .arg(&workspace.rows)
            .arg(&workspace.totals)
            .arg(b)
            .arg(c)
            .arg(a)
            .arg(d)
            .arg(delta_bias);
        let launch = shape
            .pass_to(launch)
            .arg((LANES * plan.lane_states) as i32)
            .arg(plan.parts as i32)
            .arg((shape.batch * plan.chunks) as i32)
            .arg(flags);
        Ok(launched.and(&launch.run(stream)?))
    }

    /// Checks all arrays.
    pub(super) fn check_backward(
        &self,
        inputs: &ScanInputs<S>,
        d_out: &Buffer<S>,
        checkpoints: &Buffer<f32>,
        gradients: &ScanGradients<S>,
        shape: ScanShape,
        options: ScanBackwardOptions,
    ) -> Result<(), Error> {
        let operation = "backward_into";
        inputs.check(operation, shape)?;
        check(operation, "d_out", d_out, shape.rows())?;
        check(operation, "checkpoints", checkpoints, shape.checkpoints())?;
        if shape.states.is_multiple_of(4) && !checkpoints.is_aligned_to(16) {
            let what = format!(
                "checkpoints of {} states that begin at no multiple of 16 bytes in {operation}",
                shape.states
            );
            return Err(Error::Unsupported { engine: "selective scan".into(), what });
        }
        check_optional(operation, "d_last", options.d_last, shape.states())?;
        gradients.check(operation, inputs, shape)
    }

    /// The kernels, with their shared memory, for the ends of chunks and for the gradients.
    fn backward_kernels(
        &self,
        inputs: &ScanInputs<S>,
        plan: BackwardPlan,
        shape: ScanShape,
        whole: bool,
    ) -> Result<[(Function, usize); 2], Error> {
        let varying = inputs.b.varies() && inputs.c.varies();
        let is_plain = plan.plain && varying && inputs.restarts.is_none();
        let lane_states = plan.lane_states.to_string();
        if !is_plain || self.exponential() != Exponential::Fast {
            let (source, name) = ("selective_scan_bwd.cu", "selective_scan_bwd");
            let kernel = self.kernels.function(&self.device, source, name, &[lane_states])?;
            let shared_bytes = plan.shared_bytes(varying);
            return Ok([(kernel.clone(), shared_bytes), (kernel, shared_bytes)]);
        }
        // Rows of f32 may be made of vectors and yet not of whole tiles.
        let aligned = whole && shape.seq_len.is_multiple_of(ScanShape::CHECKPOINT_STEPS);
        let source = "selective_scan_bwd_plain.cu";
        let parameters = [lane_states, aligned.to_string()];
        let kernel = |name| self.kernels.function(&self.device, source, name, &parameters);
        let [ends_bytes, bytes] = plan.plain_shared_bytes();
        let ends = kernel("selective_scan_bwd_plain_ends")?;
        Ok([(ends, ends_bytes), (kernel("selective_scan_bwd_plain")?, bytes)])
    }

    fn workspace(
        &self,
        operation: &str,
        lengths: Option<[usize; 3]>,
        stream: Option<&Stream>,
    ) -> Result<Workspace<'_>, Error> {
        let sum =
            lengths.and_then(|[rows, totals, ends]| rows.checked_add(totals)?.checked_add(ends));
        let (Some([rows, totals, _]), Some(sum)) = (lengths, sum) else {
            return Err(self.refused(format!(
                "{operation}: the workspace has more bytes than a number holds"
            )));
        };
        let whole = self.scratch(sum, stream)?;
        Ok(Workspace {
            rows: whole.slice(..rows)?,
            totals: whole.slice(rows..rows + totals)?,
            ends: whole.slice(rows + totals..)?,
            _whole: whole,
        })
    }
}

/// Parts of one scratch array, which is returned at the end.
struct Workspace<'a> {
    rows: Buffer<f32>,
    totals: Buffer<f32>,
    ends: Buffer<f32>,
    _whole: Scratch<'a, f32>,
}

impl<S: Storage> ScanGradients<'_, S> {
    fn check(
        &self,
        operation: &'static str,
        inputs: &ScanInputs<S>,
        shape: ScanShape,
    ) -> Result<(), Error> {
        check(operation, "gradient of u", self.u, shape.rows())?;
        check(operation, "gradient of delta", self.delta, shape.rows())?;
        check(operation, "gradient of A", self.a, shape.rates())?;
        self.b.check(operation, "gradient of B", &inputs.b, shape)?;
        self.c.check(operation, "gradient of C", &inputs.c, shape)?;
        let (d, delta_bias) = (self.d.as_deref(), self.delta_bias.as_deref());
        check_optional(operation, "gradient of D", d, shape.per_channel())?;
        check_optional(operation, "gradient of delta_bias", delta_bias, shape.per_channel())?;
        check_optional(operation, "gradient of z", self.z.as_deref(), shape.rows())?;
        if self.z.is_some() && inputs.z.is_none() {
            let what = format!("a gradient with respect to z without z in {operation}");
            return Err(Error::Unsupported { engine: "selective scan".into(), what });
        }
        check_optional(operation, "gradient of initial", self.initial.as_deref(), shape.states())
    }
}
