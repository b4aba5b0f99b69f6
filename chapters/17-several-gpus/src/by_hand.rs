//! Rows cut over the ranks of a group: the least that a rank has to know of the others.

use std::ops::Range;

use linrec::cpu::Cpu;
use linrec::device::{Group, Rank, Storage};
use linrec::{Direction, Element, Engine, Error, Options, Outputs, validate};
use ndarray::{Array1, Array2, ArrayView2, s};

/// Returns the steps of a rank, out of `seq_len` steps.
pub fn stretch(seq_len: usize, rank: usize, ranks: usize) -> Range<usize> {
    let each = seq_len.div_ceil(ranks);
    (rank * each).min(seq_len)..((rank + 1) * each).min(seq_len)
}

/// Computes the outputs of a rank's stretch of all rows, from its part of the arrays; `initial` are
/// the states before the rows, which all ranks know.
///
/// # Errors
///
/// If a rank fails or calls another operation.
// ANCHOR: passes
pub fn outputs<T: Storage<Accum = T> + Element>(
    rank: &Rank,
    inputs: ArrayView2<T>,
    coeffs: ArrayView2<T>,
    initial: &Array1<T>,
) -> Result<Outputs<T>, Error> {
    let rows = initial.len();
    // First pass: the transition of the stretch, for any state before it.
    let from_zero = Cpu::new().forward(inputs, coeffs, &Options::default())?.final_state;
    let product = coeffs.rows().into_iter().map(|row| row.iter().fold(T::one(), |a, &c| a * c));
    let mine: Vec<T> = product.chain(from_zero).collect();

    // All ranks send theirs to all others.
    let mine = rank.device().upload(&mine)?;
    let mut all = rank.device().allocate(mine.len() * rank.size())?;
    rank.all_gather(&mine, &mut all)?;

    // The state passes through all earlier stretches, one after the other.
    let mut state = initial.clone();
    for before in all.download()?.chunks((2 * rows).max(1)).take(rank.number()) {
        let (coeff, end) = before.split_at(rows);
        for (row, state) in state.iter_mut().enumerate() {
            *state = *state * coeff[row] + end[row];
        }
    }

    // Second pass, from the state that is now known.
    let options = Options { initial: Some(state.into()), ..Options::default() };
    Cpu::new().forward(inputs, coeffs, &options)
}
// ANCHOR_END: passes

/// [`outputs`] as an engine, for the forward pass only.
#[derive(Debug)]
pub struct ByHand {
    group: Group,
    name: String,
}

impl ByHand {
    /// Makes the engine over the ranks of a group.
    pub fn new(group: Group) -> ByHand {
        let name = format!("by hand over {}", group.size());
        ByHand { group, name }
    }
}

impl<T: Storage<Accum = T> + Element> Engine<T> for ByHand {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(
        &self,
        inputs: ArrayView2<T>,
        coeffs: ArrayView2<T>,
        options: &Options<T>,
    ) -> Result<Outputs<T>, Error> {
        let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, options)?;
        if options.direction == Direction::Reverse || options.log_coeffs {
            let what = String::from("reverse: it goes forward, over coefficients as such");
            return Err(Error::Unsupported { engine: self.name.clone(), what });
        }
        let zeros = || Array1::from_elem(num_seqs, T::zero());
        let initial = options.initial.as_ref().map_or_else(zeros, |states| states.to_owned());
        let parts = self.group.run(|rank| {
            let steps = stretch(seq_len, rank.number(), rank.size());
            let [x, c] = [inputs, coeffs].map(|array| array.slice_move(s![.., steps.clone()]));
            Ok((steps, outputs(rank, x, c, &initial)?))
        })?;
        let mut outputs = Array2::from_elem((num_seqs, seq_len), T::zero());
        let mut final_state = initial;
        for (steps, part) in parts {
            // The last rank with steps; the ranks behind it only repeat its state.
            if !steps.is_empty() {
                final_state = part.final_state;
            }
            outputs.slice_mut(s![.., steps]).assign(&part.outputs);
        }
        Ok(Outputs { outputs, final_state })
    }
}
