//! The recurrence over the ranks of a group.
//!
//! This file has what a rank calls: its part of the sequences, the checks, the agreement of all
//! ranks, and the choice between the files that compute. `cut` (two passes) and `mail` (one pass)
//! beside it compute sequences that are cut. The tests are `tests/suite/group/recurrence.rs`,
//! which hold every way to the contract.

use super::cut::Cut;
use super::split::{Cutting, Usual, rows};
use super::{Part, Rank, Split, Way};
use crate::device::recurrence::PassCall;
use crate::device::{
    BackwardOptions, Buffer, Choice, ForwardOptions, Launched, Recurrence, Shape, Storage,
};
use crate::{Direction, Error};

/// The recurrence over the ranks of a [`Group`](super::Group): one rank's side of it, made in
/// [`Group::run`](super::Group::run) on each.
///
/// Every rank has a [part](GroupRecurrence::part) of the sequences as an array on its device. All
/// ranks call the same passes in the same order, with the shape of *all* sequences and the same
/// options.
///
/// # Dealt out
///
/// With [`Split::Rows`] a rank computes its sequences by a [`Recurrence`], and ranks exchange
/// nothing. Each takes the kernel that is the fastest for all sequences, so that results have the
/// same bits for any number of ranks.
///
/// # Cut along their length
///
/// With [`Split::Steps`] each sequence is cut into pieces, and the [`Way`] determines how a rank
/// finds the state before its own pieces. In two passes, the default, the first pass computes the
/// transitions of the pieces. Ranks exchange states by mail if they reach each other's memory, and
/// otherwise the transitions in one all-gather: two numbers for each piece, and three backward.
/// For that each piece is read twice, so that 20 bytes are moved per step instead of 12, and
/// backward 28 instead of 20 (for `f32`).
///
/// In passes, transitions of pieces are combined one after the other. If each sequence has 1024
/// pieces or a multiple of it, and each rank whole groups of 128, then those of each group are
/// combined first, and then one group after the other. So results depend on the number of pieces
/// alone ([`GroupRecurrence::with_pieces`]), and, up to 8 ranks, not on the number of ranks.
///
/// The error of results follows from the [bound](mod@crate::reference) that holds for every order
/// of evaluation. A term `x_k` meets the additions of two trees at most, whatever the number of
/// pieces: the tree that combines the transitions of the term's piece and of that piece's group,
/// and the tree of the piece that the result is in; `d` is then twice `⌈log2 L⌉ + 4`. (The tiles of
/// a piece are combined as a tree, too; the tree of a group has 6 levels, and rows with groups are
/// 1024 times as long as a piece.) In each piece of `n` steps between them, the term meets the
/// `n - 1` products that made the transition's coefficient, the product with it, and one addition.
/// These are not more than the two roundings of each step that the bound counts. An empty piece
/// changes nothing. A gradient is multiplied as often on its way back: with each coefficient once.
///
/// The transition of a piece contains the product of its coefficients, whatever the kernel is. If
/// this overflows, results can be infinite or NaN where a loop's are finite: no option takes the
/// steps of sequences that are cut in order ([`Recurrence::in_order`]).
///
/// # Errors of all ranks
///
/// If sequences are cut, ranks compare their calls. If shape, number of pieces, direction, type,
/// kernel, or the states given and wanted differ, all ranks get an error with both calls.
#[derive(Debug)]
pub struct GroupRecurrence<'a, S: Storage> {
    rank: &'a Rank,
    split: Split,
    pieces: Option<usize>,
    way: Way,
    recurrence: Recurrence<S>,
    cut: Cut<S>,
    /// For coefficients given as logarithms, for which kernels compute in this type.
    wide: Cut<S::Accum>,
}

impl<'a, S: Storage> GroupRecurrence<'a, S> {
    /// Makes the recurrence by the fastest kernels. Nothing is loaded yet.
    pub fn new(rank: &'a Rank, split: Split) -> GroupRecurrence<'a, S> {
        GroupRecurrence::over(rank, split, Recurrence::fastest(rank.device()))
    }

    /// Makes the recurrence by a named kernel: for both passes if sequences are dealt out, and for
    /// the forward pass if they are cut. With [`Way::Mailboxes`] and [`Way::TailByMail`] a kernel
    /// that [takes mail](crate::kernels::KernelChoice::takes_mail) is used for both passes; any
    /// other kernel is replaced by the one with a block for each sequence.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::new`].
    pub fn by(
        rank: &'a Rank,
        split: Split,
        choice: impl Into<Choice>,
    ) -> Result<GroupRecurrence<'a, S>, Error> {
        Ok(GroupRecurrence::over(rank, split, Recurrence::new(rank.device(), choice)?))
    }

    fn over(rank: &'a Rank, split: Split, recurrence: Recurrence<S>) -> GroupRecurrence<'a, S> {
        let (cut, wide) = (Cut::default(), Cut::default());
        let way = Way::default();
        GroupRecurrence { rank, split, pieces: None, way, recurrence, cut, wide }
    }

    /// Cuts each sequence into `pieces` pieces: the number of ranks, or a multiple of it. If the
    /// number does not divide the sequences' length, the last pieces are shorter or empty, and the
    /// rank that has them launches up to three kernels for each sequence instead of one. The same
    /// number gives the same bits on 1 to 8 ranks if each piece and, of several sequences, each
    /// sequence is a multiple of 16 bytes, and on any number of ranks if it is no multiple of 1024.
    ///
    /// Without this call a single rank does not cut at all. Several ranks have a piece each, or
    /// several if sequences are long: as many as keep all devices busy, of at most 64 KiB each if
    /// the sequences are long enough, and the same number for all powers of two up to 8 ranks.
    /// More than 16 sequences whose length cannot be divided are computed by a block for each on
    /// each rank: pad fewer than some hundreds with steps of coefficient 1 and input 0, for example
    /// to a multiple of 2^20. A [`Way`] that reads each sequence once has a piece for each rank,
    /// and refuses another number.
    #[must_use]
    pub fn with_pieces(self, pieces: usize) -> Self {
        GroupRecurrence { pieces: Some(pieces), ..self }
    }

    /// Finds states in another way than [`Way::Passes`] if sequences are cut. All ranks take the
    /// same way.
    #[must_use]
    pub fn with_way(self, way: Way) -> Self {
        GroupRecurrence { way, ..self }
    }

    /// The rank.
    pub fn rank(&self) -> &'a Rank {
        self.rank
    }

    /// Returns the part of sequences of this shape that this rank has.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if they cannot be cut into the given number of pieces.
    pub fn part(&self, shape: impl Into<Shape>) -> Result<Part, Error> {
        let shape = shape.into();
        let (rank, ranks) = (self.rank.number(), self.rank.size());
        Ok(match self.split {
            Split::Rows => {
                Part { rows: rows(shape, size_of::<S>(), rank, ranks), steps: 0..shape.seq_len }
            }
            Split::Steps => {
                let cutting = self.cut_of(shape)?;
                Part { rows: 0..shape.num_seqs, steps: cutting.steps(rank) }
            }
        })
    }

    /// Computes the outputs of this rank's [part](GroupRecurrence::part) of sequences of the given
    /// shape.
    ///
    /// Arrays have the shape of the part, and states one entry for each of its rows. So if
    /// sequences are cut, every rank passes the initial states of all of them, the same on all
    /// ranks, and gets all final states if it wants them. The exchange between ranks is over when
    /// this returns; the rest is asynchronous. By mail the exchange between devices is asynchronous
    /// as well: a rank keeps its arrays until its device is done, and each pass waits on the host
    /// until at most one is under way. States go by mail with every [`Way`] but [`Way::TailFirst`],
    /// if ranks reach each other's memory.
    ///
    /// # Errors
    ///
    /// As for [`Recurrence::forward_into`]; [`Error::Device`] if ranks disagree, or one fails, ends
    /// or does not come in time; [`Error::Unsupported`] if sequences cannot be cut into the given
    /// number of pieces. An error of this rank alone ends the others' work when this rank's work
    /// ends with it.
    pub fn forward_into(
        &self,
        inputs: &Buffer<S>,
        coeffs: &Buffer<S>,
        outputs: &mut Buffer<S>,
        shape: impl Into<Shape>,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let whole = shape.into();
        let part = self.part(whole)?.shape();
        let call = PassCall::forward([inputs, coeffs], [outputs], part, options);
        call.check()?;
        let states = [call.initial.is_some(), call.end.is_some()];
        let Some(cutting) = self.cutting(whole)? else {
            return self.recurrence.compute_as(whole, call);
        };
        self.agree("forward", cutting, call.direction, call.log_coeffs, states)?;
        let (rank, way) = (self.rank, self.way);
        if call.log_coeffs {
            return self.recurrence.compute_from_logs(call, |wide, call| {
                forward(&self.wide, rank, wide, call, (cutting, way))
            });
        }
        forward(&self.cut, rank, &self.recurrence, call, (cutting, way))
    }

    /// Computes the gradients of a loss for this rank's [part](GroupRecurrence::part) of sequences
    /// of the given shape, from its gradient with respect to the outputs.
    ///
    /// Arrays and states are as in [`GroupRecurrence::forward_into`]; `outputs` are its outputs.
    /// Every rank gets the gradient with respect to the initial state if it wants it.
    ///
    /// # Errors
    ///
    /// As for [`GroupRecurrence::forward_into`].
    // Five arrays of the same kind go in and out; a struct would name them no better.
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
        let whole = shape.into();
        let part = self.part(whole)?.shape();
        let inputs = [d_outputs, coeffs, outputs];
        let call = PassCall::backward(inputs, [d_inputs, d_coeffs], part, options);
        call.check()?;
        let states = [call.initial.is_some(), call.end.is_some()];
        let Some(cutting) = self.cutting(whole)? else {
            return self.recurrence.compute_as(whole, call);
        };
        self.agree("backward", cutting, call.direction, call.log_coeffs, states)?;
        let (rank, way) = (self.rank, self.way);
        if call.log_coeffs {
            return self.recurrence.compute_from_logs(call, |wide, call| {
                backward(&self.wide, rank, wide, call, (cutting, way))
            });
        }
        backward(&self.cut, rank, &self.recurrence, call, (cutting, way))
    }

    /// Returns how rows are cut, if they are.
    pub(super) fn cutting(&self, whole: Shape) -> Result<Option<Cutting>, Error> {
        let ranks = self.rank.size();
        match self.split {
            Split::Rows => Ok(None),
            Split::Steps if ranks == 1 && self.pieces.is_none() => Ok(None),
            Split::Steps => self.cut_of(whole).map(Some),
        }
    }

    fn cut_of(&self, whole: Shape) -> Result<Cutting, Error> {
        let (ranks, usual) = (self.rank.size(), Usual::of(self.way, size_of::<S>()));
        match (self.way, self.pieces) {
            (way, None) if way.reads_once() => Cutting::new(whole, ranks, Some(ranks), usual),
            (way, Some(pieces)) if way.reads_once() && pieces != ranks => {
                let way = self.way;
                let what = format!("{pieces} pieces by {way}, which has one for each rank");
                Err(Error::Unsupported { engine: format!("a group of {ranks}"), what })
            }
            _ => Cutting::new(whole, ranks, self.pieces, usual),
        }
    }

    /// Returns an error on all ranks unless all make the same call, with the same states given or
    /// wanted.
    pub(super) fn agree(
        &self,
        pass: &str,
        cutting: Cutting,
        direction: Direction,
        log_coeffs: bool,
        [initial, last]: [bool; 2],
    ) -> Result<(), Error> {
        let Shape { num_seqs, seq_len } = cutting.whole;
        let (choice, pieces) = (self.recurrence.choice(), cutting.pieces());
        let mail = match log_coeffs {
            true => self.wide.mail_state(self.rank, self.way)?,
            false => self.cut.mail_state(self.rank, self.way)?,
        };
        if let Some(state) = mail {
            self.rank.in_flight.make_room(self.rank, state, num_seqs)?;
        }
        let mut what = format!(
            "{pass} of {} [{num_seqs}, {seq_len}] by {choice}, {direction:?}, in {pieces} pieces, {}",
            S::ELEMENT,
            self.way
        );
        let more = [
            (initial, ", with initial states"),
            (last, ", with states at the end"),
            (log_coeffs, ", with logarithms"),
        ];
        more.iter().filter(|(is, _)| *is).for_each(|(_, text)| what += text);
        if let Some((rows, epoch)) = mail.filter(|(rows, _)| *rows > 0) {
            what += &format!(", after mail {epoch} of {rows}");
        }
        self.rank.agree(&what)
    }
}

/// Computes the outputs of this rank's stretches, by the chosen way.
fn forward<S: Storage>(
    cut: &Cut<S>,
    rank: &Rank,
    recurrence: &Recurrence<S>,
    call: PassCall<S, 2, 1>,
    (cutting, way): (Cutting, Way),
) -> Result<Launched, Error> {
    let (([inputs, coeffs], [outputs]), options) = call.into_options();
    let all = (inputs, coeffs, outputs);
    match way.reads_once() {
        true => cut.forward_by_mail(rank, recurrence, all, (cutting, way), options),
        false => cut.forward(rank, recurrence, all, (cutting, way), options),
    }
}

/// Computes the gradients in the same way.
fn backward<S: Storage>(
    cut: &Cut<S>,
    rank: &Rank,
    recurrence: &Recurrence<S>,
    call: PassCall<S, 3, 2>,
    (cutting, way): (Cutting, Way),
) -> Result<Launched, Error> {
    let ((inputs, results), options) = call.into_options();
    let way_cut = (cutting, way);
    match way.reads_once() {
        true => cut.backward_by_mail(rank, recurrence, inputs, results, way_cut, options),
        false => cut.backward(rank, inputs, results, way_cut, options),
    }
}
