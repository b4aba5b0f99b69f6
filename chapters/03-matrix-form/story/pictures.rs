//! The chapter's figures of matrices.

use lesson::{plot, plot::HeatMap};
use linrec::Error;
use ndarray::{Array1, Array2, s};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::mixing::{mixing_matrix, rank_one_block};

/// Draws a matrix `C̃ᵀ` of width `seq_len` for each of six kinds of coefficients.
pub fn kinds(seq_len: usize) -> lesson::Result<String> {
    let mut rng = StdRng::seed_from_u64(30);
    let mut draw =
        |low: f64, high: f64| Array1::from_shape_simple_fn(seq_len, || rng.random_range(low..high));
    let mut resets = draw(0.9, 1.0);
    resets.slice_mut(s![4..;9]).fill(0.0);
    let turning = Array1::from_elem(seq_len, Complex::from_polar(0.95, 0.5));
    let panels = [
        ("constant: 0.9", mixing_matrix(Array1::from_elem(seq_len, 0.9).view())?),
        ("gates: in [0, 1)", mixing_matrix(draw(0.0, 1.0).view())?),
        ("near one: in [0.9, 1)", mixing_matrix(draw(0.9, 1.0).view())?),
        ("near one, with resets to 0", mixing_matrix(resets.view())?),
        ("signed: in (-1.2, 1.2)", mixing_matrix(draw(-1.2, 1.2).view())?),
        ("complex, turning (real part)", mixing_matrix(turning.view())?.mapv(|c| c.re)),
    ];
    let panels = panels.map(|(title, matrix)| heat_map(title, matrix.reversed_axes()));
    plot::grid(&panels.each_ref().map(|panel| panel as &dyn plot::Panel), 2)
}

/// Draws a matrix `C̃ᵀ`, the blocks that two threads compute separately, and the block that crosses
/// between them.
pub fn split(coeffs: &Array1<f64>, split: usize) -> lesson::Result<String> {
    let matrix = mixing_matrix(coeffs.view())?;
    let (own, crossing) = parts(&matrix, split)?;
    let panels = [
        heat_map("all of C̃ᵀ", matrix.reversed_axes()),
        heat_map("two threads alone", own),
        heat_map("what crosses: rank 1", crossing),
    ];
    plot::grid(&panels.each_ref().map(|panel| panel as &dyn plot::Panel), 3)
}

/// Splits `C̃ᵀ` into the sum of its blocks on the diagonal and the block that crosses the split.
fn parts(matrix: &Array2<f64>, split: usize) -> Result<(Array2<f64>, Array2<f64>), Error> {
    let mut own = matrix.t().to_owned();
    own.slice_mut(s![split.., ..split]).fill(0.0);
    let mut crossing = Array2::zeros(own.raw_dim());
    crossing.slice_mut(s![split.., ..split]).assign(&rank_one_block(matrix.view(), split)?);
    Ok((own, crossing))
}

fn heat_map(title: &str, transposed: Array2<f64>) -> HeatMap {
    let lowest = if transposed.iter().any(|&entry| entry < 0.0) { -1.0 } else { 0.0 };
    HeatMap::new(title, transposed, (lowest, 1.0)).axes("input k", "output l")
}
