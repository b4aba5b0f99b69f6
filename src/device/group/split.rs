//! The parts of the sequences that each rank has.
//!
//! Whole sequences are dealt out ([`Split::Rows`]), or each sequence is cut into pieces of one
//! length ([`Split::Steps`]). Kernels read vectors of 16 bytes, and the order in which they combine
//! steps depends on where a row begins in such a vector. So both splits keep the places of rows and
//! pieces in vectors, and results keep their bits for other numbers of ranks. The tests are at the
//! end of this file, and `tests/suite/group/recurrence.rs`.

use std::fmt;
use std::ops::Range;

use super::Way;
use crate::Error;
use crate::device::Shape;

/// The split of the sequences of a [`GroupRecurrence`](super::GroupRecurrence) over the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Split {
    /// Whole sequences are dealt out, and ranks exchange nothing. Results have the same bits for
    /// any number of ranks. (For that, sequences whose length is no multiple of 16 bytes are dealt
    /// out in bundles, of four for an odd number of `f32`.)
    #[default]
    Rows,
    /// Each sequence is cut along its length into stretches. Rank 0 has the first one, in either
    /// direction. This is for sequences that are too long for one device, or too few to keep all
    /// devices busy.
    Steps,
}

/// `rows` or `steps`.
impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Split::Rows => "rows",
            Split::Steps => "steps",
        })
    }
}

/// The part of all sequences that one rank has, as an array `[rows, steps]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    /// The numbers of the sequences.
    pub rows: Range<usize>,
    /// The steps of each sequence.
    pub steps: Range<usize>,
}

impl Part {
    /// Returns the shape of the rank's arrays.
    pub fn shape(&self) -> Shape {
        Shape { num_seqs: self.rows.len(), seq_len: self.steps.len() }
    }

    /// The number of elements of the rank's arrays.
    pub fn len(&self) -> usize {
        self.rows.len() * self.steps.len()
    }

    /// True if the rank's arrays have no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rows cut into pieces of one length, of which each rank has the same number. The last pieces of
/// each row may be shorter, or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cutting {
    pub(super) whole: Shape,
    pub(super) ranks: usize,
    /// The number of pieces of each row on each rank.
    pub(super) per_row: usize,
    pub(super) piece_len: usize,
}

/// The length of a long piece is a multiple of this, unless the length of the row is divided
/// evenly: the pieces are then whole vectors.
const UNIT: usize = 32;
/// The least length of a long piece.
const LONG: usize = 1024;
/// The least length of a piece where tails are looked for.
const LONG_WITH_TAIL: usize = 16 * LONG;
/// The number of pieces that keeps a device busy, if the ranks share it.
const MANY: usize = 2048;
/// The most bytes of a piece of each array, if the length can be divided that often: pieces that
/// are computed at the same time are then so near to each other that memory is read faster
/// (`pieces.csv` in `chapters/17-several-gpus/results/h100/tables.json`).
const BYTES: usize = 64 << 10;
/// The least bytes of a piece if each rank has several: a tile of the kernels over pieces.
const TILE_BYTES: usize = 8 << 10;
/// The least number of pieces of every long row, so that up to as many ranks give the same bits.
const LEAST: usize = 8;
/// The number of pieces that are one step of the walk from state to state, if a row has many:
/// `linrec_piece_states`.
pub(super) const GROUP: usize = 128;

/// Pieces of one length, one after the other in a rank's arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The numbers of the pieces, among the rank's pieces of all rows.
    pub(super) pieces: Range<usize>,
    /// Their elements in the rank's arrays.
    pub(super) steps: Range<usize>,
    pub(super) piece_len: usize,
}

/// The most rows whose last piece may be shorter, if the number of pieces is not given: the rank
/// with these pieces then has three launches for each row instead of one for all rows.
const FEW: usize = 16;

/// The bounds on pieces whose number is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usual {
    /// The least steps of a piece.
    least: usize,
    /// The most steps of a piece, if the sequences' length can be divided that often.
    most: usize,
}

impl Usual {
    /// Returns the bounds for elements of `bytes` bytes, by a way.
    pub(super) fn of(way: Way, bytes: usize) -> Usual {
        match way {
            // Most of each piece is not read.
            Way::TailFirst => Usual { least: LONG_WITH_TAIL, most: usize::MAX },
            _ => Usual { least: TILE_BYTES / bytes.max(1), most: BYTES / bytes.max(1) },
        }
    }

    /// Returns the number of pieces: the same number for all powers of two of ranks if rows are
    /// long, and few or of a length that a large power of two divides. Otherwise one for each rank.
    fn pieces(self, whole: Shape, ranks: usize) -> usize {
        let busy = (MANY / whole.num_seqs.max(1)).next_power_of_two();
        // A step more than a power of two of pieces makes them longer, and not twice as many.
        let wanted = busy.max(LEAST).max((whole.seq_len / self.most).next_power_of_two());
        let mut per_row = wanted.div_ceil(ranks).next_power_of_two();
        while per_row > 1 {
            let pieces = ranks * per_row;
            let even = whole.seq_len / pieces;
            let whole_vectors = whole.seq_len.is_multiple_of(pieces) && even.is_multiple_of(UNIT);
            if (whole_vectors || whole.num_seqs <= FEW) && even >= self.least {
                break;
            }
            per_row /= 2;
        }
        ranks * per_row
    }
}

impl Cutting {
    /// Cuts rows over `ranks` ranks: into `pieces` in all if given, and otherwise as usual, if each
    /// rank has several.
    pub(super) fn new(
        whole: Shape,
        ranks: usize,
        pieces: Option<usize>,
        usual: Usual,
    ) -> Result<Cutting, Error> {
        let pieces = match pieces {
            Some(pieces) => pieces,
            None => usual.pieces(whole, ranks),
        };
        let refused = |why: &str| {
            let what = format!("{pieces} pieces of sequences of {} steps: {why}", whole.seq_len);
            Err(Error::Unsupported { engine: format!("a group of {ranks}"), what })
        };
        if pieces == 0 || !pieces.is_multiple_of(ranks) {
            return refused("each rank has the same number of them");
        }
        if i32::try_from(pieces).is_err() {
            return refused("they are too many");
        }
        let even = whole.seq_len.div_ceil(pieces);
        let divides = pieces > ranks && whole.seq_len.is_multiple_of(pieces);
        let piece_len = match !divides && even >= LONG {
            true => even.next_multiple_of(UNIT),
            false => even,
        };
        Ok(Cutting { whole, ranks, per_row: pieces / ranks, piece_len })
    }

    /// True if [`GROUP`] pieces of a row are one step of the walk from state to state. Then each
    /// rank has whole groups, for up to [`LEAST`] ranks, because groups determine the order in
    /// which transitions are combined.
    pub(super) fn is_grouped(&self) -> bool {
        self.pieces().is_multiple_of(LEAST * GROUP) && self.per_row.is_multiple_of(GROUP)
    }

    /// The number of pieces of each row on all ranks.
    pub(super) fn pieces(&self) -> usize {
        self.ranks * self.per_row
    }

    /// The number of pieces of each row that have steps: the first ones.
    pub(super) fn filled(&self) -> usize {
        match self.piece_len {
            0 => 0,
            len => self.whole.seq_len.div_ceil(len),
        }
    }

    /// The number of a rank's pieces of each row that have steps.
    pub(super) fn filled_of(&self, rank: usize) -> usize {
        self.filled().saturating_sub(rank * self.per_row).min(self.per_row)
    }

    /// Returns a rank's pieces, in runs of one length that follow each other in its arrays: all of
    /// them, or, if the last piece of each row is shorter, three runs for each row, of which the
    /// last has no steps.
    pub(super) fn runs(&self, rank: usize) -> Vec<Run> {
        let Cutting { whole: Shape { num_seqs, .. }, per_row, piece_len, .. } = *self;
        let len = self.steps(rank).len();
        if per_row == 1 || len == 0 || len == per_row * piece_len {
            let (pieces, steps) = (0..num_seqs * per_row, 0..num_seqs * len);
            return vec![Run { pieces, steps, piece_len: len / per_row }];
        }
        let (full, rest) = (len / piece_len, len % piece_len);
        let parts = [
            (0..full, 0, piece_len),
            (full..full + 1, full * piece_len, rest),
            (full + 1..per_row, len, 0),
        ];
        let of_row = |row: usize| {
            parts.clone().map(|(pieces, begin, piece_len)| {
                let steps = row * len + begin..row * len + begin + pieces.len() * piece_len;
                let pieces = row * per_row + pieces.start..row * per_row + pieces.end;
                Run { pieces, steps, piece_len }
            })
        };
        let runs = (0..num_seqs).flat_map(of_row);
        runs.filter(|run| !run.pieces.is_empty()).collect()
    }

    /// The steps of a rank.
    pub(super) fn steps(&self, rank: usize) -> Range<usize> {
        let len = self.per_row * self.piece_len;
        let at = |rank: usize| (rank * len).min(self.whole.seq_len);
        at(rank)..at(rank + 1)
    }

    /// Returns the shape of a rank's pieces as rows.
    pub(super) fn pieces_of(&self, rank: usize) -> Shape {
        let num_seqs = self.whole.num_seqs * self.per_row;
        Shape { num_seqs, seq_len: self.steps(rank).len() / self.per_row }
    }

    /// Returns the shape by which every rank picks the same kernel: all pieces, with a length that
    /// is odd if the length of any rank's pieces differs.
    pub(super) fn like(&self) -> Shape {
        let uneven = !self.whole.seq_len.is_multiple_of(UNIT) && self.filled() != 0;
        let uneven = uneven && !self.whole.seq_len.is_multiple_of(self.piece_len.max(1));
        let seq_len = if uneven { self.piece_len | 1 } else { self.piece_len };
        Shape { num_seqs: self.whole.num_seqs * self.pieces(), seq_len }
    }
}

/// Returns the rows of a rank if they are dealt out, for numbers of `bytes` bytes.
///
/// Kernels read vectors of 16 bytes, and the place of a row in them determines the order in which
/// its steps are combined. So each rank's first row is one that would begin at a vector behind all
/// rows before it.
pub(super) fn rows(whole: Shape, bytes: usize, rank: usize, ranks: usize) -> Range<usize> {
    let vector = (16 / bytes.max(1)).max(1);
    // A power of two, like the vector.
    let together = vector / (1 << whole.seq_len.trailing_zeros().min(vector.ilog2()));
    let bundles = whole.num_seqs.div_ceil(together);
    let (each, more) = (bundles / ranks, bundles % ranks);
    let at = |rank: usize| (together * (rank * each + rank.min(more))).min(whole.num_seqs);
    at(rank)..at(rank + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(whole: (usize, usize), ranks: usize, pieces: Option<usize>) -> Result<Cutting, Error> {
        Cutting::new(whole.into(), ranks, pieces, Usual::of(Way::Passes, 4))
    }

    #[test]
    fn ranks_have_every_row_and_every_step_once() {
        for ranks in [1, 2, 3, 4, 8] {
            for count in [0, 1, 2, 3, 7, 8, 33, 1000, 4093, 65_537, 1 << 20] {
                let (mut row, mut step) = (0, 0);
                let cutting = cut((5, count), ranks, None).unwrap();
                for rank in 0..ranks {
                    let shape = |seq_len| Shape { num_seqs: count, seq_len };
                    let (rows, steps) = (rows(shape(64), 4, rank, ranks), cutting.steps(rank));
                    assert_eq!((rows.start, steps.start), (row, step), "{count} over {ranks}");
                    assert!(rows.len().abs_diff(count / ranks) <= 1);
                    let odd = super::rows(shape(33), 4, rank, ranks);
                    assert!(odd.start.is_multiple_of(4) || odd.start == count);
                    assert!(steps.len() <= cutting.per_row * cutting.piece_len);
                    (row, step) = (rows.end, steps.end);
                }
                assert_eq!((row, step), (count, count), "{count} over {ranks}");
            }
        }
    }

    #[test]
    fn the_number_of_pieces_does_not_depend_on_the_number_of_ranks() {
        for (whole, pieces, is_grouped) in [
            ((13_200, 65_536), 8, false),
            ((64, 1 << 24), 1024, true),
            ((16, 1 << 26), 4096, true),
            ((1, 1 << 30), 65_536, true),
            ((1, 1 << 22), 2048, true),
            ((300, 1 << 17), 8, false),
        ] {
            for ranks in [1, 2, 4, 8] {
                let cutting = cut(whole, ranks, None).unwrap();
                assert_eq!((cutting.pieces(), cutting.filled()), (pieces, pieces), "{whole:?}");
                assert_eq!(cutting.is_grouped(), is_grouped, "{whole:?} over {ranks}");
                assert_eq!(cutting.like().seq_len, whole.1 / pieces);
            }
        }
        assert_eq!(cut((1, 4093), 4, None).unwrap().pieces(), 4);
        assert_eq!(cut((1, 3 << 20), 3, None).unwrap().pieces(), 3 * 512);
        let with_tail = Usual::of(Way::TailFirst, 4);
        let with_tail = Cutting::new((1, 1 << 30).into(), 2, None, with_tail).unwrap();
        assert_eq!(with_tail.pieces(), 2048);
    }

    #[test]
    fn pieces_that_cannot_be_had_are_refused() {
        for (ranks, pieces) in [(4, 0), (4, 6), (3, 4)] {
            let error = cut((2, 1001), ranks, Some(pieces)).unwrap_err().to_string();
            assert!(error.contains("of sequences of 1001 steps"), "{error}");
        }
        let shorter = cut((2, 3), 8, Some(8)).unwrap();
        assert_eq!((shorter.filled(), shorter.piece_len, shorter.steps(5)), (3, 1, 3..3));
    }

    #[test]
    fn every_step_is_in_one_piece() {
        for (len, pieces) in [(3, 8), (1001, 8), (1000, 8), (16_385, 8), (19, 64), (0, 8)] {
            for ranks in [1, 2, 4, 8] {
                let cutting = cut((3, len), ranks, Some(pieces)).unwrap();
                for rank in 0..ranks {
                    let (mut piece, mut step, mut filled) = (0, 0, 0);
                    for Run { pieces, steps, piece_len } in cutting.runs(rank) {
                        assert_eq!((pieces.start, steps.start), (piece, step), "{len}");
                        assert_eq!(steps.len(), pieces.len() * piece_len);
                        filled += if piece_len > 0 { pieces.len() } else { 0 };
                        (piece, step) = (pieces.end, steps.end);
                    }
                    let all = (3 * cutting.per_row, 3 * cutting.steps(rank).len());
                    assert_eq!((piece, step), all, "{len} in {pieces} over {ranks}");
                    assert_eq!(filled, 3 * cutting.filled_of(rank));
                }
            }
        }
        // Two passes over a length that nothing divides lose nothing.
        for ranks in [2, 4, 8] {
            let odd = cut((1, (1 << 30) + 1), ranks, None).unwrap();
            assert_eq!((odd.pieces(), odd.piece_len), (65_536, 16_416));
            let shares = (0..ranks).map(|rank| odd.steps(rank).len());
            assert!(shares.max().unwrap() * ranks < (1 << 30) + (1 << 22));
        }
    }

    #[test]
    fn every_rank_picks_one_kernel() {
        // Of 1000 steps over three ranks the last has 332, and the others 334.
        assert_eq!(cut((1, 1000), 3, None).unwrap().like().seq_len, 335);
        assert_eq!(cut((1, 8192), 3, None).unwrap().like().seq_len, 2752);
    }
}
