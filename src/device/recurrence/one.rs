//! The recurrence by one kernel.

use std::marker::PhantomData;
use std::sync::Arc;

use super::room::{Contents, Pool, Room};
use super::{BackwardOptions, Choice, ForwardOptions, Shape};
use crate::device::launch::Mail;
use crate::device::{Buffer, Device, Function, Launch, Launched, Storage, Stream};
use crate::kernels::{KernelChoice, Pass, Program, SharedOut};
use crate::{Direction, Error};

/// A kernel that is loaded, for both passes and directions.
#[derive(Debug, Clone)]
pub(super) struct OneKernel<S> {
    device: Device,
    choice: KernelChoice,
    forward: Option<OfDirection>,
    backward: Option<OfDirection>,
    /// What blocks that share sequences tell each other in. A clone shares them.
    workspaces: Arc<Pool<u32>>,
    storage: PhantomData<fn() -> S>,
}

#[derive(Debug, Clone)]
struct OfDirection {
    forward: Function,
    reverse: Function,
}

impl<S: Storage> OneKernel<S> {
    /// Loads the kernel from a program that has its entries.
    pub(super) fn new(
        device: &Device,
        choice: KernelChoice,
        program: &Program,
    ) -> Result<OneKernel<S>, Error> {
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
        Ok(OneKernel {
            device: device.clone(),
            choice,
            forward,
            backward,
            workspaces: Arc::default(),
            storage: PhantomData,
        })
    }

    pub(super) fn choice(&self) -> KernelChoice {
        self.choice
    }

    /// As [`Recurrence::function`](super::Recurrence::function).
    pub(super) fn function(&self, pass: Pass, direction: Direction) -> Result<&Function, Error> {
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
                Err(Error::Unsupported { engine: self.choice.to_string(), what })
            }
        }
    }

    /// As [`Recurrence::forward_into`](super::Recurrence::forward_into), with plain coefficients.
    pub(super) fn forward_into(
        &self,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        shape: Shape,
        options: ForwardOptions<S::Accum>,
        beside: Option<Beside>,
    ) -> Result<Launched, Error> {
        let operation = "forward_into";
        shape.check_forward(inputs, coeffs, outputs, &options)?;
        let ForwardOptions { direction, initial, final_state, stream, .. } = options;
        let function = self.function(Pass::Forward, direction)?;
        self.check_vectors(operation, shape, &[inputs, coeffs, outputs])?;
        let begun = self.begin((operation, Pass::Forward), function, shape, beside.as_ref())?;
        let Some((launch, sharing)) = begun else {
            return Ok(Launched::nothing(function).of(self.choice));
        };
        let launch = launch.arg(inputs).arg(coeffs).arg(outputs).arg(initial).arg(final_state);
        self.finish(launch, sharing, shape, (direction, stream), beside)
    }

    /// As [`Recurrence::backward_into`](super::Recurrence::backward_into), with plain coefficients.
    pub(super) fn backward_into(
        &self,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        shape: Shape,
        options: BackwardOptions<S::Accum>,
        beside: Option<Beside>,
    ) -> Result<Launched, Error> {
        let operation = "backward_into";
        shape.check_backward([d_outputs, coeffs, outputs], [d_inputs, d_coeffs], &options)?;
        let BackwardOptions { direction, initial, d_initial, stream, .. } = options;
        let function = self.function(Pass::Backward, direction)?;
        self.check_vectors(operation, shape, &[d_outputs, coeffs, outputs, d_inputs, d_coeffs])?;
        let begun = self.begin((operation, Pass::Backward), function, shape, beside.as_ref())?;
        let Some((launch, sharing)) = begun else {
            return Ok(Launched::nothing(function).of(self.choice));
        };
        let launch = launch.arg(d_outputs).arg(coeffs).arg(outputs).arg(initial);
        let launch = launch.arg(d_inputs).arg(d_coeffs).arg(d_initial);
        self.finish(launch, sharing, shape, (direction, stream), beside)
    }

    /// Refuses what a kernel for rows of whole vectors does not take.
    fn check_vectors(
        &self,
        operation: &str,
        shape: Shape,
        arrays: &[&Buffer<S>],
    ) -> Result<(), Error> {
        let multiple = self.choice.multiple_of(S::ELEMENT);
        let refuse = |what| Err(Error::Unsupported { engine: self.choice.to_string(), what });
        if multiple > 1 && !(shape.seq_len as u64).is_multiple_of(multiple) {
            return refuse(format!(
                "sequences of {} elements in {operation}: its rows are whole vectors of {multiple} elements; take \
                 it without `w`",
                shape.seq_len
            ));
        }
        if multiple > 1 && !arrays.iter().all(|array| array.is_aligned_to(16)) {
            let what = "an array that does not begin at a multiple of 16 bytes";
            return refuse(format!("{what} in {operation}; take it without `w`"));
        }
        Ok(())
    }

    /// A launch of the right size, and how its blocks share sequences; `None` if there is nothing
    /// to compute.
    fn begin<'a>(
        &self,
        (operation, pass): (&str, Pass),
        function: &'a Function,
        shape: Shape,
        beside: Option<&Beside>,
    ) -> Result<Option<(Launch<'a>, Option<Sharing>)>, Error> {
        if let Some(most) = self.choice.max_len(S::ELEMENT)
            && shape.seq_len as u64 > most
        {
            let what = format!(
                "sequences of {} elements in {operation}: it holds {most} at most; the choice `{}` takes any \
                 length",
                shape.seq_len,
                Choice::Fastest
            );
            return Err(Error::Unsupported { engine: self.choice.to_string(), what });
        }
        if beside.is_some() && !self.choice.takes_mail() {
            let what = format!("mailboxes, as {operation} between ranks has them");
            return Err(Error::Unsupported { engine: self.choice.to_string(), what });
        }
        let like = beside.map_or(shape, |beside| beside.like);
        let (num_seqs, seq_len) = (like.num_seqs as u64, like.seq_len as u64);
        let geometry = self.choice.geometry(S::ELEMENT, pass, num_seqs, seq_len);
        if geometry.blocks == 0 {
            return Ok(None);
        }
        let limits = self.device.attributes();
        let [most, ..] = limits.max_grid;
        let blocks = u32::try_from(geometry.blocks).ok().filter(|&blocks| blocks <= most);
        let Some(blocks) = blocks else {
            let message = format!(
                "{operation}: {} sequences take {} blocks of {}, and a grid has {most} at most; \
                 compute them in parts",
                shape.num_seqs, geometry.blocks, self.choice
            );
            return Err(Error::device(self.device.label(), message));
        };
        let (threads, shared_bytes) = (geometry.threads, geometry.shared_bytes);
        let launch = |blocks| function.launch(blocks, threads).shared(shared_bytes);
        let Some(shared_out) = geometry.shared_out else {
            return Ok(Some((launch(blocks), None)));
        };
        // Who can deal tiles out does without a device that holds all blocks at once.
        let resident = match limits.cooperative || !shared_out.one_tile {
            true => function.resident_blocks(threads, shared_bytes)?,
            false => 0,
        };
        let deal = shared_out.one_tile && blocks > resident;
        let blocks = if shared_out.one_tile { blocks } else { blocks.min(resident.max(1)) };
        let launch = if deal { launch(blocks) } else { launch(blocks).cooperative() };
        Ok(Some((launch, Some(Sharing { shared_out, deal }))))
    }

    /// Gives the launch the numbers that every kernel takes last, and queues it.
    fn finish(
        &self,
        launch: Launch,
        sharing: Option<Sharing>,
        shape: Shape,
        (direction, stream): (Direction, Option<&Stream>),
        beside: Option<Beside>,
    ) -> Result<Launched, Error> {
        let mut launch = launch.arg(shape.num_seqs as i64).arg(shape.seq_len as i64);
        let mut workspace;
        if let Some(Sharing { shared_out, deal }) = sharing {
            workspace = self.workspace(shared_out.workspace_bytes, stream)?;
            launch = launch.arg(shared_out.tile_vectors).arg(&mut *workspace);
            if shared_out.one_tile {
                launch = launch.arg(u32::from(deal));
            }
        }
        let alone = |launch: Launch, stream: &Stream| launch.run(stream);
        let mut run: Run = &alone;
        if self.choice.takes_mail() {
            launch = match beside {
                Some(beside) => {
                    run = beside.run;
                    launch.with_mail(beside.mail)
                }
                None => launch.without_mail(),
            };
        }
        if self.choice.takes_direction() {
            launch = launch.arg(i32::from(direction == Direction::Reverse));
        }
        let launched = match stream {
            Some(stream) => run(launch, stream),
            None => run(launch, &self.device.stream()),
        };
        launched.map(|launched| launched.of(self.choice))
    }

    /// A workspace for one launch. Each leaves it ready for the next, of whatever shape.
    fn workspace(&self, bytes: u64, stream: Option<&Stream>) -> Result<Room<'_, u32>, Error> {
        let words = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
        let contents = Contents { name: "workspace", zeros: true };
        self.workspaces.room(&self.device, stream, contents, words)
    }
}

/// A way to queue a launch.
type Run<'a> = &'a dyn Fn(Launch, &Stream) -> Result<Launched, Error>;

/// What a launch has to do with those of other ranks, which are under way at the same time and have
/// the rest of each sequence.
pub(in crate::device) struct Beside<'a> {
    pub(in crate::device) mail: &'a mut Mail,
    /// The largest shape that a rank has: all launches are of its size.
    pub(in crate::device) like: Shape,
    /// Queues a launch with the others.
    pub(in crate::device) run: Run<'a>,
}

/// How the blocks of a launch share sequences.
struct Sharing {
    shared_out: SharedOut,
    /// Whether blocks take tiles as they come, since there are more of them than are on the device
    /// at once.
    deal: bool,
}
