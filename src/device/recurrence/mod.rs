//! The project's kernels over arrays on a device.

mod choice;
mod fastest;
mod logarithms;
mod one;
mod options;
pub(super) mod room;
mod shape;

pub use choice::Choice;
pub use options::{BackwardOptions, ForwardOptions};
pub use shape::Shape;

use std::any::Any;
use std::sync::Arc;

use super::{Buffer, Device, Function, Launched, Storage};
use crate::kernels::{KernelChoice, Pass, Program};
use crate::{Direction, Error};
use fastest::Fastest;
use logarithms::Logarithms;
pub(super) use one::Beside;
use one::OneKernel;

/// The recurrence on a device: its data stays there.
///
/// Arrays have shape `[num_seqs, seq_len]`, row after row, in the type `S`; states have shape
/// `[num_seqs]`, in the type that is computed with, `S::Accum`.
///
/// It is computed by one kernel of the [catalogue](crate::kernels), or by the fastest for each
/// call: [`Choice`] says which. The fastest is that of [`KernelChoice::best`] for the element type,
/// the pass, the shape, and whether all rows are whole 16-byte vectors. It is loaded when it is
/// first needed, which may mean that it is compiled, and takes a second; later calls with the shape
/// look it up. Different kernels round in different orders, so that results of different shapes may
/// differ in their last bits.
///
/// On a GPU a kernel that is not shipped is compiled if NVRTC is found
/// ([`nvrtc`](crate::device::nvrtc)) or was compiled before. One that cannot be compiled is not
/// tried again, and the fastest shipped one takes its place. The emulator takes shipped kernels
/// only. [`Choice::FastestShipped`] and [`Choice::FastestOfAll`] change either.
///
/// # Few long sequences
///
/// Most kernels give a sequence to one block. In [`KernelChoice::Waves`] and [`KernelChoice::Once`]
/// all blocks share each sequence, tile by tile. Results do not depend on how many blocks there
/// are: tiles follow from the shape, and are combined in one order. The launch is
/// [cooperative](crate::device::Launch::cooperative), with as many blocks as the device holds;
/// *once* takes a block for each tile, and where these are too many, each takes its tile as it
/// comes. Blocks tell each other what their tiles do in a workspace (16 bytes for each tile of
/// `f32`, 64 for the widest type), which the recurrence keeps as it does the arrays below. A block
/// that waits in vain ends the kernel with an error instead of waiting for ever.
///
/// # Logarithms
///
/// With [`ForwardOptions::log_coeffs`] coefficients are given as `a = ln c`. A kernel of its own
/// computes `c = e^a` into an array that the recurrence allocates; behind a backward pass another
/// one makes `d_coeffs * c` of the gradient. A call queues all of them. The exponential consists of
/// multiply-adds, so that a GPU and the emulator give the same bits, and is off by less than one
/// unit in the last place; it is exactly 1 for 0 and 0 for -∞, and goes through the subnormal
/// numbers to 0 and through the largest ones to ∞. Of complex numbers the error is less than three
/// units of the round-off of `|c|`, for angles of any size. For f32 all of it is arithmetic of f32;
/// angles take f64.
///
/// Numbers of 16 bits are too coarse for what is computed on the way: `e^a` near 1 would lose what
/// `a` has near 0. So the whole recurrence is then computed in `f32` and each result is rounded
/// once, which moves five times as many bytes. The kernel is the chosen one for `f32`, with that
/// one's limits.
///
/// The arrays (one of the coefficients' shape in the type of computation; with 16 bits three
/// forward and five backward) are kept for later calls, as long as the recurrence and its clones
/// live; larger ones take their place when they are needed. A call that is
/// [recorded](Device::record) allocates its own, which belong to the graph.
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
    kernels: Kernels<S>,
    /// Whether the kernels are of another source than the catalogue's.
    own_program: bool,
    /// [`Logarithms`], without what they ask of `S`, so that a recurrence can be held without it. A
    /// clone shares them.
    logarithms: Arc<dyn Any + Send + Sync>,
}

#[derive(Debug, Clone)]
enum Kernels<S> {
    One(Box<OneKernel<S>>),
    Fastest(Fastest<S>),
}

impl<S: Storage> Recurrence<S> {
    /// The recurrence by a [`KernelChoice`], which is loaded, or by the fastest
    /// ([`Choice::Fastest`]), of which none is loaded yet; a clone shares what is loaded later. On
    /// a device that has loaded a kernel before, this costs next to nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if a kernel that was chosen is not shipped and cannot be compiled, or the
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
        let kernels = Kernels::Fastest(Fastest::new(device, shipped_only));
        Ok(Recurrence::of(device, choice, kernels))
    }

    fn of(device: &Device, choice: Choice, kernels: Kernels<S>) -> Recurrence<S> {
        let logarithms = Arc::new(Logarithms::<S>::default());
        Recurrence { device: device.clone(), choice, kernels, own_program: false, logarithms }
    }

    /// By [`Choice::Fastest`], which loads nothing and so cannot fail.
    pub(super) fn fastest(device: &Device) -> Recurrence<S> {
        let kernels = Kernels::Fastest(Fastest::new(device, device.is_simt()));
        Recurrence::of(device, Choice::Fastest, kernels)
    }

    /// The recurrence by another source: one that has entries of the kernel's names, with the same
    /// arguments and the same launch, and computes in its own way. A pass that it has no entries
    /// for is unsupported.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn from_program(
        device: &Device,
        kernel: KernelChoice,
        program: &Program,
    ) -> Result<Recurrence<S>, Error> {
        let kernels = Kernels::One(Box::new(OneKernel::new(device, kernel, program)?));
        let own_program = *program != kernel.program(S::ELEMENT);
        Ok(Recurrence { own_program, ..Recurrence::of(device, Choice::Kernel(kernel), kernels) })
    }

    /// The device that it computes on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// By which kernel, or that it is the fastest.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// The kernel for a pass over arrays of this shape, loaded if it was not yet.
    ///
    /// `whole` says that all arrays begin at multiples of 16 bytes ([`Buffer::is_aligned_to`]), as
    /// whole buffers do. Which kernel a call took says [`Launched::choice`].
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device refuses a kernel that is shipped.
    pub fn kernel(
        &self,
        pass: Pass,
        shape: impl Into<Shape>,
        whole: bool,
    ) -> Result<KernelChoice, Error> {
        match &self.kernels {
            Kernels::One(kernel) => Ok(kernel.choice()),
            Kernels::Fastest(fastest) => Ok(fastest.kernel(pass, shape.into(), whole)?.choice()),
        }
    }

    fn logarithms(&self) -> Result<&Logarithms<S>, Error> {
        // They were made for this very type.
        self.logarithms.downcast_ref().ok_or_else(|| Error::Unsupported {
            engine: self.choice.to_string(),
            what: String::from("log_coeffs: true"),
        })
    }

    /// Whether it takes coefficients as logarithms for every shape that it takes.
    #[cfg(feature = "contract")]
    pub(super) fn takes_logs(&self) -> bool {
        let wide = S::ELEMENT.accumulator();
        match self.choice {
            Choice::Kernel(_) if wide == S::ELEMENT => true,
            Choice::Kernel(kernel) => {
                !self.own_program && kernel.max_len(wide) == kernel.max_len(S::ELEMENT)
            }
            _ => true,
        }
    }

    /// The kernels that would have been the fastest and could not be had, and why; shipped ones
    /// took their places.
    pub fn refused(&self) -> Vec<(KernelChoice, Error)> {
        match &self.kernels {
            Kernels::One(_) => Vec::new(),
            Kernels::Fastest(fastest) => fastest.refused(),
        }
    }

    /// The kernel's function for a pass, with the direction of the recurrence.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the program has none, or if the kernel depends on the call.
    pub fn function(&self, pass: Pass, direction: Direction) -> Result<&Function, Error> {
        match &self.kernels {
            Kernels::One(kernel) => kernel.function(pass, direction),
            Kernels::Fastest(_) => Err(Error::Unsupported {
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
    /// length; [`Error::Device`] if one is on another device, if there are more sequences than a
    /// grid takes, if there is no memory for the coefficients of logarithms, or if the device
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
        self.forward_as(shape, inputs, coeffs, outputs, shape, options)
    }

    /// The same by the kernel that is the fastest for another shape.
    pub(super) fn forward_as(
        &self,
        like: Shape,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: Shape,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        if options.log_coeffs {
            let all = (inputs, coeffs, outputs);
            return self.forward_with_logs(all, shape, options, |wide, all, options| {
                wide.forward_as(like, all.0, all.1, all.2, shape, options)
            });
        }
        let fastest;
        let kernel = match &self.kernels {
            Kernels::One(kernel) => &**kernel,
            Kernels::Fastest(kernels) => {
                // Before a kernel is loaded for a shape that no array has.
                shape.check_arrays("forward_into", &[("inputs", inputs)])?;
                let whole = [inputs, coeffs, &*outputs].iter().all(|array| array.is_aligned_to(16));
                fastest = kernels.kernel(Pass::Forward, like, whole)?;
                &*fastest
            }
        };
        kernel.forward_into((inputs, coeffs, outputs), shape, options, None)
    }

    /// Computes the gradients of a loss from its gradient `d_outputs` with respect to the outputs,
    /// asynchronously.
    ///
    /// `outputs` are those of the forward pass. If the loss also depends on the final state, add
    /// its gradient to the last computed entry of `d_outputs` first.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::forward_into`].
    // Five arrays go in and out, and each is of the same kind; a struct would name them no better.
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
        let (inputs, results) = ([d_outputs, coeffs, outputs], [d_inputs, d_coeffs]);
        self.backward_as(shape, inputs, results, shape, options)
    }

    /// The same by the kernel that is the fastest for another shape.
    pub(super) fn backward_as(
        &self,
        like: Shape,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        if options.log_coeffs {
            let (inputs, results) = ([d_outputs, coeffs, outputs], [d_inputs, d_coeffs]);
            return self.backward_with_logs(
                inputs,
                results,
                shape,
                options,
                |wide, inputs, results, options| {
                    wide.backward_as(like, inputs, results, shape, options)
                },
            );
        }
        let fastest;
        let kernel = match &self.kernels {
            Kernels::One(kernel) => &**kernel,
            Kernels::Fastest(kernels) => {
                shape.check_arrays("backward_into", &[("d_outputs", d_outputs)])?;
                let arrays = [d_outputs, coeffs, outputs, &*d_inputs, &*d_coeffs];
                let whole = arrays.iter().all(|array| array.is_aligned_to(16));
                fastest = kernels.kernel(Pass::Backward, like, whole)?;
                &*fastest
            }
        };
        let inputs = [d_outputs, coeffs, outputs];
        kernel.backward_into(inputs, [d_inputs, d_coeffs], shape, options, None)
    }

    /// As [`Recurrence::forward_into`], beside the launches of other ranks: by a kernel that was
    /// named, with plain coefficients.
    pub(super) fn forward_beside(
        &self,
        all: (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        shape: Shape,
        options: ForwardOptions<S::Accum>,
        beside: Beside,
    ) -> Result<Launched, Error> {
        self.named()?.forward_into(all, shape, options, Some(beside))
    }

    /// The same of the gradients.
    pub(super) fn backward_beside(
        &self,
        inputs: [&Buffer<S>; 3],
        results: [&mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<S::Accum>,
        beside: Beside,
    ) -> Result<Launched, Error> {
        self.named()?.backward_into(inputs, results, shape, options, Some(beside))
    }

    fn named(&self) -> Result<&OneKernel<S>, Error> {
        match &self.kernels {
            Kernels::One(kernel) => Ok(kernel),
            Kernels::Fastest(_) => Err(Error::Unsupported {
                engine: self.choice.to_string(),
                what: String::from("one kernel for all ranks; name a kernel"),
            }),
        }
    }

    /// The outputs where coefficients are given as logarithms: `plain` computes them from the
    /// coefficients, in the type that is computed with, and the recurrence over it.
    pub(super) fn forward_with_logs(
        &self,
        (inputs, logs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        shape: Shape,
        options: ForwardOptions<S::Accum>,
        plain: impl FnOnce(
            &Recurrence<S::Accum>,
            (&Buffer<S::Accum>, &Buffer<S::Accum>, &mut Buffer<S::Accum>),
            ForwardOptions<S::Accum>,
        ) -> Result<Launched, Error>,
    ) -> Result<Launched, Error> {
        self.logarithms()?.forward_into(self, (inputs, logs, outputs), shape, options, plain)
    }

    /// As [`Recurrence::forward_with_logs`], of the gradients.
    pub(super) fn backward_with_logs(
        &self,
        inputs: [&Buffer<S>; 3],
        results: [&mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<S::Accum>,
        plain: impl FnOnce(
            &Recurrence<S::Accum>,
            [&Buffer<S::Accum>; 3],
            [&mut Buffer<S::Accum>; 2],
            BackwardOptions<S::Accum>,
        ) -> Result<Launched, Error>,
    ) -> Result<Launched, Error> {
        self.logarithms()?.backward_into(self, inputs, results, shape, options, plain)
    }
}
