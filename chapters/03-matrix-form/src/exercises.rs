//! Solutions to the exercises that ask for code.

use linrec::{Element, Error, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

/// Computes the inverse of `C̃ᵀ`, of shape `[L, L]`: ones on the diagonal, `-c_1, …` just below it.
// ANCHOR: inverse
pub fn inverse<T: Element>(coeffs: ArrayView1<T>) -> Array2<T> {
    let seq_len = coeffs.len();
    let mut inverse = Array2::eye(seq_len);
    for l in 1..seq_len {
        inverse[[l, l - 1]] = -coeffs[l];
    }
    inverse
}
// ANCHOR_END: inverse

/// Computes the mixing matrix by division: with `p_l = c_0 ⋯ c_l` its entries are `p_l / p_k`.
// ANCHOR: division
pub fn matrix_by_division(coeffs: ArrayView1<f64>) -> Array2<f64> {
    let mut product = 1.0;
    let products = coeffs.mapv(|c| {
        product *= c;
        product
    });
    let seq_len = coeffs.len();
    Array2::from_shape_fn((seq_len, seq_len), |(k, l)| match l >= k {
        true => products[l] / products[k],
        false => 0.0,
    })
}
// ANCHOR_END: division

/// Computes gated linear attention for one head: `y_l = Σ_{i ≤ l} c̃_{i,l} (q_l · k_i) v_i`.
///
/// `matrix` is `C̃`, `[L, L]`; `queries` and `keys` are `[L, N]`, `values` and the result `[L]`.
///
/// # Errors
///
/// Returns [`Error::ShapeMismatch`] if the shapes do not match.
// ANCHOR: attention
pub fn attention(
    matrix: ArrayView2<f64>,
    queries: ArrayView2<f64>,
    keys: ArrayView2<f64>,
    values: ArrayView1<f64>,
) -> Result<Array1<f64>, Error> {
    let seq_len = values.len();
    validate::same_shape("attention", ("queries", queries.shape()), ("keys", keys.shape()))?;
    validate::same_shape("attention", ("values", &[seq_len]), ("keys", &keys.shape()[..1]))?;
    validate::same_shape("attention", ("C̃ of", &[seq_len, seq_len]), ("matrix", matrix.shape()))?;
    let scores = queries.dot(&keys.t());
    Ok((scores * matrix.t()).dot(&values))
}
// ANCHOR_END: attention

#[cfg(test)]
mod tests {
    use super::{attention, inverse, matrix_by_division};
    use crate::mixing::mixing_matrix;
    use approx::assert_abs_diff_eq;
    use linrec::Options;
    use ndarray::{Array1, Array2, Axis, array};
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn the_inverse_undoes_the_mixing() {
        let coeffs = array![9.0, 2.0, 0.0, -4.0];
        let matrix = mixing_matrix(coeffs.view()).unwrap();
        assert_eq!(inverse(coeffs.view()).dot(&matrix.t()), Array2::<f64>::eye(4));
    }

    // ANCHOR: division_fails
    #[test]
    fn division_fails_where_a_product_is_zero() {
        let easy = array![0.5, 2.0, 0.25, 4.0];
        let by_division = matrix_by_division(easy.view());
        assert_eq!(by_division, mixing_matrix(easy.view()).unwrap());

        let reset = matrix_by_division(array![0.5, 0.0, 0.5, 0.5].view());
        assert!(reset[[1, 2]].is_nan(), "0 / 0 instead of 0.5");

        let underflow = matrix_by_division(Array1::from_elem(2000, 0.5).view());
        assert_eq!(underflow[[10, 11]], 0.5);
        assert!(underflow[[1500, 1501]].is_nan(), "0.5^1500 is below the smallest number");
    }
    // ANCHOR_END: division_fails

    #[test]
    fn attention_is_a_bank_of_recurrences() {
        let mut rng = StdRng::seed_from_u64(33);
        let (seq_len, width) = (40, 5);
        let mut draw =
            || Array2::from_shape_simple_fn((seq_len, width), || rng.random_range(-1.0..1.0));
        let (queries, keys) = (draw(), draw());
        let (values, coeffs) = (draw().column(0).to_owned(), draw().column(0).to_owned());
        let matrix = mixing_matrix(coeffs.view()).unwrap();
        let got = attention(matrix.view(), queries.view(), keys.view(), values.view()).unwrap();

        // The matrix does the same as a state of `width` numbers: h_l = c_l h_{l-1} + k_l v_l, y_l
        // = q_l · h_l.
        let inputs = (&keys.t() * &values).to_owned();
        let spread = coeffs.broadcast((width, seq_len)).unwrap();
        let states = linrec::forward(inputs.view(), spread, &Options::default()).unwrap().outputs;
        let expected = (&queries.t() * &states).sum_axis(Axis(0));
        assert_abs_diff_eq!(got, expected, epsilon = 1e-13);
    }
}
