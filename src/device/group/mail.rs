//! Rows that are cut, each read once: blocks take states from mailboxes and put them into those of the next rank.
//!
//! A rank has a mailbox for each row in its own memory, which the others reach. All ranks' launches are under way at the same
//! time; a block waits for the mail of its row, and for nothing else.

use std::sync::Mutex;

use super::Rank;
use super::cut::Cut;
use super::pipeline::Neighbours;
use super::split::Cutting;
use crate::Error;
use crate::device::lock::lock;
use crate::device::{BackwardOptions, Buffer, ForwardOptions, Launched, Storage};

/// Bytes of a mailbox: `Mail` of `kernels/linrec_pieces.cu`.
const BOX_BYTES: usize = 128;

/// The mailboxes of all ranks, as one rank has them.
#[derive(Debug, Default)]
pub(super) struct Boxes(Mutex<Option<Shared>>);

#[derive(Debug)]
struct Shared {
    rows: usize,
    /// The number of the last pass that they were used for.
    epoch: u32,
    all: Vec<Buffer<u8>>,
}

/// What a pass takes of them.
struct Taken {
    from: Option<Buffer<u8>>,
    to: Option<Buffer<u8>>,
    epoch: u32,
}

impl Boxes {
    /// For a pass over so many rows, by which states come from one neighbour and go to the other. All ranks call this with
    /// the same number, and none of them has a pass under way.
    fn take(
        &self,
        rank: &Rank,
        rows: usize,
        (before, behind): (Option<usize>, Option<usize>),
    ) -> Result<Taken, Error> {
        let mut shared = lock(&self.0);
        let usable = shared.take().filter(|shared| shared.rows == rows && shared.epoch < u32::MAX);
        let mut usable = match usable {
            Some(usable) => usable,
            None => {
                let mine = Buffer::for_peers(rank.device(), "mail", rows * BOX_BYTES)?;
                Shared { rows, epoch: 0, all: rank.share(mine)? }
            }
        };
        usable.epoch += 1;
        let of = |rank: usize| usable.all[rank].slice(..);
        let taken = Taken {
            from: before.map(|_| of(rank.number())).transpose()?,
            to: behind.map(of).transpose()?,
            epoch: usable.epoch,
        };
        *shared = Some(usable);
        Ok(taken)
    }
}

impl<S: Storage> Cut<S> {
    /// The outputs of this rank's stretch of each row.
    pub(super) fn forward_by_mail(
        &self,
        rank: &Rank,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        cutting: Cutting,
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let ForwardOptions { direction, initial, final_state, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let [forward, _] = self.by_mail.get::<S>(rank.device())?;
        let Neighbours { before, behind } = Neighbours::of(rank, direction);
        let mut taken = self.boxes.take(rank, call.pieces.num_seqs, (before, behind))?;
        let mut last = final_state.is_some().then(|| call.room(1)).transpose()?;
        let launch = call.each_piece(forward);
        let launch = launch.map(|launch| launch.arg(inputs).arg(coeffs).arg(outputs));
        let initial = initial.filter(|_| before.is_none());
        let launch = launch.map(|launch| launch.arg(initial).arg(last.as_deref_mut()));
        let launch = launch.map(|launch| launch.peer_arg(taken.from.as_ref()));
        let launch = launch.map(|launch| launch.peer_arg(taken.to.as_mut()));
        call.run_beside(launch.map(|launch| launch.arg(taken.epoch)))?;
        if let (Some(final_state), Some(last)) = (final_state, last) {
            call.tell_all(&last, final_state, direction)?;
        }
        Ok(call.launched)
    }

    /// The gradients of this rank's stretch of each row, which flow the other way.
    pub(super) fn backward_by_mail(
        &self,
        rank: &Rank,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        cutting: Cutting,
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let BackwardOptions { direction, initial, d_initial, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let [_, backward] = self.by_mail.get::<S>(rank.device())?;
        let neighbours = Neighbours::of(rank, direction);
        let ways = (neighbours.behind, neighbours.before);
        let mut taken = self.boxes.take(rank, call.pieces.num_seqs, ways)?;
        let room = call.room(1)?;
        let known = call.previous(outputs, initial, &neighbours, &room)?;
        let mut ends = d_initial.is_some().then(|| call.room(1)).transpose()?;
        let none: Option<&Buffer<S::Accum>> = None;
        let launch = call.each_piece(backward);
        let launch = launch.map(|launch| launch.arg(d_outputs).arg(coeffs).arg(outputs));
        let launch = launch.map(|launch| launch.arg(none).arg(&known));
        let launch = launch.map(|launch| launch.arg(d_inputs).arg(d_coeffs));
        let launch = launch.map(|launch| launch.arg(ends.as_deref_mut()));
        let launch = launch.map(|launch| launch.peer_arg(taken.from.as_ref()));
        let launch = launch.map(|launch| launch.peer_arg(taken.to.as_mut()));
        call.run_beside(launch.map(|launch| launch.arg(taken.epoch)))?;
        if let (Some(d_initial), Some(ends)) = (d_initial, ends) {
            call.tell_all(&ends, d_initial, direction.reversed())?;
        }
        Ok(call.launched)
    }
}
