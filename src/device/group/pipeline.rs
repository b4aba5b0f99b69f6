//! Rows that are cut into stretches, each read once: ranks compute one group of rows after the
//! other, and send states on.
//!
//! A rank receives the states before its stretches of a group, computes the stretches, and sends
//! the states behind them. While it computes, the ranks behind it are at the groups before.

use std::ops::Range;

use super::Rank;
use super::cut::{Call, Cut};
use super::split::Cutting;
use crate::device::recurrence::PassCall;
use crate::device::{
    BackwardOptions, Buffer, ForwardOptions, Launched, Recurrence, Shape, Storage,
};
use crate::{Direction, Error};

/// The ranks before and behind this one, in the order in which states go through them.
pub(super) struct Neighbours {
    pub(super) before: Option<usize>,
    pub(super) behind: Option<usize>,
}

impl Neighbours {
    pub(super) fn of(rank: &Rank, direction: Direction) -> Neighbours {
        let lower = rank.number().checked_sub(1);
        let higher = Some(rank.number() + 1).filter(|&next| next < rank.size());
        match direction {
            Direction::Forward => Neighbours { before: lower, behind: higher },
            Direction::Reverse => Neighbours { before: higher, behind: lower },
        }
    }
}

/// Returns the rows of each group, for at most `count` groups.
fn groups(rows: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    let count = count.clamp(1, rows.max(1));
    let at = move |group: usize| (rows as u128 * group as u128 / count as u128) as usize;
    (0..count).map(move |group| at(group)..at(group + 1)).filter(|group| !group.is_empty())
}

/// Returns the elements of the stretches of a group's rows.
fn steps(rows: &Range<usize>, len: usize) -> Range<usize> {
    rows.start * len..rows.end * len
}

impl<S: Storage> Cut<S> {
    /// Computes the outputs of this rank's stretch of each row.
    pub(super) fn forward_in_groups(
        &self,
        rank: &Rank,
        recurrence: &Recurrence<S>,
        (inputs, coeffs, outputs): (&Buffer<S>, &Buffer<S>, &mut Buffer<S>),
        (cutting, count): (Cutting, usize),
        options: ForwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let ForwardOptions { direction, initial, final_state, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let Neighbours { before, behind } = Neighbours::of(rank, direction);
        let Shape { num_seqs, seq_len } = call.pieces;
        let (states, last) = (call.room(1)?, call.room(1)?);
        for rows in groups(num_seqs, count) {
            let mut came = states.slice(rows.clone())?;
            let start = match (before, initial) {
                (Some(before), _) => {
                    rank.take_over(&mut came, before)?;
                    Some(came)
                }
                (None, Some(initial)) => Some(initial.slice(rows.clone())?),
                (None, None) => None,
            };
            let mut end = last.slice(rows.clone())?;
            let steps = steps(&rows, seq_len);
            let (x, c) = (inputs.slice(steps.clone())?, coeffs.slice(steps.clone())?);
            let mut y = outputs.slice(steps)?;
            let options = ForwardOptions {
                direction,
                log_coeffs: false,
                initial: start.as_ref(),
                final_state: Some(&mut end),
                stream: Some(stream),
            };
            let shape = Shape { num_seqs: rows.len(), seq_len };
            let pass = PassCall::forward([&x, &c], [&mut y], shape, options);
            let launched = recurrence.compute_as(cutting.like(), pass)?;
            call.launched = launched.and(&call.launched);
            if let Some(behind) = behind {
                rank.hand_on(&end, behind)?;
            }
        }
        if let Some(final_state) = final_state {
            call.tell_all(&last, final_state, direction)?;
        }
        Ok(call.launched)
    }

    /// Computes the gradients of this rank's stretch of each row, which flow the other way.
    pub(super) fn backward_in_groups(
        &self,
        rank: &Rank,
        [d_outputs, coeffs, outputs]: [&Buffer<S>; 3],
        [d_inputs, d_coeffs]: [&mut Buffer<S>; 2],
        (cutting, count): (Cutting, usize),
        options: BackwardOptions<S::Accum>,
    ) -> Result<Launched, Error> {
        let BackwardOptions { direction, initial, d_initial, stream, .. } = options;
        let home = rank.device().stream();
        let stream = stream.unwrap_or(&home);
        let mut call = self.call(rank, cutting, direction, stream)?;
        let neighbours = Neighbours::of(rank, direction);
        let Neighbours { before, behind } = neighbours;
        let Shape { num_seqs, seq_len } = call.pieces;
        let room = call.room(1)?;
        let known = call.previous(outputs, initial, &neighbours, &room)?;
        let (after, ends) = (call.room(1)?, call.room(1)?);
        for rows in groups(num_seqs, count) {
            let mut came = after.slice(rows.clone())?;
            match behind {
                Some(behind) => rank.take_over(&mut came, behind)?,
                None => came.zero()?,
            }
            let steps = steps(&rows, seq_len);
            let [dy, c, y] = [d_outputs, coeffs, outputs].map(|array| array.slice(steps.clone()));
            let (mut dx, mut dc) = (d_inputs.slice(steps.clone())?, d_coeffs.slice(steps)?);
            let (mut end, start) = (ends.slice(rows.clone())?, known.slice(rows.clone())?);
            let launch = call.kernels.backward.launch(rows.len());
            let (dy, c, y) = (dy?, c?, y?);
            let launch = launch.map(|launch| launch.arg(&dy).arg(&c).arg(&y).arg(&came));
            let launch = launch.map(|launch| launch.arg(&start).arg(&mut dx).arg(&mut dc));
            call.run(launch.map(|launch| launch.arg(&mut end).without_mail()))?;
            if let Some(before) = before {
                rank.hand_on(&end, before)?;
            }
        }
        if let Some(d_initial) = d_initial {
            call.tell_all(&ends, d_initial, direction.reversed())?;
        }
        Ok(call.launched)
    }
}

impl<A: Storage<Accum = A>> Call<'_, A> {
    /// Returns the rank before, which sends an output to this one, and the rank behind, which gets
    /// an output of this one: `None` for ranks without steps.
    pub(super) fn with_steps(&self, neighbours: &Neighbours) -> (Option<usize>, Option<usize>) {
        let has_steps = |rank: usize| rank < self.filled();
        let Neighbours { before, behind } = *neighbours;
        let before = before.filter(|&before| has_steps(before));
        (before, behind.filter(|_| has_steps(self.rank.number())))
    }

    /// The output before each stretch, which the rank before has; `room` has a number for each row.
    pub(super) fn previous<S: Storage<Accum = A>>(
        &mut self,
        outputs: &Buffer<S>,
        initial: Option<&Buffer<A>>,
        neighbours: &Neighbours,
        room: &Buffer<A>,
    ) -> Result<Buffer<A>, Error> {
        let (rank, num_seqs) = (self.rank, self.pieces.num_seqs);
        let (before, behind) = self.with_steps(neighbours);
        if let Some(behind) = behind.filter(|_| num_seqs > 0) {
            let mut lasts = self.room(1)?;
            let launch = self.each_row(&self.kernels.lasts).map(|launch| launch.arg(outputs));
            let launch = launch.map(|launch| launch.arg(&mut *lasts).arg(num_seqs as i64));
            self.run(launch)?;
            rank.hand_on(&lasts, behind)?;
        }
        let mut previous = room.slice(..)?;
        match (before.filter(|_| num_seqs > 0), initial) {
            (Some(before), _) => rank.take_over(&mut previous, before)?,
            (None, Some(initial)) => return initial.slice(..),
            (None, None) => previous.zero()?,
        }
        Ok(previous)
    }
}

#[cfg(test)]
mod tests {
    use super::groups;

    #[test]
    fn every_row_is_in_one_group() {
        for (rows, count) in [(0, 3), (1, 1), (1, 9), (7, 3), (13_200, 12), (5, 0), (3, 3)] {
            let all: Vec<_> = groups(rows, count).collect();
            assert_eq!(all.len(), count.clamp(1, rows.max(1)).min(rows), "{rows} in {count}");
            assert_eq!(
                all.into_iter().flatten().collect::<Vec<_>>(),
                (0..rows).collect::<Vec<_>>()
            );
        }
    }
}
