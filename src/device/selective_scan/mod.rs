//! Mamba's selective scan on a device, as one kernel.
//!
//! `forward` and `backward` have the two passes, `plan` the cut of a shape into blocks and chunks,
//! `ranks` the scan over several devices, `inputs`, `coupling` and `shape` the arrays and their
//! checks. The tests are in `tests/suite/selective_scan` and `tests/suite/scan_gradients`.

pub(super) mod backward;
mod coupling;
pub(super) mod forward;
mod inputs;
mod kernels;
mod plan;
mod ranks;
mod shape;

pub use coupling::{ScanCoupling, ScanCouplingGradient};
pub use inputs::ScanInputs;
pub use kernels::Exponential;
pub use ranks::ScanOver;
pub use shape::ScanShape;

use std::sync::Arc;

use super::recurrence::scratch::{Contents, Pool, Scratch};
use super::{Device, Storage, Stream};
use crate::Error;
use kernels::ScanKernels;

/// Mamba's selective scan over arrays on a device, fused into one kernel: nothing is expanded in
/// memory.
///
/// For each batch, channel `c` and state `n`, with `B` and `C` of the channel's group,
///
/// ```text
/// d_t   = softplus(delta_t + delta_bias_c)
/// h_t   = exp(d_t A_cn) h_{t-1} + (d_t u_t) B_tn
/// y_t   = sum over n of C_tn h_t  +  D_c u_t
/// out_t = y_t z_t sigmoid(z_t)
/// ```
///
/// which is the `selective_scan_fn` of the package `mamba_ssm`, where the formulas come from (Gu
/// and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023), `B` and `C`
/// varying or constant ([`ScanCoupling`]): `h_t` is the recurrence of this library with the
/// coefficients `exp(d_t A)`. Without `delta_bias`, `softplus`, `D` or `z` its part is left out.
/// Initial states and restarts, by which a row holds several sequences, are further options.
/// `delta` is a time and `A` a rate, in the same unit of time; everything else has no unit.
///
/// [`ScanInputs`] and [`ScanForwardOptions`] document the shape of each array. All are contiguous,
/// and the axis of time is the last one. Arrays may begin anywhere, except that the checkpoints of
/// a backward pass with a multiple of 4 states begin at a multiple of 16 bytes. Rows that begin at
/// multiples of 16 bytes are moved in whole vectors. Arrays with an axis of time are of type `S`:
/// `f32`, bf16 or f16. All others are `f32`, and so is all that is computed.
///
/// # Precision
///
/// Numbers are computed in `f32` and rounded to `S` once. The error of an exponential of a given
/// argument is at most two units in the last place, and results below the smallest normal number
/// may become zero. Decays near one keep all their digits: `exp(0)` is 1.
///
/// # Reproducible results
///
/// Each state is walked from the first step to the last, and the sum over the states is taken in
/// one order for each number of states. Where few channels would leave much of a device idle, long
/// sequences are cut into chunks of time, by a rule that depends on the shape alone
/// ([`ScanForwardOptions::chunks`], [`ScanBackwardOptions::chunks`]): the first state of a chunk is
/// computed from the ends of the chunks before it. So results do not depend on the number of
/// blocks, and on one device they have the same bits from run to run. [`Exponential::Exact`] gives
/// these bits on every device, the emulator included. [`Exponential::Fast`] computes decays,
/// softplus and gate with the GPU's own instructions, whose last bits NVIDIA does not define: they
/// may differ between generations of GPUs. The emulator has the bits that were measured on compute
/// capability 9.0, and gives the results of these GPUs. The two exponentials also differ from each
/// other.
///
/// [`ScanForwardOptions`]: super::ScanForwardOptions
/// [`ScanForwardOptions::chunks`]: super::ScanForwardOptions::chunks
/// [`ScanBackwardOptions::chunks`]: super::ScanBackwardOptions::chunks
///
/// ```
/// use linrec::device::{Device, Exponential, ScanCoupling, ScanInputs, ScanShape, SelectiveScan};
///
/// let device = Device::auto()?;
/// let scan = SelectiveScan::<f32>::new(&device, Exponential::Exact);
/// let shape = ScanShape { batch: 1, channels: 1, seq_len: 3, states: 2, groups: 1 };
/// let (b, c) = (device.upload(&[1.0_f32; 2 * 3])?, device.upload(&[1.0_f32, 10.0])?);
/// let inputs = ScanInputs {
///     u: &device.upload(&[1.0_f32, 1.0, 1.0])?,
///     delta: &device.upload(&[1.0_f32, 1.0, 1.0])?,
///     a: &device.upload(&[0.0_f32, -1e30])?, // a sum, and nothing but the step itself
///     b: ScanCoupling::Varying(&b),
///     c: ScanCoupling::Constant(&c),
///     d: None,
///     z: None,
///     delta_bias: None,
///     softplus: false,
///     initial: None,
///     restarts: None,
/// };
/// let mut out = device.allocate(3)?;
/// scan.forward_into(&inputs, &mut out, shape, Default::default())?;
/// assert_eq!(out.download()?, [11.0, 12.0, 13.0]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SelectiveScan<S> {
    device: Device,
    kernels: ScanKernels<S>,
    /// Intermediate results of calls. A clone shares them.
    workspaces: Arc<Pool<f32>>,
}

impl<S: Storage<Accum = f32>> SelectiveScan<S> {
    /// Makes the selective scan with one of two exponentials. Each kernel is loaded at its first
    /// call; a clone shares the loaded kernels.
    pub fn new(device: &Device, exponential: Exponential) -> SelectiveScan<S> {
        SelectiveScan {
            device: device.clone(),
            kernels: ScanKernels::new(exponential),
            workspaces: Arc::default(),
        }
    }

    /// Returns the device that it computes on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the exponential that it computes with.
    pub fn exponential(&self) -> Exponential {
        self.kernels.exponential()
    }

    /// Returns a scratch array of this length.
    fn scratch(&self, len: usize, stream: Option<&Stream>) -> Result<Scratch<'_, f32>, Error> {
        let contents = Contents { name: "workspace", zeros: false };
        self.workspaces.scratch(&self.device, stream, contents, len)
    }

    /// Returns the bits of the kernels' argument `flags` that both passes have.
    fn flags(inputs: &ScanInputs<S>) -> i32 {
        const SOFTPLUS: i32 = 1;
        const VARYING_B: i32 = 2;
        const VARYING_C: i32 = 4;
        let flags = [
            (inputs.softplus, SOFTPLUS),
            (inputs.b.varies(), VARYING_B),
            (inputs.c.varies(), VARYING_C),
        ];
        flags.into_iter().filter(|(is, _)| *is).map(|(_, flag)| flag).sum()
    }

    /// Checks that a grid has the blocks of a launch, and a block its shared memory.
    fn check_launch(
        &self,
        operation: &str,
        shape: ScanShape,
        blocks: usize,
        shared_bytes: usize,
    ) -> Result<(), Error> {
        let ScanShape { batch, channels, states, .. } = shape;
        let limits = self.device.attributes();
        let ([most, ..], most_bytes) = (limits.max_grid, limits.shared_bytes_opt_in);
        if blocks > most as usize {
            return Err(self.refused(format!(
                "{operation}: {channels} channels of {batch} batches take {blocks} blocks, \
                 and a grid has {most} at most; compute them in parts"
            )));
        }
        if shared_bytes > most_bytes as usize {
            return Err(self.refused(format!(
                "{operation}: {states} states take {shared_bytes} bytes of shared memory, \
                 and a block has {most_bytes} at most"
            )));
        }
        Ok(())
    }

    fn refused(&self, message: String) -> Error {
        Error::device(self.device.label(), message)
    }
}
