//! Golden data of this chapter: results computed once in double precision with PyTorch 2.11.
//!
//! `heinsen_f64.npz` holds plain recurrences whose coefficients and inputs are positive, signed, or
//! zero in one place. `min_gru_f64.npz` holds a minGRU layer with the gradients of PyTorch's
//! autograd. Both are compiled in.

use std::io::Cursor;

use linrec::Options;
use ndarray::{Array1, Array2, Array3};
use ndarray_npy::{NpzReader, ReadNpzError};

use crate::Real;

/// A recurrence and its solution.
#[derive(Debug, Clone)]
pub struct Recurrence {
    /// The case's name in the archive, such as `L10_zeros`.
    pub name: String,
    /// `x`, `[num_seqs, seq_len]`.
    pub inputs: Array2<f64>,
    /// `c`, `[num_seqs, seq_len]`.
    pub coeffs: Array2<f64>,
    /// `y_{-1}`, `[num_seqs]`.
    pub initial: Array1<f64>,
    /// `y`, `[num_seqs, seq_len]`.
    pub outputs: Array2<f64>,
}

impl Recurrence {
    /// Returns the initial state as an option, rounded to the element type.
    pub fn options<T: Real>(&self) -> Options<'static, T> {
        Options { initial: Some(self.initial.mapv(T::from_real).into()), ..Options::default() }
    }
}

/// Reads the recurrences: lengths 1, 10 and 1000, each positive, signed and with zeros.
///
/// # Errors
///
/// Returns an error if the archive inside this program is unreadable.
pub fn recurrences() -> Result<Vec<Recurrence>, ReadNpzError> {
    let mut npz = NpzReader::new(Cursor::new(
        include_bytes!("../../../tests/data/heinsen_f64.npz").as_slice(),
    ))?;
    let mut cases = Vec::new();
    for seq_len in [1, 10, 1000] {
        for kind in ["positive", "signed", "zeros"] {
            let name = format!("L{seq_len}_{kind}");
            cases.push(Recurrence {
                inputs: npz.by_name(&format!("{name}_inputs"))?,
                coeffs: npz.by_name(&format!("{name}_coeffs"))?,
                initial: npz.by_name(&format!("{name}_initial"))?,
                outputs: npz.by_name(&format!("{name}_outputs"))?,
                name,
            });
        }
    }
    Ok(cases)
}

/// A minGRU layer, its states and gradients. Every unit of a batch is a sequence: `[2 · 6, 40]`.
#[derive(Debug, Clone)]
pub struct MinGruCase {
    /// The gate before its sigmoid.
    pub k: Array2<f64>,
    /// The candidate before `g`.
    pub h_tilde: Array2<f64>,
    /// The state before the first step, `[12]`.
    pub h0: Array1<f64>,
    /// The states.
    pub h: Array2<f64>,
    /// The loss's gradient with respect to the states.
    pub d_h: Array2<f64>,
    /// The loss's gradient with respect to `k`.
    pub d_k: Array2<f64>,
    /// The loss's gradient with respect to `h_tilde`.
    pub d_h_tilde: Array2<f64>,
}

/// Reads the minGRU layer.
///
/// # Errors
///
/// Returns an error if the archive inside this program is unreadable.
pub fn min_gru() -> Result<MinGruCase, ReadNpzError> {
    let mut npz = NpzReader::new(Cursor::new(
        include_bytes!("../../../tests/data/min_gru_f64.npz").as_slice(),
    ))?;
    let mut read = |name: &str| npz.by_name(name).map(rows);
    let (k, h_tilde, h) = (read("k")?, read("h_tilde")?, read("h")?);
    let (d_h, d_k, d_h_tilde) = (read("d_h")?, read("d_k")?, read("d_h_tilde")?);
    let h0: Array2<f64> = npz.by_name("h0")?;
    let h0 = h0.into_iter().collect();
    Ok(MinGruCase { k, h_tilde, h0, h, d_h, d_k, d_h_tilde })
}

/// Copies `[batch, time, unit]` into `[batch · unit, time]`.
fn rows(array: Array3<f64>) -> Array2<f64> {
    let (batch, time, units) = array.dim();
    let at = |(row, l): (usize, usize)| array[[row / units, l, row % units]];
    Array2::from_shape_fn((batch * units, time), at)
}
