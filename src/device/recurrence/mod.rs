//! The project's kernels over arrays on a device.
//!
//! [`Recurrence`] is the public type. A call of either pass becomes a [`PassCall`], which is
//! checked once and then takes one way: [`Logarithms`] first computes coefficients, if they are
//! given as logarithms; [`Fastest`] looks up the kernel, unless one was named; [`OneKernel`]
//! launches it.
//!
//! The tests are in `tests/suite/device/recurrence.rs`; the contract (`tests/suite/contract.rs`)
//! compares the results of every kernel with the reference.

mod call;
mod choice;
mod fastest;
mod logarithms;
mod one;
mod options;
pub(super) mod scratch;

pub(super) use call::PassCall;
pub use choice::Choice;
pub use options::{BackwardOptions, ForwardOptions, Shape};

use std::any::Any;
use std::sync::Arc;

use super::{Buffer, Device, Function, Launched, Storage};
use crate::kernels::{KernelChoice, Pass, Program};
use crate::{Direction, Error};
use fastest::Fastest;
use logarithms::Logarithms;
pub(super) use one::CoScheduled;
use one::OneKernel;

/// The recurrence on a device, where its data stays.
///
/// Arrays have shape `[num_seqs, seq_len]`, row after row, in the type `S`; states have shape
/// `[num_seqs]`, in the type of computation, `S::Accum`.
///
/// The recurrence is computed by one kernel of the [catalogue](crate::kernels), or by the fastest
/// kernel for each call, as [`Choice`] selects. The fastest kernel is [`KernelChoice::best`] for
/// the element type, the pass, the shape, and whether all rows are whole 16-byte vectors. It is
/// loaded at the first call with the shape, and looked up at later calls. Loading may mean
/// compiling, which takes a second. Different kernels round in different orders, so that results of
/// different shapes may differ in their last bits.
///
/// On a GPU a kernel that is not shipped is compiled if NVRTC is found
/// ([`nvrtc`](crate::device::nvrtc)) or has compiled it before. A kernel that cannot be compiled is
/// not tried again, and the fastest shipped kernel takes its place. The emulator takes shipped
/// kernels only. [`Choice::FastestShipped`] and [`Choice::FastestOfAll`] change this.
///
/// # Large coefficients
///
/// Most kernels multiply the coefficients of consecutive steps before these meet a state. If such a
/// product overflows, results can be infinite or NaN where a loop's are finite.
/// [`Recurrence::in_order`] has a thread for each sequence, which walks along it as a loop does, in
/// both passes: with one rounding a step, and several times slower.
///
/// # Few long sequences
///
/// Most kernels give a sequence to one block. In [`KernelChoice::Waves`] and [`KernelChoice::Once`]
/// all blocks share each sequence, tile by tile. Results do not depend on how many blocks there
/// are: tiles follow from the shape, and are combined in one order. The launch is
/// [cooperative](crate::device::Launch::cooperative), with as many blocks as the device holds;
/// *once* has a block for each tile, and if there are more blocks than the device holds, each takes
/// the next tile when it starts. Blocks publish the transitions of their tiles in a workspace (16
/// bytes for each tile of `f32`, 64 for the widest type), which the recurrence keeps like the
/// arrays below. A block that spins for too long ends the kernel with an error.
///
/// # Logarithms
///
/// With [`ForwardOptions::log_coeffs`] coefficients are given as `a = ln c`. A separate kernel
/// computes `c = e^a` into an array that the recurrence allocates; after a backward pass another
/// kernel multiplies `d_coeffs` by `c`. A call queues all of them. The exponential consists of
/// multiply-adds, so that a GPU and the emulator give the same bits, and its error is less than one
/// unit in the last place. It is exactly 1 for 0 and 0 for -∞, and goes through the subnormal
/// numbers to 0 and through the largest numbers to ∞. For complex numbers the error is less than
/// three units of the round-off of `|c|`, for angles of any size. For f32 all arithmetic is in f32,
/// except for angles, which take f64.
///
/// Numbers of 16 bits are too coarse for intermediate results: `e^a` near 1 would lose the digits
/// that `a` has near 0. So the whole recurrence is then computed in `f32`, and each result is
/// rounded once, which moves five times as many bytes. The kernel is the chosen one for `f32`, with
/// the limits of that kernel.
///
/// The arrays (one of the coefficients' shape in the type of computation; with 16 bits three
/// forward and five backward) are kept for later calls, as long as the recurrence and its clones
/// live, and are replaced when larger ones are needed. A call that is [recorded](Device::record)
/// allocates arrays that belong to the graph.
///
/// ```
/// use linrec::device::{Choice, Device, Recurrence};
///
/// let device = Device::auto()?;
/// let recurrence = Recurrence::<f32>::new(&device, Choice::Fastest)?;
/// let inputs = device.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
/// let coeffs = device.upload(&[0.0_f32, 1.0, 0.5, 0.5])?;
/// let mut outputs = device.allocate(4)?;
/// let launched =
///     recurrence.forward_into(&inputs, &coeffs, &mut outputs, (1, 4), Default::default())?;
/// assert_eq!(outputs.download()?, [1.0, 3.0, 4.5, 6.25]);
/// println!("computed by {}", launched.choice().unwrap());
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Recurrence<S> {
    device: Device,
    choice: Choice,
    kernels: KernelSource<S>,
    /// True if the kernels are not from the catalogue's source.
    own_program: bool,
    /// [`Logarithms`], behind a type without the bound `S: Storage`, so that a struct can hold a
    /// recurrence without that bound. A clone shares them.
    logarithms: Arc<dyn Any + Send + Sync>,
}

#[derive(Debug, Clone)]
enum KernelSource<S> {
    One(Box<OneKernel<S>>),
    Fastest(Fastest<S>),
}

impl<S: Storage> Recurrence<S> {
    /// Makes the recurrence by a [`KernelChoice`], which is loaded now, or by the fastest kernels
    /// ([`Choice::Fastest`]), which are loaded later and shared by clones. On a device that has
    /// loaded a kernel before, this costs next to nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the chosen kernel is not shipped and cannot be compiled, or if the
    /// device refuses it.
    pub fn new(device: &Device, choice: impl Into<Choice>) -> Result<Recurrence<S>, Error> {
        let choice = choice.into();
        let shipped_only = match choice {
            Choice::Kernel(kernel) => {
                return Recurrence::from_program(device, kernel, &kernel.program(S::ELEMENT));
            }
            Choice::Fastest => return Ok(Recurrence::fastest(device)),
            Choice::FastestShipped => true,
            Choice::FastestOfAll => false,
        };
        let kernels = KernelSource::Fastest(Fastest::new(device, shipped_only));
        Ok(Recurrence::of(device, choice, kernels))
    }

    /// Makes the recurrence that takes the steps of each sequence one after the other, by the
    /// reference kernel: [see above](Recurrence#large-coefficients).
    ///
    /// ```
    /// use linrec::device::{Device, Recurrence};
    ///
    /// let device = Device::auto()?;
    /// let recurrence = Recurrence::<f32>::in_order(&device)?;
    /// let inputs = device.upload(&[0.0_f32, 0.0, 1.0])?;
    /// let coeffs = device.upload(&[1e30_f32, 1e30, 1e30])?; // their products are infinite
    /// let mut outputs = device.allocate(3)?;
    /// recurrence.forward_into(&inputs, &coeffs, &mut outputs, (1, 3), Default::default())?;
    /// assert_eq!(outputs.download()?, [0.0, 0.0, 1.0]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// [`KernelEngine::from`](super::KernelEngine) makes an engine of it, over arrays of the host.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device refuses the kernel.
    pub fn in_order(device: &Device) -> Result<Recurrence<S>, Error> {
        Recurrence::new(device, KernelChoice::default())
    }

    fn of(device: &Device, choice: Choice, kernels: KernelSource<S>) -> Recurrence<S> {
        let logarithms = Arc::new(Logarithms::<S>::default());
        Recurrence { device: device.clone(), choice, kernels, own_program: false, logarithms }
    }

    /// Makes the recurrence by [`Choice::Fastest`], which loads nothing and so cannot fail.
    pub(super) fn fastest(device: &Device) -> Recurrence<S> {
        let kernels = KernelSource::Fastest(Fastest::new(device, device.is_simt()));
        Recurrence::of(device, Choice::Fastest, kernels)
    }

    /// Makes the recurrence from another source, whose entries have the kernel's names, arguments
    /// and launch. A pass without entries is unsupported.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn from_program(
        device: &Device,
        kernel: KernelChoice,
        program: &Program,
    ) -> Result<Recurrence<S>, Error> {
        let kernels = KernelSource::One(Box::new(OneKernel::new(device, kernel, program)?));
        let own_program = *program != kernel.program(S::ELEMENT);
        Ok(Recurrence { own_program, ..Recurrence::of(device, Choice::Kernel(kernel), kernels) })
    }

    /// Returns the device that it computes on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the choice of the kernel.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Returns the kernel for a pass over arrays of this shape, and loads it if necessary.
    ///
    /// `whole` is true if all arrays begin at multiples of 16 bytes ([`Buffer::is_aligned_to`]), as
    /// whole buffers do. [`Launched::choice`] has the kernel that a call took.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device refuses a shipped kernel.
    pub fn kernel(
        &self,
        pass: Pass,
        shape: impl Into<Shape>,
        whole: bool,
    ) -> Result<KernelChoice, Error> {
        match &self.kernels {
            KernelSource::One(kernel) => Ok(kernel.choice()),
            KernelSource::Fastest(fastest) => {
                Ok(fastest.kernel(pass, shape.into(), whole)?.choice())
            }
        }
    }

    /// Returns whether it takes logarithms of coefficients for every shape that it takes.
    #[cfg(feature = "contract")]
    pub(crate) fn takes_logs(&self) -> bool {
        let wide = S::ELEMENT.accumulator();
        match self.choice {
            Choice::Kernel(_) if wide == S::ELEMENT => true,
            Choice::Kernel(kernel) => {
                !self.own_program && kernel.max_len(wide) == kernel.max_len(S::ELEMENT)
            }
            _ => true,
        }
    }

    /// Returns the kernels that would have been the fastest and could not be loaded, with the
    /// reasons. Shipped kernels took their places.
    pub fn refused(&self) -> Vec<(KernelChoice, Error)> {
        match &self.kernels {
            KernelSource::One(_) => Vec::new(),
            KernelSource::Fastest(fastest) => fastest.refused(),
        }
    }

    /// Returns the kernel's function for a pass, with the direction of the recurrence.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the program has no such function, or if the kernel depends on the
    /// call.
    pub fn function(&self, pass: Pass, direction: Direction) -> Result<&Function, Error> {
        match &self.kernels {
            KernelSource::One(kernel) => kernel.function(pass, direction),
            KernelSource::Fastest(_) => Err(Error::Unsupported {
                engine: self.choice.to_string(),
                what: String::from("one function for all shapes; name a kernel"),
            }),
        }
    }

    /// Computes the outputs `y_l = y_{l-1} * c_l + x_l` of every sequence, asynchronously.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if a buffer does not have `num_seqs * seq_len`, or a state
    /// `num_seqs` elements; [`Error::Unsupported`] if the kernel does not take sequences of that
    /// length; [`Error::Device`] if a buffer is on another device, if there are more sequences than
    /// a grid takes, if there is no memory for the coefficients of logarithms, or if the device
    /// fails.
    pub fn forward_into(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let shape = shape.into();
        self.compute_as(shape, PassCall::forward([inputs, coeffs], [outputs], shape, options))
    }

    /// Computes the gradients of a loss from its gradient `d_outputs` with respect to the outputs,
    /// asynchronously.
    ///
    /// `outputs` are the outputs of the forward pass. If the loss also depends on the final state,
    /// first add its gradient to the last computed entry of `d_outputs`.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::forward_into`].
    // Five arrays of one kind go in and out; a struct would name them no better.
    #[allow(clippy::too_many_arguments)]
    pub fn backward_into(
        &self,
        d_outputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &Buffer<S>,
        d_inputs: &mut Buffer<S>,
        d_coeffs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let shape = shape.into();
        let inputs = [d_outputs, coeffs, outputs];
        self.compute_as(shape, PassCall::backward(inputs, [d_inputs, d_coeffs], shape, options))
    }

    /// Computes a pass by the kernel that is the fastest for the shape `like`.
    pub(super) fn compute_as<const I: usize, const O: usize>(
        &self,
        like: Shape,
        call: PassCall<S, I, O>,
    ) -> Result<Launched, Error> {
        call.check()?;
        if call.log_coeffs {
            return self.compute_from_logs(call, |wide, call| wide.compute_as(like, call));
        }
        let fastest;
        let kernel = match &self.kernels {
            KernelSource::One(kernel) => &**kernel,
            KernelSource::Fastest(kernels) => {
                fastest = kernels.kernel(call.pass, like, call.is_aligned())?;
                &*fastest
            }
        };
        kernel.compute(call, None)
    }

    /// Computes a pass whose coefficients are given as logarithms: `plain` computes it from the
    /// coefficients, in the type of computation, by the recurrence of that type. The arrays have
    /// been checked.
    pub(super) fn compute_from_logs<F, const I: usize, const O: usize>(
        &self,
        call: PassCall<S, I, O>,
        plain: F,
    ) -> Result<Launched, Error>
    where
        F: FnOnce(&Recurrence<S::Accum>, PassCall<S::Accum, I, O>) -> Result<Launched, Error>,
    {
        // The logarithms were made for this very type.
        let logarithms: Option<&Logarithms<S>> = self.logarithms.downcast_ref();
        let logarithms = logarithms.ok_or_else(|| Error::Unsupported {
            engine: self.choice.to_string(),
            what: String::from("log_coeffs: true"),
        })?;
        logarithms.compute(self, call, plain)
    }

    /// Computes a pass with plain coefficients alongside the launches of other ranks, by a kernel
    /// that was named.
    pub(super) fn compute_alongside<const I: usize, const O: usize>(
        &self,
        call: PassCall<S, I, O>,
        launches: CoScheduled,
    ) -> Result<Launched, Error> {
        call.check()?;
        match &self.kernels {
            KernelSource::One(kernel) => kernel.compute(call, Some(launches)),
            KernelSource::Fastest(_) => Err(Error::Unsupported {
                engine: self.choice.to_string(),
                what: String::from("one kernel for all ranks; name a kernel"),
            }),
        }
    }
}
