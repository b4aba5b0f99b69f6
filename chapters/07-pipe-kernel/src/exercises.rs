//! Solutions to the exercises that ask for code.
//!
//! They vary the idea of this chapter, which is that a long sequence needs only one state between
//! two tiles: sequences that arrive in pieces, states that are kept for a later second pass, all
//! tiles at once with a recurrence over their transitions, and the length at which 32-bit offsets
//! overflow. The page shows each function. The tests at the end of this file compare them with the
//! kernel's own outputs, bit by bit where the order of operations is the same.

use ch04_gradient::shift::shift;
use linrec::device::{Buffer, Device, ForwardOptions, Recurrence};
use linrec::{Direction, Engine, Error, Options, validate};
use ndarray::{Array1, Array2, ArrayView2, s};

use crate::PIPE;

/// Sequences that arrive piece by piece. The states between two pieces stay on the device.
// ANCHOR: pieces
#[derive(Debug)]
pub struct Pieces {
    recurrence: Recurrence<f32>,
    before: Buffer<f32>,
    after: Buffer<f32>,
}

impl Pieces {
    /// Begins `num_seqs` sequences, all from zero.
    ///
    /// # Errors
    ///
    /// Returns the device's error.
    pub fn new(device: &Device, num_seqs: usize) -> Result<Pieces, Error> {
        let mut before = device.allocate_named("before", num_seqs)?;
        before.zero()?;
        let after = device.allocate_named("after", num_seqs)?;
        Ok(Pieces { recurrence: Recurrence::new(device, PIPE)?, before, after })
    }

    /// Computes the outputs of the next steps of every sequence. The slices contain the sequences
    /// row by row.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ShapeMismatch`] if the slices differ in length or do not contain whole
    /// rows, or the device's own error.
    pub fn push(&mut self, inputs: &[f32], coeffs: &[f32]) -> Result<Vec<f32>, Error> {
        let device = self.recurrence.device();
        let num_seqs = self.before.len();
        let shape = (num_seqs, inputs.len() / num_seqs.max(1));
        let (x, c) = (device.upload(inputs)?, device.upload(coeffs)?);
        let mut y = device.allocate_named("outputs", inputs.len())?;
        let options = ForwardOptions {
            initial: Some(&self.before),
            final_state: Some(&mut self.after),
            ..ForwardOptions::default()
        };
        self.recurrence.forward_into(&x, &c, &mut y, shape, options)?;
        std::mem::swap(&mut self.before, &mut self.after);
        y.download()
    }
}
// ANCHOR_END: pieces

/// Computes the outputs of all tiles, and the state after each tile: `[num_seqs, seq_len]` and
/// `[num_seqs, tiles]`, forward from zero.
///
/// # Errors
///
/// Returns the engine's error.
// ANCHOR: after_tiles
pub fn after_tiles(
    engine: &dyn Engine<f32>,
    inputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
    tile: usize,
) -> Result<(Array2<f32>, Array2<f32>), Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, &Options::default())?;
    let mut outputs = Array2::zeros((num_seqs, seq_len));
    let mut states = Array2::zeros((num_seqs, seq_len.div_ceil(tile.max(1))));
    let mut carry = Array1::zeros(num_seqs);
    for (number, first) in (0..seq_len).step_by(tile.max(1)).enumerate() {
        let steps = s![.., first..seq_len.min(first + tile.max(1))];
        let options = Options { initial: Some(carry.into()), ..Options::default() };
        let result = engine.forward(inputs.slice(steps), coeffs.slice(steps), &options)?;
        outputs.slice_mut(steps).assign(&result.outputs);
        states.column_mut(number).assign(&result.final_state);
        carry = result.final_state;
    }
    Ok((outputs, states))
}
// ANCHOR_END: after_tiles

/// Computes the outputs of one tile again, given the states after all tiles, forward and with the
/// first tile from zero. A tile past the end has no steps.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the arrays' shapes do not match, or the engine's own error.
// ANCHOR: again
pub fn again(
    engine: &dyn Engine<f32>,
    inputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
    after_tiles: ArrayView2<f32>,
    tile: usize,
    number: usize,
) -> Result<Array2<f32>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, &Options::default())?;
    let steps = s![.., (number * tile).min(seq_len)..((number + 1) * tile).min(seq_len)];
    validate::same_shape("again", ("rows", &[num_seqs]), ("after_tiles", &[after_tiles.nrows()]))?;
    let initial = match number.checked_sub(1).filter(|&before| before < after_tiles.ncols()) {
        Some(before) => after_tiles.column(before).to_owned(),
        None => Array1::zeros(num_seqs),
    };
    let options = Options { initial: Some(initial.into()), ..Options::default() };
    Ok(engine.forward(inputs.slice(steps), coeffs.slice(steps), &options)?.outputs)
}
// ANCHOR_END: again

/// Computes the outputs forward from zero, with every tile as a separate sequence, so that no tile
/// waits for another tile of the same launch.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the sequences are not whole tiles, or the engine's own
/// error.
// ANCHOR: at_once
pub fn all_tiles_at_once(
    engine: &dyn Engine<f32>,
    inputs: ArrayView2<f32>,
    coeffs: ArrayView2<f32>,
    tile: usize,
) -> Result<Array2<f32>, Error> {
    let (num_seqs, seq_len) = validate::forward(&inputs, &coeffs, &Options::default())?;
    let per_row = seq_len / tile.max(1);
    let tiles = (num_seqs * per_row, tile);
    // Reshapes an array, here to rows of one tile each.
    let shaped = |array: ArrayView2<f32>, shape: (usize, usize)| {
        let arrays = vec![("array", array.shape().to_vec()), ("tiles", vec![shape.0, shape.1])];
        let values = array.iter().copied().collect();
        Array2::from_shape_vec(shape, values)
            .map_err(|_| Error::ShapeMismatch { operation: "all_tiles_at_once", arrays })
    };
    let (x, c) = (shaped(inputs, tiles)?, shaped(coeffs, tiles)?);

    // The transition of each tile: its final state from zero, and the factor of an initial state.
    let plain = Options::default();
    let states = engine.forward(x.view(), c.view(), &plain)?.final_state;
    let from_one = Options { initial: Some(Array1::ones(tiles.0).into()), ..Options::default() };
    let no_inputs = Array2::zeros(tiles);
    let products = engine.forward(no_inputs.view(), c.view(), &from_one)?.final_state;

    // A recurrence over the tiles gives the state after each; shifted by one, the state before
    // each.
    let as_rows = |array: Array1<f32>| {
        let column = array.insert_axis(ndarray::Axis(0));
        shaped(column.view(), (num_seqs, per_row))
    };
    let (states, products) = (as_rows(states)?, as_rows(products)?);
    let after = engine.forward(states.view(), products.view(), &plain)?.outputs;
    let zeros = Array1::zeros(num_seqs);
    let before = shift(after.view(), Direction::Forward, zeros.view())?;

    let initial = Some(before.iter().copied().collect());
    let outputs = engine.forward(x.view(), c.view(), &Options { initial, ..plain })?.outputs;
    shaped(outputs.view(), (num_seqs, seq_len))
}
// ANCHOR_END: at_once

/// Returns the shortest sequence for which a signed 32-bit number overflows at the begin of the
/// next tile.
// ANCHOR: first_wrong
pub fn first_wrong_length(tile: u64) -> Option<u64> {
    // The last tile that begins below 2^31 and ends at or beyond it is the first to fail.
    let last = ((1_u64 << 31) - 1).checked_div(tile)? * tile;
    Some(last + 1)
}
// ANCHOR_END: first_wrong

#[cfg(test)]
mod tests {
    use super::{Pieces, after_tiles, again, all_tiles_at_once, first_wrong_length};
    use crate::{PIPE, TILE_LEN};
    use linrec::contract::Domain;
    use linrec::device::{Device, KernelEngine, under_test};
    use linrec::reference::{self, Rounding};
    use linrec::{Engine, Error, Options};
    use ndarray::{Array2, s};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn data(shape: (usize, usize)) -> (Array2<f32>, Array2<f32>) {
        let mut rng = StdRng::seed_from_u64(70);
        let mut draw = |low: f32, high: f32| {
            Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
        };
        (draw(-1.0, 1.0), draw(0.98, 1.0))
    }

    #[test]
    fn pieces_of_whole_tiles_have_the_bits_of_the_whole() {
        let (num_seqs, seq_len) = (3, 4 * TILE_LEN + 77);
        let (inputs, coeffs) = data((num_seqs, seq_len));
        for device in under_test() {
            let engine = KernelEngine::<f32>::new(&device, PIPE).unwrap();
            let whole = engine.forward(inputs.view(), coeffs.view(), &Options::default()).unwrap();
            let mut pieces = Pieces::new(&device, num_seqs).unwrap();
            for (first, end) in [(0, TILE_LEN), (TILE_LEN, 3 * TILE_LEN), (3 * TILE_LEN, seq_len)] {
                let rows = |array: &Array2<f32>| -> Vec<f32> {
                    array.slice(s![.., first..end]).iter().copied().collect()
                };
                let outputs = pieces.push(&rows(&inputs), &rows(&coeffs)).unwrap();
                assert_eq!(outputs, rows(&whole.outputs));
            }
        }
    }

    #[test]
    fn pieces_that_do_not_fit_are_refused() {
        let mut pieces = Pieces::new(&Device::simt(), 3).unwrap();
        let error = pieces.push(&[1.0; 4], &[1.0; 4]).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let error = pieces.push(&[1.0; 6], &[1.0; 3]).unwrap_err();
        assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        let outputs = Pieces::new(&Device::simt(), 0).unwrap().push(&[], &[]).unwrap();
        assert!(outputs.is_empty());
    }

    #[test]
    fn a_tile_computed_again_has_the_same_bits() {
        let (inputs, coeffs) = data((20, 1300));
        let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
        for device in under_test() {
            let engine = KernelEngine::<f32>::new(&device, PIPE).unwrap();
            let whole = engine.forward(x, c, &options).unwrap();
            let (outputs, states) = after_tiles(&engine, x, c, TILE_LEN).unwrap();
            assert_eq!(outputs, whole.outputs);
            assert_eq!(states.dim(), (20, 3));
            assert_eq!(states.column(2), whole.final_state);
            for number in 0..3 {
                let tile = again(&engine, x, c, states.view(), TILE_LEN, number).unwrap();
                let (first, end) = (number * TILE_LEN, 1300.min((number + 1) * TILE_LEN));
                assert_eq!(tile, whole.outputs.slice(s![.., first..end]));
            }
            // The last output of a tile is the state after it, in every bit.
            for (tile, last) in [511, 1023, 1299].into_iter().enumerate() {
                assert_eq!(states.column(tile), whole.outputs.column(last));
            }
            // A tile past the end is empty.
            let beyond = again(&engine, x, c, states.view(), TILE_LEN, 7).unwrap();
            assert_eq!(beyond.dim(), (20, 0));
            let few = states.slice(s![..3, ..]);
            assert!(again(&engine, x, c, few, TILE_LEN, 1).is_err());
        }
    }

    #[test]
    fn all_tiles_at_once_stay_within_the_bound() {
        let (inputs, coeffs) = data((2, 6 * 96));
        let (x, c, options) = (inputs.view(), coeffs.view(), Options::default());
        // A tree within a tile, one over the tiles, and one more within the tile.
        let levels = Domain::tree_levels(96) + Domain::tree_levels(6);
        let exact = reference::forward(x, c, &options).unwrap().outputs;
        let rounding = Rounding { levels, exp_ulps: 0.0 };
        let bound = reference::forward_bound(x, c, &options, rounding).unwrap().outputs;
        for device in under_test() {
            let engine = KernelEngine::<f32>::new(&device, PIPE).unwrap();
            let outputs = all_tiles_at_once(&engine, x, c, 96).unwrap();
            for ((got, exact), bound) in outputs.iter().zip(&exact).zip(&bound) {
                assert!((f64::from(*got) - exact).abs() <= *bound, "{got} instead of {exact}");
            }
            let error = all_tiles_at_once(&engine, x, c, 95).unwrap_err();
            assert!(matches!(error, Error::ShapeMismatch { .. }), "{error}");
        }
    }

    #[test]
    fn the_first_wrong_length_of_32_bit_offsets() {
        for tile in [512, 1000, 16_384] {
            let wrong = first_wrong_length(tile).unwrap();
            let next = |seq_len: u64| {
                let first = (seq_len - 1) / tile * tile;
                i32::try_from(first).unwrap().checked_add(i32::try_from(tile).unwrap())
            };
            assert_eq!(next(wrong), None, "{tile}");
            assert!(next(wrong - 1).is_some(), "{tile}");
        }
        assert_eq!(first_wrong_length(0), None);
    }
}
