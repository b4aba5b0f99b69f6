//! The recurrence over rows that are cut along their length.
//!
//! The recurrence is computed in two passes. The first reads each piece and computes its
//! transition: the product of its coefficients, and its last state from a first one of zero. If
//! ranks reach each other's memory, each walks over its pieces' transitions alone, from the state
//! that the rank before it has walked to, which comes by mail. Otherwise all ranks gather all
//! transitions, and each walks over all of them. Both walks have the same bits. The second pass
//! computes the pieces from the states before them.
//!
//! Transitions are combined in the order of the pieces. So results depend on the number of pieces,
//! and, up to 8 ranks, not on the number of ranks. The tests are `tests/suite/group/recurrence.rs`.

use std::sync::OnceLock;

use super::Rank;
use super::kernels::{Kernels, Loaded, MOST_THREADS, OverPieces, launch};
use super::mail::{Boxes, Shared};
use super::split::{Cutting, GROUP, Run};
use super::turn::Turn;
use super::way::Way;
use crate::device::launch::Mail;
use crate::device::recurrence::PassCall;
use crate::device::recurrence::scratch::{Contents, Pool, Scratch};
use crate::device::{
    BackwardOptions, Buffer, ForwardOptions, Function, Launch, Launched, Recurrence, Shape,
    Storage, Stream,
};
use crate::{Direction, Error};

/// The scratch for the transitions of pieces, and the states before them.
const ENDS: Contents = Contents { name: "ends of pieces", zeros: false };

/// The kernels and arrays of a rank, for one type of elements.
#[derive(Debug)]
pub(super) struct Cut<S: Storage> {
    kernels: Kernels,
    pub(super) shared: Shared<S>,
    boxes: Boxes,
    /// Set once ranks have found that they do not reach each other's memory.
    apart: OnceLock<()>,
    pool: Pool<S::Accum>,
}

/// The ranks before and behind this one, in the order in which states go through them.
#[derive(Clone, Copy)]
struct Neighbours {
    before: Option<usize>,
    behind: Option<usize>,
}

impl Neighbours {
    fn of(rank: &Rank, direction: Direction) -> Neighbours {
        let lower = rank.number().checked_sub(1);
        let higher = Some(rank.number() + 1).filter(|&next| next < rank.size());
        match direction {
            Direction::Forward => Neighbours { before: lower, behind: higher },
            Direction::Reverse => Neighbours { before: higher, behind: lower },
        }
    }
}

impl<S: Storage> Default for Cut<S> {
    fn default() -> Self {
        let (kernels, pool) = (Kernels::default(), Pool::default());
        let (shared, boxes, apart) = (Shared::default(), Boxes::default(), OnceLock::new());
        Cut { kernels, shared, boxes, apart, pool }
    }
}

/// A call, on one rank.
pub(super) struct Call<'a, A> {
    pub(super) rank: &'a Rank,
    pub(super) kernels: &'a Loaded,
    pool: &'a Pool<A>,
    pub(super) stream: &'a Stream,
    cutting: Cutting,
    direction: Direction,
    /// This rank's pieces, as rows.
    pub(super) pieces: Shape,
    pub(super) launched: Launched,
}

impl<S: Storage> Cut<S> {
    pub(super) fn call<'a>(
        &'a self,
        rank: &'a Rank,
        cutting: Cutting,
        direction: Direction,
        stream: &'a Stream,
    ) -> Result<Call<'a, S::Accum>, Error> {
        let kernels = self.kernels.get::<S>(rank.device())?;
        let launched = Launched::nothing(&kernels.ends.function);
        let (pool, pieces) = (&self.pool, cutting.pieces_of(rank.number()));
        Ok(Call { rank, kernels, pool, stream, cutting, direction, pieces, launched })
    }

    /// Returns what ranks compare before a pass by mail: [`Boxes::state`]. `None` if states do not
    /// go by mail.
    ///
    /// # Errors
    ///
    /// If the way needs mail, and ranks cannot share memory.
    pub(super) fn mail_state(&self, rank: &Rank, way: Way) -> Result<Option<(usize, u32)>, Error> {
        if way == Way::Passes && (rank.size() == 1 || rank.must_share().is_err()) {
            let _ = self.apart.set(());
        }
        if !self.is_by_mail(way) {
            return Ok(None);
        }
        rank.must_share()?;
        Ok(Some(self.boxes.state()))
    }

    /// True if states go by mail, as far as is known.
    fn is_by_mail(&self, way: Way) -> bool {
        way.reads_once() || way == Way::Passes && self.apart.get().is_none()
    }

    /// Computes the state before each of this rank's pieces, from the transitions in `numbers`; for
    /// the gradient, the state behind it, and with `previous` the output before it.
    fn walk(
        &self,
        call: &mut Call<S::Accum>,
        way: Way,
        numbers: &Buffer<S::Accum>,
        initial: Option<&Buffer<S::Accum>>,
        states: &mut Buffer<S::Accum>,
        previous: Option<&mut Buffer<S::Accum>>,
    ) -> Result<(), Error> {
        let is_gradient = previous.is_some();
        if self.is_by_mail(way) {
            match self.mail(call, way, is_gradient) {
                // All ranks get this error if one of them does not reach another.
                Err(Error::Unsupported { .. }) => drop(self.apart.set(())),
                mail => {
                    let (mail, _turn) = mail?;
                    return call.states_by_mail(numbers, initial, states, previous, mail);
                }
            }
        }
        let all = call.gather(numbers, 2 + usize::from(is_gradient))?;
        call.states(&all, initial, states, previous)
    }

    /// Returns the mail of a pass: for the states behind each rank's stretches, and for the last
    /// outputs. Only a gradient needs those; they travel with the recurrence, against the gradient.
    pub(super) fn mail(
        &self,
        call: &Call<S::Accum>,
        way: Way,
        is_gradient: bool,
    ) -> Result<([Mail; 2], Turn), Error> {
        let neighbours = Neighbours::of(call.rank, call.direction);
        let Neighbours { before, behind } = neighbours;
        let ways = match is_gradient {
            false => [(before, behind), (None, None)],
            true => [(behind, before), call.with_steps(neighbours)],
        };
        let home = (call.rank, call.stream);
        self.boxes.take::<S::Accum>(home, call.cutting.whole.num_seqs, way, ways)
    }

    /// Computes the outputs of this rank's stretch of each row in two passes. If the way looks, the
    /// first pass searches from the end of each piece for the step behind which no state survives.
    pub(super) fn forward(
        &self,
        rank: &Rank,
        recurrence: &Recurrence<S>,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        (cutting, way): (Cutting, Way),
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let ForwardOptions { direction, initial, final_state, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;

        let runs = cutting.runs(rank.number());
        let numbers = call.room(2)?;
        call.ends(&runs, (inputs, coeffs, None), way.tail(cutting), &numbers)?;
        let mut states = call.room(1)?;
        self.walk(&mut call, way, &numbers, initial, &mut states, None)?;
        let last = final_state.is_some().then(|| call.room(1)).transpose()?;
        for Run { pieces, steps, piece_len } in call.with_outputs(runs) {
            let (x, c) = (inputs.slice(steps.clone())?, coeffs.slice(steps.clone())?);
            let mut y = outputs.slice(steps)?;
            let start = states.slice(pieces.clone())?;
            let mut end = last.as_ref().map(|last| last.slice(pieces.clone())).transpose()?;
            let options = ForwardOptions {
                direction,
                log_coeffs: false,
                initial: Some(&start),
                final_state: end.as_mut(),
                stream: Some(stream),
            };
            let shape = Shape { num_seqs: pieces.len(), seq_len: piece_len };
            let pass = PassCall::forward([&x, &c], [&mut y], shape, options);
            let launched = recurrence.compute_as(cutting.like(), pass)?;
            call.launched = launched.and(&call.launched);
        }
        if let (Some(final_state), Some(last)) = (final_state, last) {
            call.tell_all(&last, final_state, direction)?;
        }
        Ok(call.launched)
    }

    /// Computes the gradients of this rank's stretch of each row.
    pub(super) fn backward(
        &self,
        rank: &Rank,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        (cutting, way): (Cutting, Way),
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let BackwardOptions { direction, initial, d_initial, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;

        let runs = cutting.runs(rank.number());
        let numbers = call.room(3)?;
        call.ends(&runs, (d_outputs, coeffs, Some(outputs)), way.tail(cutting), &numbers)?;
        let (mut after, mut previous) = (call.room(1)?, call.room(1)?);
        self.walk(&mut call, way, &numbers, initial, &mut after, Some(&mut previous))?;
        let before = d_initial.is_some().then(|| call.room(1)).transpose()?;
        for Run { pieces, steps, piece_len } in call.with_outputs(runs) {
            let of_run = |array: &Buffer<S>| array.slice(steps.clone());
            let (dy, c, y) = (of_run(d_outputs)?, of_run(coeffs)?, of_run(outputs)?);
            let (mut dx, mut dc) = (of_run(d_inputs)?, of_run(d_coeffs)?);
            let (after, previous) = (after.slice(pieces.clone())?, previous.slice(pieces.clone())?);
            let mut end = before.as_ref().map(|all| all.slice(pieces.clone())).transpose()?;
            let launch = call.kernels.backward.launch(pieces.len());
            let launch = launch.map(|launch| launch.arg(&dy).arg(&c).arg(&y));
            let launch = launch.map(|launch| launch.arg(&after).arg(&previous));
            let launch = launch.map(|launch| launch.arg(&mut dx).arg(&mut dc));
            let launch = launch.map(|launch| launch.arg(end.as_mut()).without_mail());
            call.run(launch, piece_len)?;
        }
        if let (Some(d_initial), Some(before)) = (d_initial, before) {
            call.tell_all(&before, d_initial, direction.reversed())?;
        }
        Ok(call.launched)
    }
}

impl<'a, A: Storage<Accum = A>> Call<'a, A> {
    /// Returns the rank before, which sends an output to this one, and the rank behind, which gets
    /// an output of this one: `None` for ranks without steps.
    fn with_steps(
        &self,
        Neighbours { before, behind }: Neighbours,
    ) -> (Option<usize>, Option<usize>) {
        let has_steps = |rank: usize| self.cutting.filled_of(rank) > 0;
        let before = before.filter(|&before| has_steps(before));
        (before, behind.filter(|_| has_steps(self.rank.number())))
    }

    /// Returns the shape of the longest stretches of a rank, of one piece each.
    pub(super) fn stretch(&self) -> Shape {
        Shape { num_seqs: self.cutting.whole.num_seqs, seq_len: self.cutting.piece_len }
    }

    /// Returns the runs to compute in the second pass: without those that have no steps, unless a
    /// rank has no others.
    fn with_outputs(&self, mut runs: Vec<Run>) -> Vec<Run> {
        let all = self.pieces.num_seqs;
        runs.retain(|run| run.piece_len > 0 || run.pieces.len() == all);
        runs
    }

    /// Computes the transition of each piece into `numbers`, from its last `tail` steps if that is
    /// not zero. For the gradient there are outputs, and the last one of each piece goes behind all
    /// transitions.
    fn ends<S: Storage<Accum = A>>(
        &mut self,
        runs: &[Run],
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, Option<&Buffer<S>>),
        tail: usize,
        numbers: &Buffer<A>,
    ) -> Result<(), Error> {
        let kernels = self.kernels;
        for Run { pieces, steps, piece_len } in runs {
            let of_run = |array: &Buffer<S>| array.slice(steps.clone());
            let (x, c, y) = (of_run(inputs)?, of_run(coeffs)?, outputs.map(of_run).transpose()?);
            let mut transitions = numbers.slice(2 * pieces.start..2 * pieces.end)?;
            let lasts =
                |_: &Buffer<S>| numbers.slice(2 * self.pieces.num_seqs..)?.slice(pieces.clone());
            let mut lasts = outputs.map(lasts).transpose()?;
            let launch = kernels.ends.launch(pieces.len());
            let launch = launch.map(|launch| launch.arg(&x).arg(&c).arg(y.as_ref()));
            let launch = launch.map(|launch| launch.arg(&mut transitions).arg(lasts.as_mut()));
            self.run(launch.map(|launch| launch.arg(tail as i64).without_mail()), *piece_len)?;
        }
        Ok(())
    }

    /// Takes scratch for `each` numbers for each piece.
    pub(super) fn room(&self, each: usize) -> Result<Scratch<'a, A>, Error> {
        self.pool.take(self.rank.device(), ENDS, each * self.pieces.num_seqs)
    }

    /// Gathers the numbers of every rank's pieces.
    fn gather(&self, numbers: &Buffer<A>, each: usize) -> Result<Scratch<'a, A>, Error> {
        let len = self.cutting.ranks * each * self.pieces.num_seqs;
        let mut all = self.pool.take(self.rank.device(), ENDS, len)?;
        self.rank.gather(numbers, &mut all)?;
        Ok(all)
    }

    /// Computes the state before each piece; for the gradient, the state behind it, and the output
    /// before it.
    fn states(
        &mut self,
        all: &Buffer<A>,
        initial: Option<&Buffer<A>>,
        states: &mut Buffer<A>,
        previous: Option<&mut Buffer<A>>,
    ) -> Result<(), Error> {
        let Cutting { ranks, .. } = self.cutting;
        let (rank, filled) = (self.rank.number(), self.cutting.filled());
        let launch = self.each_walk(&self.kernels.states, self.cutting.pieces());
        let launch = launch.map(|launch| launch.arg(all).arg(initial).arg(states).arg(previous));
        let launch = launch.map(|launch| self.placed(launch, [ranks, rank, filled]));
        let launch = launch.map(|launch| launch.without_mail().without_mail());
        self.queue(launch.map(|launch| launch.arg(self.reverse())))
    }

    /// Computes the state before each piece, and what a gradient also needs, from this rank's own
    /// transitions, and from mail with states and with last outputs.
    fn states_by_mail(
        &mut self,
        numbers: &Buffer<A>,
        initial: Option<&Buffer<A>>,
        states: &mut Buffer<A>,
        previous: Option<&mut Buffer<A>>,
        [mut mail, mut lasts]: [Mail; 2],
    ) -> Result<(), Error> {
        let filled = self.cutting.filled_of(self.rank.number());
        let launch = self.each_walk(&self.kernels.states, self.cutting.per_row);
        let launch =
            launch.map(|launch| launch.arg(numbers).arg(initial).arg(states).arg(previous));
        let launch = launch.map(|launch| self.placed(launch, [1, 0, filled]));
        let launch = launch.map(|launch| launch.with_mail(&mut mail).with_mail(&mut lasts));
        self.queue_beside(launch.map(|launch| launch.arg(self.reverse())))
    }

    /// Adds the numbers that identify the pieces to a launch over rows' pieces.
    fn placed<'l>(&self, launch: Launch<'l>, [ranks, rank, filled]: [usize; 3]) -> Launch<'l> {
        let launch = launch.arg(self.cutting.whole.num_seqs as i64).arg(ranks as i32);
        let launch = launch.arg(rank as i32).arg(self.cutting.per_row as i32).arg(filled as i32);
        launch.arg(i32::from(self.cutting.is_grouped()))
    }

    /// Copies the state behind the last step in this direction to every rank, from `states`, which
    /// has one for each piece.
    pub(super) fn tell_all(
        &mut self,
        states: &Buffer<A>,
        to: &mut Buffer<A>,
        direction: Direction,
    ) -> Result<(), Error> {
        let Cutting { whole, per_row, .. } = self.cutting;
        let piece = match direction {
            Direction::Forward => self.cutting.filled().saturating_sub(1),
            Direction::Reverse => 0,
        };
        let (rank, column) = (piece / per_row, piece % per_row);
        if rank == self.rank.number() {
            let launch = self.each_row(&self.kernels.column);
            let launch = launch.map(|launch| launch.arg(states).arg(&mut *to));
            let launch = launch.map(|launch| launch.arg(whole.num_seqs as i64));
            self.queue(launch.map(|launch| launch.arg(per_row as i32).arg(column as i32)))?;
        }
        self.rank.spread(to, rank)
    }

    /// Begins a launch with a block for each piece; `None` if there are no pieces.
    pub(super) fn each_piece<'f>(&self, kernel: &'f OverPieces) -> Option<Launch<'f>> {
        kernel.launch(self.pieces.num_seqs)
    }

    /// Begins a launch with a thread for each row; `None` if there are no rows.
    pub(super) fn each_row<'f>(&self, function: &'f Function) -> Option<Launch<'f>> {
        const THREADS: usize = 128;
        launch(function, self.cutting.whole.num_seqs.div_ceil(THREADS), THREADS as u32)
    }

    /// Begins a launch with a block for each row, which goes over `pieces` pieces: with a warp for
    /// each group of them, or with a thread for each.
    fn each_walk<'f>(&self, function: &'f Function, pieces: usize) -> Option<Launch<'f>> {
        let threads = if self.cutting.is_grouped() { pieces / GROUP * 32 } else { pieces };
        let threads = threads.next_multiple_of(32).min(MOST_THREADS);
        launch(function, self.cutting.whole.num_seqs, threads as u32)
    }

    /// Adds the last arguments to a launch over pieces of this length, and queues it.
    fn run(&mut self, launch: Option<Launch>, piece_len: usize) -> Result<(), Error> {
        let launch = launch.map(|launch| launch.arg(piece_len as i64).arg(self.reverse()));
        self.queue(launch)
    }

    /// Adds the last arguments to a launch over pieces, and queues it co-scheduled with all other
    /// ranks' launches.
    pub(super) fn run_beside(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        let seq_len = self.pieces.seq_len as i64;
        self.queue_beside(launch.map(|launch| launch.arg(seq_len).arg(self.reverse())))
    }

    fn queue_beside(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        if let Some(launch) = launch {
            self.launched = self.rank.run_beside(launch, self.stream)?.and(&self.launched);
        }
        Ok(())
    }

    fn reverse(&self) -> i32 {
        i32::from(self.direction == Direction::Reverse)
    }

    fn queue(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        if let Some(launch) = launch {
            self.launched = launch.run(self.stream)?.and(&self.launched);
        }
        Ok(())
    }
}
