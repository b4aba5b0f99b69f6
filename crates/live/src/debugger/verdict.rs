//! Compares the outputs of a kernel for the recurrence with the loop in double precision.

use std::collections::BTreeMap;

use linrec::contract::Domain;
use linrec::reference::{self, Rounding};
use linrec::{Direction, Options};
use ndarray::Array2;
use simt::Memory;

use crate::number::float;
use crate::scene::Array;
use crate::values::Type;

/// Returns a sentence about the outputs, and true if they are right. Returns `None` for kernels
/// that do not compute the recurrence.
pub fn of(
    memory: &Memory,
    arrays: &[Array],
    sizes: &BTreeMap<String, i64>,
) -> Option<(String, bool)> {
    let size = |name: &str| sizes.get(name).map(|&size| size as usize);
    let (rows, len) = (size("rows").unwrap_or(1), size("len")?);
    let read = |name: &str| {
        let array = arrays.iter().find(|array| array.name == name && array.ty == Type::F32)?;
        let mut bytes = vec![0; 4 * array.count];
        memory.read(array.address, &mut bytes).ok()?;
        let word = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        Array2::from_shape_vec((rows, len), bytes.chunks_exact(4).map(word).collect()).ok()
    };
    let (inputs, coeffs, outputs) = (read("inputs")?, read("coeffs")?, read("outputs")?);
    let direction =
        if size("reverse") == Some(1) { Direction::Reverse } else { Direction::Forward };
    let options = Options { direction, ..Options::default() };
    let rounding = Rounding { levels: Domain::tree_levels(len), exp_ulps: 0.0 };
    let (x, c) = (inputs.view(), coeffs.view());
    let exact = reference::forward(x, c, &options).ok()?.outputs;
    let bound = reference::forward_bound(x, c, &options, rounding).ok()?.outputs;
    let wrong = outputs.indexed_iter().find(|&(at, &output)| {
        let error = (f64::from(output) - exact[at]).abs();
        error.is_nan() || error > bound[at]
    });
    Some(match wrong {
        None => ("Every output is as near to the loop's as rounding allows.".to_owned(), true),
        Some(((row, at), &output)) => {
            let (is, should) = (float(output.into()), float(exact[[row, at]]));
            (format!("But output {at} of row {row} is {is}, and should be {should}."), false)
        }
    })
}
