//! The backward pass.

use super::plan::{LANES, Plan};
use super::shape::check;
use super::{Exponential, ScanCouplingGradient, ScanInputs, ScanShape, SelectiveScan};
use crate::Error;
use crate::device::recurrence::scratch::Scratch;
use crate::device::{Buffer, Function, Launched, Storage, Stream};

/// Where [`SelectiveScan::backward_into`] writes the gradients, each in the shape of what it
/// belongs to in [`ScanInputs`]. All of each array is written. What is `None` is not wanted.
#[derive(Debug)]
pub struct ScanGradients<'a, S> {
    /// With respect to `u`.
    pub u: &'a mut Buffer<S>,
    /// With respect to `delta`, before bias and softplus.
    pub delta: &'a mut Buffer<S>,
    /// With respect to `A`.
    pub a: &'a mut Buffer<f32>,
    /// With respect to `B`.
    pub b: ScanCouplingGradient<'a, S>,
    /// With respect to `C`.
    pub c: ScanCouplingGradient<'a, S>,
    /// With respect to `D`, whether there is one or not.
    pub d: Option<&'a mut Buffer<f32>>,
    /// With respect to `z`, if there is one.
    pub z: Option<&'a mut Buffer<S>>,
    /// With respect to `delta_bias`, whether there is one or not.
    pub delta_bias: Option<&'a mut Buffer<f32>>,
    /// With respect to the states before the first step, whether they are given or zero.
    pub initial: Option<&'a mut Buffer<f32>>,
}

/// The options of [`SelectiveScan::backward_into`]. By default the last states count for nothing,
/// and the stream is the device's default one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScanBackwardOptions<'a> {
    /// The gradient with respect to the last states, `[batch, channels, states]`; `None` means
    /// zero.
    pub d_last: Option<&'a Buffer<f32>>,
    /// Into how many chunks of time sequences are cut, at most, so that few channels keep the whole
    /// device busy: all are of whole tiles of 8 steps. `None` means what is expected to be fastest,
    /// by the shape alone. Gradients for different numbers of chunks differ in their last bits. In
    /// one chunk they are walked from the last step to the first, so that a sequence may be
    /// computed in stretches: with the first gradient of the stretch behind as
    /// [`d_last`](ScanBackwardOptions::d_last), all but those that are sums over time have the bits
    /// of one call (where that one is of 2^22 steps at most).
    pub chunks: Option<usize>,
    /// The stream to work on, or that of a [recording](crate::device::Device::record); `None` means
    /// [`Device::stream`](crate::device::Device::stream).
    pub stream: Option<&'a Stream>,
}

/// Bits of the kernels' argument `flags`, beside those of both passes.
mod flags {
    pub(super) const WHOLE: i32 = 8;
    pub(super) const ENDS: i32 = 16;
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Computes the gradients of a loss from its gradient with respect to the outputs, `d_out`, and
    /// from what [`SelectiveScan::forward_into`] left for it: `checkpoints`, of the same inputs.
    ///
    /// A call queues two kernels, or three where sequences are cut so that few channels keep the
    /// whole device busy. No number is added up in an order that differs from run to run: the
    /// gradients have the same bits each time.
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
    /// assert_eq!(u.download()?, [3.0, 2.0, 1.0]); // in how many sums each input is
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`SelectiveScan::forward_into`]; [`Error::Unsupported`] for a gradient with respect to a
    /// `z` that is not there, or with respect to a `B` or `C` of the other kind, or for
    /// `checkpoints` that are read in vectors, those of a multiple of 4 states, and begin at no
    /// multiple of 16 bytes; [`Error::Device`] if there is no memory for the workspace, which later
    /// calls use again.
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
        inputs.check(operation, shape)?;
        check(operation, "d_out", d_out, shape.rows())?;
        check(operation, "checkpoints", checkpoints, shape.checkpoints())?;
        if shape.states.is_multiple_of(4) && !checkpoints.is_aligned_to(16) {
            let states = shape.states;
            let what = format!(
                "checkpoints of {states} states that begin at no multiple of 16 bytes in {operation}"
            );
            return Err(Error::Unsupported { engine: "selective scan".into(), what });
        }
        options
            .d_last
            .map_or(Ok(()), |d_last| check(operation, "d_last", d_last, shape.states()))?;
        gradients.check(operation, inputs, shape)?;

        let (vary_b, vary_c) = (inputs.b.varies(), inputs.c.varies());
        let plan = Plan::new(shape, vary_b && vary_c, self.exponential());
        let plan = options.chunks.map_or(plan, |most| plan.cut(most));
        let whole = gradients.whole_rows(inputs, d_out, shape);
        let is_plain = plan.plain
            && vary_b
            && vary_c
            && inputs.restarts.is_none()
            && self.exponential() == Exponential::Fast;
        let kernel = self.backward_kernel(plan)?;
        // Rows of f32 may be made of vectors and yet not of whole tiles.
        let aligned = whole && shape.seq_len.is_multiple_of(ScanShape::CHECKPOINT_STEPS);
        let plain = if is_plain { Some(self.plain_backward_kernels(plan, aligned)?) } else { None };
        let [ends_bytes, plain_bytes] = plan.plain_shared_bytes();
        let sums = self.kernels.entry(
            &self.device,
            "selective_scan_bwd.cu",
            format!("selective_scan_bwd_sums<{}>", S::ELEMENT.cuda_name()),
        )?;
        let flags = Self::flags(inputs) | if whole { flags::WHOLE } else { 0 };
        let shared_bytes = plan.shared_bytes(vary_b && vary_c);
        let blocks = self.check_backward_launch(operation, shape, plan, shared_bytes)?;
        let mut workspace =
            self.workspace(operation, plan.workspace(shape, vary_b || vary_c), options.stream)?;

        let home = self.device.stream();
        let stream = options.stream.unwrap_or(&home);
        let ScanGradients { u, delta, a, b, c, d, z, delta_bias, initial } = gradients;
        let (mut u, mut delta, mut z, mut initial) = (u.slice(..)?, delta.slice(..)?, z, initial);
        let mut launched = Launched::nothing(&kernel);
        for first in [true, false] {
            let chunks = if first { plan.chunks - 1 } else { plan.chunks };
            let blocks = blocks * chunks as u32;
            if blocks == 0 {
                continue;
            }
            let (kernel, shared_bytes) = match &plain {
                Some([_, plain]) if !first => (plain, plain_bytes),
                Some([ends, _]) => (ends, ends_bytes),
                None => (&kernel, shared_bytes),
            };
            let launch = kernel
                .launch(blocks, 32 * plan.warps as u32)
                .shared(shared_bytes as u32)
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
                .arg(options.d_last)
                .arg(&mut workspace.ends)
                .arg(&mut u)
                .arg(&mut delta)
                .arg(z.as_deref_mut())
                .arg(initial.as_deref_mut())
                .arg(&mut workspace.rows)
                .arg(&mut workspace.totals)
                .arg(shape.batch as i32)
                .arg(shape.channels as i32)
                .arg(shape.groups as i32)
                .arg(shape.states as i32)
                .arg(shape.seq_len as i64)
                .arg(plan.quads as i32)
                .arg(plan.chunk_tiles as i32)
                .arg(if first { flags | flags::ENDS } else { flags });
            launched = launched.and(&launch.run(stream)?);
        }
        // By fours for B and C, which have gradients without any channel, too.
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
            .arg(delta_bias)
            .arg(shape.batch as i32)
            .arg(shape.channels as i32)
            .arg(shape.groups as i32)
            .arg(shape.states as i32)
            .arg(shape.seq_len as i64)
            .arg((LANES * plan.lane_states) as i32)
            .arg(plan.parts as i32)
            .arg((shape.batch * plan.chunks) as i32)
            .arg(flags);
        Ok(launched.and(&launch.run(stream)?))
    }

    fn backward_kernel(&self, plan: Plan) -> Result<Function, Error> {
        let parameters = [plan.lane_states.to_string()];
        self.kernels.function(
            &self.device,
            "selective_scan_bwd.cu",
            "selective_scan_bwd",
            &parameters,
        )
    }

    /// For the first pass over the chunks, and for the gradients.
    fn plain_backward_kernels(&self, plan: Plan, aligned: bool) -> Result<[Function; 2], Error> {
        let source = "selective_scan_bwd_plain.cu";
        let parameters = [plan.lane_states.to_string(), aligned.to_string()];
        let kernel = |name| self.kernels.function(&self.device, source, name, &parameters);
        Ok([kernel("selective_scan_bwd_plain_ends")?, kernel("selective_scan_bwd_plain")?])
    }

    /// The blocks of a chunk, if a grid takes those of all.
    fn check_backward_launch(
        &self,
        operation: &str,
        shape: ScanShape,
        plan: Plan,
        shared: usize,
    ) -> Result<u32, Error> {
        let limits = self.device.attributes();
        let [most, ..] = limits.max_grid;
        let blocks = plan.blocks.saturating_mul(plan.chunks);
        if blocks > most as usize {
            return Err(self.refused(format!(
                "{operation}: {} channels of {} batches take {blocks} blocks, and a grid has {most} at most; compute \
                 them in parts",
                shape.channels, shape.batch
            )));
        }
        if shared > limits.shared_bytes_opt_in as usize {
            return Err(self.refused(format!(
                "{operation}: {} states take {shared} bytes of shared memory, and a block has {} at most",
                shape.states, limits.shared_bytes_opt_in
            )));
        }
        Ok(plan.blocks as u32)
    }

    fn workspace(
        &self,
        operation: &str,
        lengths: Option<[usize; 3]>,
        stream: Option<&Stream>,
    ) -> Result<Workspace<'_>, Error> {
        let whole =
            lengths.and_then(|[rows, totals, ends]| rows.checked_add(totals)?.checked_add(ends));
        let (Some([rows, totals, _]), Some(whole)) = (lengths, whole) else {
            return Err(self.refused(format!(
                "{operation}: the workspace has more bytes than a number holds"
            )));
        };
        let whole = self.scratch(whole, stream)?;
        Ok(Workspace {
            rows: whole.slice(..rows)?,
            totals: whole.slice(rows..rows + totals)?,
            ends: whole.slice(rows + totals..)?,
            _whole: whole,
        })
    }
}

/// Parts of one array, which is given back at the end.
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
        for (name, array) in
            [("gradient of D", &self.d), ("gradient of delta_bias", &self.delta_bias)]
        {
            array
                .as_deref()
                .map_or(Ok(()), |array| check(operation, name, array, shape.per_channel()))?;
        }
        if let Some(z) = self.z.as_deref() {
            check(operation, "gradient of z", z, shape.rows())?;
            if inputs.z.is_none() {
                let what = format!("a gradient with respect to z without z in {operation}");
                return Err(Error::Unsupported { engine: "selective scan".into(), what });
            }
        }
        let initial = self.initial.as_deref();
        initial.map_or(Ok(()), |initial| {
            check(operation, "gradient of initial", initial, shape.states())
        })
    }

    /// Whether each row of each array consists of whole vectors of 16 bytes that begin at multiples
    /// of 16.
    fn whole_rows(&self, inputs: &ScanInputs<S>, d_out: &Buffer<S>, shape: ScanShape) -> bool {
        let arrays = [inputs.u, inputs.delta, d_out];
        let couplings = inputs.b.is_aligned_to(16)
            && inputs.c.is_aligned_to(16)
            && self.b.is_aligned_to(16)
            && self.c.is_aligned_to(16);
        (shape.seq_len * S::ELEMENT.bytes()).is_multiple_of(16)
            && couplings
            && arrays.into_iter().chain(inputs.z).all(|array| array.is_aligned_to(16))
    }
}
