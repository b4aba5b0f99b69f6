//! The project's kernels over arrays on a device.

mod auto;
mod options;
mod shape;

pub use auto::AutoRecurrence;
pub use options::{BackwardOptions, ForwardOptions};
pub use shape::Shape;

use std::marker::PhantomData;

use super::{Buffer, Device, Function, Launch, Launched, Storage, Stream};
use crate::kernels::{KernelChoice, Pass, Program};
use crate::{Direction, Error};

/// The recurrence on a device, computed by one kernel: its data stays there. [`AutoRecurrence`] picks
/// the kernel by itself.
///
/// Arrays have shape `[num_seqs, seq_len]`, row after row, in the type `S`; states have shape
/// `[num_seqs]`, in the type that is computed with, `S::Accum`.
#[derive(Debug, Clone)]
pub struct Recurrence<S> {
    device: Device,
    choice: KernelChoice,
    forward: Option<OfDirection>,
    backward: Option<OfDirection>,
    storage: PhantomData<fn() -> S>,
}

#[derive(Debug, Clone)]
struct OfDirection {
    forward: Function,
    reverse: Function,
}

impl<S: Storage> Recurrence<S> {
    /// Loads the kernel. On a device that has loaded it before, this costs next to nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the kernel is not shipped and cannot be compiled, or the device refuses
    /// it.
    pub fn new(device: &Device, choice: KernelChoice) -> Result<Recurrence<S>, Error> {
        Recurrence::from_program(device, choice, &choice.program(S::ELEMENT))
    }

    /// The same with another source: one that has entries of the kernel's names, with the same arguments
    /// and the same launch, and computes in its own way. A pass that it has no entries for is unsupported.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn from_program(
        device: &Device,
        choice: KernelChoice,
        program: &Program,
    ) -> Result<Recurrence<S>, Error> {
        let module = device.program(program)?;
        let load = |pass| -> Result<Option<OfDirection>, Error> {
            let entry = |direction| choice.entry(S::ELEMENT, pass, direction);
            let (forward, reverse) = (entry(Direction::Forward), entry(Direction::Reverse));
            if ![&forward, &reverse].iter().all(|entry| program.entries.contains(entry)) {
                return Ok(None);
            }
            let (forward, reverse) = (module.function(&forward)?, module.function(&reverse)?);
            Ok(Some(OfDirection { forward, reverse }))
        };
        let (forward, backward) = (load(Pass::Forward)?, load(Pass::Backward)?);
        Ok(Recurrence { device: device.clone(), choice, forward, backward, storage: PhantomData })
    }

    /// The device that it computes on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel that it computes with.
    pub fn choice(&self) -> KernelChoice {
        self.choice
    }

    /// The kernel's function for a pass, with the direction of the recurrence.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the program has none.
    pub fn function(&self, pass: Pass, direction: Direction) -> Result<&Function, Error> {
        let functions = match pass {
            Pass::Forward => &self.forward,
            Pass::Backward => &self.backward,
        };
        match (functions, direction) {
            (Some(functions), Direction::Forward) => Ok(&functions.forward),
            (Some(functions), Direction::Reverse) => Ok(&functions.reverse),
            (None, _) => {
                let entry = self.choice.entry(S::ELEMENT, pass, direction);
                let what = format!("what takes `{entry}`, which its program does not have");
                Err(Error::Unsupported { engine: self.choice.label(), what })
            }
        }
    }

    /// Computes the outputs `y_l = y_{l-1} * c_l + x_l` of every sequence, asynchronously.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if a buffer does not have `num_seqs * seq_len`, or a state `num_seqs`
    /// elements; [`Error::Unsupported`] if the kernel does not take sequences of that length;
    /// [`Error::Device`] if one is on another device, if there are more sequences than a
    /// grid takes, or if the device fails.
    pub fn forward_into(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let (operation, shape) = ("forward_into", shape.into());
        let ForwardOptions { direction, initial, final_state, stream } = options;
        let arrays = [("inputs", inputs), ("coeffs", coeffs), ("outputs", &*outputs)];
        shape.check_arrays(operation, &arrays)?;
        let states = [("initial", initial), ("final_state", final_state.as_deref())];
        shape.check_states(operation, &states)?;
        let function = self.function(Pass::Forward, direction)?;
        self.check_words(operation, shape, &[inputs, coeffs, outputs])?;
        let Some(launch) = self.begin(operation, Pass::Forward, function, shape)? else {
            return Ok(Launched::nothing(function).of(self.choice));
        };
        let launch = launch.arg(inputs).arg(coeffs).arg(outputs).arg(initial).arg(final_state);
        self.finish(launch, shape, direction, stream)
    }

    /// Computes the gradients of a loss from its gradient `d_outputs` with respect to the outputs,
    /// asynchronously.
    ///
    /// `outputs` are those of the forward pass. If the loss also depends on the final state, add its
    /// gradient to the last computed entry of `d_outputs` first.
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
        let (operation, shape) = ("backward_into", shape.into());
        let BackwardOptions { direction, initial, d_initial, stream } = options;
        let arrays = [("d_outputs", d_outputs), ("coeffs", coeffs), ("outputs", outputs)];
        shape.check_arrays(operation, &arrays)?;
        shape.check_arrays(operation, &[("d_inputs", &*d_inputs), ("d_coeffs", &*d_coeffs)])?;
        let states = [("initial", initial), ("d_initial", d_initial.as_deref())];
        shape.check_states(operation, &states)?;
        let function = self.function(Pass::Backward, direction)?;
        self.check_words(operation, shape, &[d_outputs, coeffs, outputs, d_inputs, d_coeffs])?;
        let Some(launch) = self.begin(operation, Pass::Backward, function, shape)? else {
            return Ok(Launched::nothing(function).of(self.choice));
        };
        let launch = launch.arg(d_outputs).arg(coeffs).arg(outputs).arg(initial);
        let launch = launch.arg(d_inputs).arg(d_coeffs).arg(d_initial);
        self.finish(launch, shape, direction, stream)
    }

    /// Refuses what a kernel for rows of whole words does not take.
    fn check_words(
        &self,
        operation: &str,
        shape: Shape,
        arrays: &[&Buffer<S>],
    ) -> Result<(), Error> {
        let multiple = self.choice.multiple_of(S::ELEMENT);
        let refuse = |what| Err(Error::Unsupported { engine: self.choice.label(), what });
        if multiple > 1 && !(shape.seq_len as u64).is_multiple_of(multiple) {
            return refuse(format!(
                "sequences of {} elements in {operation}: its rows are whole words of {multiple} elements; take \
                 `whole: false`",
                shape.seq_len
            ));
        }
        if multiple > 1 && !arrays.iter().all(|array| array.is_aligned_to(16)) {
            let what = "an array that does not begin at a multiple of 16 bytes";
            return refuse(format!("{what} in {operation}; take `whole: false`"));
        }
        Ok(())
    }

    /// A launch of the right size; `None` if there is nothing to compute.
    fn begin<'a>(
        &self,
        operation: &str,
        pass: Pass,
        function: &'a Function,
        shape: Shape,
    ) -> Result<Option<Launch<'a>>, Error> {
        if let Some(most) = self.choice.max_len(S::ELEMENT)
            && shape.seq_len as u64 > most
        {
            let what = format!(
                "sequences of {} elements in {operation}: {} holds {most} at most; the pipe kernel takes \
                 any length",
                shape.seq_len, self.choice
            );
            return Err(Error::Unsupported { engine: self.choice.name().into(), what });
        }
        let (num_seqs, seq_len) = (shape.num_seqs as u64, shape.seq_len as u64);
        let geometry = self.choice.geometry(S::ELEMENT, pass, num_seqs, seq_len);
        if geometry.blocks == 0 {
            return Ok(None);
        }
        let [most, ..] = self.device.attributes().max_grid;
        let blocks = u32::try_from(geometry.blocks).ok().filter(|&blocks| blocks <= most);
        let Some(blocks) = blocks else {
            let message = format!(
                "{operation}: {} sequences take {} blocks of {}, and a grid has {most} at most; \
                 compute them in parts",
                shape.num_seqs, geometry.blocks, self.choice
            );
            return Err(Error::device(self.device.label(), message));
        };
        Ok(Some(function.launch(blocks, geometry.threads).shared(geometry.shared_bytes)))
    }

    /// Gives the launch the numbers that every kernel takes last, and queues it.
    fn finish(
        &self,
        launch: Launch,
        shape: Shape,
        direction: Direction,
        stream: Option<&Stream>,
    ) -> Result<Launched, Error> {
        let mut launch = launch.arg(shape.num_seqs as i64).arg(shape.seq_len as i64);
        if self.choice.takes_direction() {
            launch = launch.arg(i32::from(direction == Direction::Reverse));
        }
        let launched = match stream {
            Some(stream) => launch.run(stream),
            None => launch.run(&self.device.stream()),
        };
        launched.map(|launched| launched.of(self.choice))
    }
}
