//! Shifts sequences by one position.

use linrec::{Direction, Element, Error, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// Shifts every row by one position in the direction of the walk. The position that becomes free
/// gets the row's `fill`, and the last element is dropped.
///
/// [`Direction::Forward`] turns `[a, b, c]` into `[fill, a, b]`, [`Direction::Reverse`] into `[b,
/// c, fill]`. Shapes: `array` and the result are `[num_seqs, seq_len]`, `fill` is `[num_seqs]`.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if `fill` does not have one entry per row.
// ANCHOR: shift
pub fn shift<T: Element>(
    array: ArrayView2<T>,
    direction: Direction,
    fill: ArrayView1<T>,
) -> Result<Array2<T>, Error> {
    let (num_seqs, seq_len) = array.dim();
    validate::same_shape("shift", ("rows", &[num_seqs]), ("fill", fill.shape()))?;
    let mut shifted = validate::allocate("shift", (num_seqs, seq_len))?;
    for step in 0..seq_len {
        let here = direction.position(step, seq_len);
        let source = match step {
            0 => fill,
            _ => array.column(direction.position(step - 1, seq_len)),
        };
        shifted.column_mut(here).assign(&source);
    }
    Ok(shifted)
}
// ANCHOR_END: shift

/// Returns the first element of every row in the direction of the walk, or zeros for empty rows.
pub fn first<T: Element>(array: ArrayView2<T>, direction: Direction) -> Array1<T> {
    let (num_seqs, seq_len) = array.dim();
    match seq_len {
        0 => Array1::zeros(num_seqs),
        _ => array.column(direction.position(0, seq_len)).to_owned(),
    }
}
