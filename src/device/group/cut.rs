//! The recurrence over rows that are cut along their length.
//!
//! The recurrence is computed in two passes. The first reads each piece and computes its
//! transition: the product of its coefficients, and its last state from a first one of zero. All
//! ranks gather all transitions. Then each rank walks over the transitions of a row, or of groups
//! of pieces, one after the other, to the state before each of the rank's pieces, and the second
//! pass computes the pieces from there. By mail a rank walks over its own pieces alone, from the
//! state that the rank before it has walked to.
//!
//! Transitions are combined in the order of the pieces. So results depend on the number of pieces,
//! and, up to 8 ranks, not on the number of ranks. The tests are `tests/suite/group/recurrence.rs`.

use super::Rank;
use super::kernels::{Kernels, Loaded, MOST_THREADS, OverPieces, launch};
use super::mail::{Boxes, Shared};
use super::pipeline::Neighbours;
use super::split::{Cutting, GROUP};
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
    pub(super) boxes: Boxes,
    pool: Pool<S::Accum>,
}

impl<S: Storage> Default for Cut<S> {
    fn default() -> Self {
        let (kernels, pool) = (Kernels::default(), Pool::default());
        let (shared, boxes) = (Shared::default(), Boxes::default());
        Cut { kernels, shared, boxes, pool }
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

    /// Returns the mail of a pass: for the states behind each rank's stretches, and for the last
    /// outputs. Only a gradient needs those; they travel with the recurrence, against the gradient.
    pub(super) fn mail(
        &self,
        call: &Call<S::Accum>,
        way: Way,
        is_gradient: bool,
    ) -> Result<[Mail; 2], Error> {
        let neighbours = Neighbours::of(call.rank, call.direction);
        let Neighbours { before, behind } = neighbours;
        let ways = match is_gradient {
            false => [(before, behind), (None, None)],
            true => [(behind, before), call.with_steps(&neighbours)],
        };
        self.boxes.take::<S::Accum>(call.rank, call.cutting.whole.num_seqs, way, ways)
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

        let mut told = call.room(2)?;
        let ends = call.each_piece(&call.kernels.ends);
        let ends = ends.map(|launch| launch.arg(inputs).arg(coeffs).arg(None::<&Buffer<S>>));
        let ends = ends.map(|launch| launch.arg(&mut *told).arg(None::<&mut Buffer<S::Accum>>));
        call.run(ends.map(|launch| launch.arg(way.tail(cutting) as i64).without_mail()))?;
        let mut states = call.room(1)?;
        if way.is_by_mail() {
            let mail = self.mail(&call, way, false)?;
            call.states_by_mail(&told, initial, &mut states, None, mail)?;
        } else {
            let all = call.gather(&told, 2)?;
            call.states(&all, initial, &mut states, None)?;
        }
        let mut last = final_state.is_some().then(|| call.room(1)).transpose()?;
        let options = ForwardOptions {
            direction,
            log_coeffs: false,
            initial: Some(&*states),
            final_state: last.as_deref_mut(),
            stream: Some(stream),
        };
        let (like, pieces) = (cutting.like(), call.pieces);
        let pass = PassCall::forward([inputs, coeffs], [outputs], pieces, options);
        let launched = recurrence.compute_as(like, pass)?;
        call.launched = launched.and(&call.launched);
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

        let told = call.room(3)?;
        let pieces = call.pieces.num_seqs;
        let (mut transitions, mut lasts) = (told.slice(..2 * pieces)?, told.slice(2 * pieces..)?);
        let ends = call.each_piece(&call.kernels.ends);
        let ends = ends.map(|launch| launch.arg(d_outputs).arg(coeffs).arg(outputs));
        let ends = ends.map(|launch| launch.arg(&mut transitions).arg(&mut lasts));
        call.run(ends.map(|launch| launch.arg(way.tail(cutting) as i64).without_mail()))?;
        let (mut after, mut previous) = (call.room(1)?, call.room(1)?);
        if way.is_by_mail() {
            let mail = self.mail(&call, way, true)?;
            call.states_by_mail(&told, initial, &mut after, Some(&mut previous), mail)?;
        } else {
            let all = call.gather(&told, 3)?;
            call.states(&all, initial, &mut after, Some(&mut previous))?;
        }
        let mut before = d_initial.is_some().then(|| call.room(1)).transpose()?;
        let launch = call.each_piece(&call.kernels.backward);
        let launch = launch.map(|launch| launch.arg(d_outputs).arg(coeffs).arg(outputs));
        let launch = launch.map(|launch| launch.arg(&*after).arg(&*previous));
        let launch = launch.map(|launch| launch.arg(d_inputs).arg(d_coeffs));
        let launch = launch.map(|launch| launch.arg(before.as_deref_mut()));
        call.run(launch.map(Launch::without_mail))?;
        if let (Some(d_initial), Some(before)) = (d_initial, before) {
            call.tell_all(&before, d_initial, direction.reversed())?;
        }
        Ok(call.launched)
    }
}

impl<'a, A: Storage<Accum = A>> Call<'a, A> {
    /// Returns how many pieces of each row have steps.
    pub(super) fn filled(&self) -> usize {
        self.cutting.filled()
    }

    /// Returns the shape of the longest stretches of a rank, of one piece each.
    pub(super) fn stretch(&self) -> Shape {
        Shape { num_seqs: self.cutting.whole.num_seqs, seq_len: self.cutting.piece_len }
    }

    /// Takes scratch for `each` numbers for each piece.
    pub(super) fn room(&self, each: usize) -> Result<Scratch<'a, A>, Error> {
        self.pool.take(self.rank.device(), ENDS, each * self.pieces.num_seqs)
    }

    /// Gathers the numbers of every rank's pieces.
    fn gather(&self, told: &Buffer<A>, each: usize) -> Result<Scratch<'a, A>, Error> {
        let len = self.cutting.ranks * each * self.pieces.num_seqs;
        let mut all = self.pool.take(self.rank.device(), ENDS, len)?;
        self.rank.gather(told, &mut all)?;
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
        let (ranks, rank, filled) = (self.cutting.ranks, self.rank.number(), self.filled());
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
        told: &Buffer<A>,
        initial: Option<&Buffer<A>>,
        states: &mut Buffer<A>,
        previous: Option<&mut Buffer<A>>,
        [mut mail, mut lasts]: [Mail; 2],
    ) -> Result<(), Error> {
        // If each rank has one piece, the piece may be empty.
        let has_steps = self.pieces.seq_len > 0;
        let filled = if has_steps { self.cutting.per_row } else { 0 };
        let launch = self.each_walk(&self.kernels.states, self.cutting.per_row);
        let launch = launch.map(|launch| launch.arg(told).arg(initial).arg(states).arg(previous));
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

    /// Adds the last arguments to a launch over pieces, and queues it.
    pub(super) fn run(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        let launch = launch.map(|launch| self.sized(launch));
        self.queue(launch)
    }

    /// Adds the last arguments to a launch over pieces, and queues it co-scheduled with all other
    /// ranks' launches.
    pub(super) fn run_beside(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        let launch = launch.map(|launch| self.sized(launch));
        self.queue_beside(launch)
    }

    fn queue_beside(&mut self, launch: Option<Launch>) -> Result<(), Error> {
        if let Some(launch) = launch {
            self.launched = self.rank.run_beside(launch, self.stream)?.and(&self.launched);
        }
        Ok(())
    }

    /// Adds the last arguments to a launch over pieces.
    fn sized<'l>(&self, launch: Launch<'l>) -> Launch<'l> {
        launch.arg(self.pieces.seq_len as i64).arg(self.reverse())
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
