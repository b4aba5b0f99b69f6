//! The recurrence by one kernel: its functions, its launch and its arguments.
//!
//! Every kernel of the catalogue takes the same arguments ([`crate::kernels`]), so both passes go
//! through [`OneKernel::compute`]. A kernel whose blocks share sequences also gets a workspace; its
//! launch is cooperative, or its blocks take tiles as they start. The contract
//! (`tests/suite/contract.rs`) tests all kernels, `tests/suite/device/recurrence.rs` the errors.

use std::marker::PhantomData;
use std::sync::Arc;

use super::scratch::{Contents, Pool, Scratch};
use super::{Choice, PassCall, Shape};
use crate::device::launch::Mail;
use crate::device::{Device, Function, Launch, Launched, Storage, Stream};
use crate::kernels::{KernelChoice, Pass, Program, SharedOut};
use crate::{Direction, Error};

/// A kernel that is loaded, for both passes and directions.
#[derive(Debug, Clone)]
pub(super) struct OneKernel<S> {
    device: Device,
    choice: KernelChoice,
    /// For each pass the function of each direction; `None` for a pass without entries.
    functions: [Option<[Function; 2]>; 2],
    /// The arrays in which blocks that share sequences publish. A clone shares them.
    workspaces: Arc<Pool<u32>>,
    storage: PhantomData<fn() -> S>,
}

impl<S: Storage> OneKernel<S> {
    /// Loads the kernel from a program that has its entries.
    pub(super) fn new(
        device: &Device,
        choice: KernelChoice,
        program: &Program,
    ) -> Result<OneKernel<S>, Error> {
        let module = device.program(program)?;
        let load = |pass| -> Result<Option<[Function; 2]>, Error> {
            let [forward, reverse] = [Direction::Forward, Direction::Reverse]
                .map(|direction| choice.entry(S::ELEMENT, pass, direction));
            if ![&forward, &reverse].iter().all(|entry| program.entries.contains(entry)) {
                return Ok(None);
            }
            Ok(Some([module.function(&forward)?, module.function(&reverse)?]))
        };
        let functions = [load(Pass::Forward)?, load(Pass::Backward)?];
        let (device, workspaces) = (device.clone(), Arc::default());
        Ok(OneKernel { device, choice, functions, workspaces, storage: PhantomData })
    }

    pub(super) fn choice(&self) -> KernelChoice {
        self.choice
    }

    /// As [`Recurrence::function`](super::Recurrence::function).
    pub(super) fn function(&self, pass: Pass, direction: Direction) -> Result<&Function, Error> {
        match &self.functions[pass as usize] {
            Some(functions) => Ok(&functions[direction as usize]),
            None => {
                let entry = self.choice.entry(S::ELEMENT, pass, direction);
                let what = format!("what takes `{entry}`, which its program does not have");
                Err(Error::Unsupported { engine: self.choice.to_string(), what })
            }
        }
    }

    /// Queues a pass with plain coefficients, whose arrays have been checked; alongside the
    /// launches of other ranks, if there are any.
    pub(super) fn compute<const I: usize, const O: usize>(
        &self,
        call: PassCall<S, I, O>,
        launches: Option<CoScheduled>,
    ) -> Result<Launched, Error> {
        let function = self.function(call.pass, call.direction)?;
        self.check(&call, launches.is_some())?;
        let like = launches.as_ref().map_or(call.shape, |launches| launches.like);
        let Some((mut launch, sharing)) = self.launch(&call, function, like)? else {
            return Ok(Launched::nothing(function).of(self.choice));
        };
        let PassCall { pass, shape, direction, inputs, results, initial, end, stream, .. } = call;
        for array in inputs {
            launch = launch.arg(array);
        }
        // Forward the initial states follow the outputs, backward they precede the gradients.
        if pass == Pass::Backward {
            launch = launch.arg(initial);
        }
        for array in results {
            launch = launch.arg(array);
        }
        if pass == Pass::Forward {
            launch = launch.arg(initial);
        }
        launch = launch.arg(end).arg(shape.num_seqs as i64).arg(shape.seq_len as i64);
        let mut workspace;
        if let Some(Sharing { shared_out, deal }) = sharing {
            workspace = self.workspace(shared_out.workspace_bytes, stream)?;
            launch = launch.arg(shared_out.tile_vectors).arg(&mut *workspace);
            if shared_out.one_tile {
                launch = launch.arg(u32::from(deal));
            }
        }
        let mut queue: QueueLaunch = &|launch, stream| launch.run(stream);
        if self.choice.takes_mail() {
            launch = match launches {
                Some(launches) => {
                    queue = launches.queue;
                    launch.with_mail(launches.mail)
                }
                None => launch.without_mail(),
            };
        }
        if self.choice.takes_direction() {
            launch = launch.arg(i32::from(direction == Direction::Reverse));
        }
        let launched = match stream {
            Some(stream) => queue(launch, stream),
            None => queue(launch, &self.device.stream()),
        };
        launched.map(|launched| launched.of(self.choice))
    }

    /// Checks that the kernel takes such rows and arrays, and mail if it is for several ranks.
    fn check<const I: usize, const O: usize>(
        &self,
        call: &PassCall<S, I, O>,
        by_mail: bool,
    ) -> Result<(), Error> {
        let (operation, seq_len) = (call.operation(), call.shape.seq_len);
        let multiple = self.choice.multiple_of(S::ELEMENT);
        let refuse = |what| Err(Error::Unsupported { engine: self.choice.to_string(), what });
        if multiple > 1 && !(seq_len as u64).is_multiple_of(multiple) {
            return refuse(format!(
                "sequences of {seq_len} elements in {operation}: its rows are whole \
                 vectors of {multiple} elements; take it without `w`"
            ));
        }
        if multiple > 1 && !call.is_aligned() {
            let what = "an array that does not begin at a multiple of 16 bytes";
            return refuse(format!("{what} in {operation}; take it without `w`"));
        }
        if let Some(most) = self.choice.max_len(S::ELEMENT)
            && seq_len as u64 > most
        {
            return refuse(format!(
                "sequences of {seq_len} elements in {operation}: it holds {most} at most; the \
                 choice `{}` takes any length",
                Choice::Fastest
            ));
        }
        if by_mail && !self.choice.takes_mail() {
            return refuse(format!("mailboxes, as {operation} between ranks has them"));
        }
        Ok(())
    }

    /// Returns a launch for the shape `like`, and how its blocks share sequences; `None` if there
    /// is nothing to compute.
    fn launch<'a, const I: usize, const O: usize>(
        &self,
        call: &PassCall<S, I, O>,
        function: &'a Function,
        like: Shape,
    ) -> Result<Option<(Launch<'a>, Option<Sharing>)>, Error> {
        let (num_seqs, seq_len) = (like.num_seqs as u64, like.seq_len as u64);
        let geometry = self.choice.geometry(S::ELEMENT, call.pass, num_seqs, seq_len);
        if geometry.blocks == 0 {
            return Ok(None);
        }
        let limits = self.device.attributes();
        let [most, ..] = limits.max_grid;
        let blocks = u32::try_from(geometry.blocks).ok().filter(|&blocks| blocks <= most);
        let Some(blocks) = blocks else {
            let message = format!(
                "{}: {} sequences take {} blocks of {}, and a grid has {most} at most; \
                 compute them in parts",
                call.operation(),
                call.shape.num_seqs,
                geometry.blocks,
                self.choice
            );
            return Err(Error::device(self.device.label(), message));
        };
        let (threads, shared_bytes) = (geometry.threads, geometry.shared_bytes);
        let launch = |blocks| function.launch(blocks, threads).shared(shared_bytes);
        let Some(shared_out) = geometry.shared_out else {
            return Ok(Some((launch(blocks), None)));
        };
        // A kernel that deals tiles out needs no device that holds all blocks at once.
        let resident = match limits.cooperative || !shared_out.one_tile {
            true => function.resident_blocks(threads, shared_bytes)?,
            false => 0,
        };
        let deal = shared_out.one_tile && blocks > resident;
        let blocks = if shared_out.one_tile { blocks } else { blocks.min(resident.max(1)) };
        let launch = if deal { launch(blocks) } else { launch(blocks).cooperative() };
        Ok(Some((launch, Some(Sharing { shared_out, deal }))))
    }

    /// Returns a workspace for one launch. Each launch leaves it ready for the next, of any shape.
    fn workspace(&self, bytes: u64, stream: Option<&Stream>) -> Result<Scratch<'_, u32>, Error> {
        let words = usize::try_from(bytes / 4).unwrap_or(usize::MAX);
        let contents = Contents { name: "workspace", zeros: true };
        self.workspaces.scratch(&self.device, stream, contents, words)
    }
}

/// A way to queue a launch.
type QueueLaunch<'a> = &'a dyn Fn(Launch, &Stream) -> Result<Launched, Error>;

/// The launches of other ranks, which are co-scheduled with a launch and compute the rest of each
/// sequence.
pub(in crate::device) struct CoScheduled<'a> {
    pub(in crate::device) mail: &'a mut Mail,
    /// The largest shape of all ranks, whose launches have the same size.
    pub(in crate::device) like: Shape,
    /// Queues a launch with the others.
    pub(in crate::device) queue: QueueLaunch<'a>,
}

/// The way in which the blocks of a launch share sequences.
struct Sharing {
    shared_out: SharedOut,
    /// True if blocks take tiles in the order in which they start, since the device does not hold
    /// all of them at once.
    deal: bool,
}
