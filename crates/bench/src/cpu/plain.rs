//! The plain loop: the code that a programmer writes first, and the baseline for the engine. Rows
//! are divided among the threads; the loop over a row is the loop of chapter 1, and backward the
//! loop of chapter 4.

use rayon::prelude::*;

/// Computes `y_l = y_{l-1} * c_l + x_l` along every row of `row` elements.
pub fn forward(threads: usize, row: usize, inputs: &[f32], coeffs: &[f32], outputs: &mut [f32]) {
    if threads == 1 {
        let given = inputs.chunks(row).zip(coeffs.chunks(row));
        given.zip(outputs.chunks_mut(row)).for_each(|((x, c), y)| forward_row(x, c, y));
    } else {
        (inputs.par_chunks(row), coeffs.par_chunks(row), outputs.par_chunks_mut(row))
            .into_par_iter()
            .for_each(|(x, c, y)| forward_row(x, c, y));
    }
}

/// Computes the gradients of inputs and coefficients along every row of `row` elements. Each row is
/// walked from its end, and so are the rows: memory is then read in one direction, which
/// prefetchers expect.
pub fn backward(
    threads: usize,
    row: usize,
    [d_outputs, coeffs, outputs]: [&[f32]; 3],
    d_inputs: &mut [f32],
    d_coeffs: &mut [f32],
) {
    if threads == 1 {
        let given = d_outputs.chunks(row).zip(coeffs.chunks(row)).zip(outputs.chunks(row));
        let results = d_inputs.chunks_mut(row).zip(d_coeffs.chunks_mut(row));
        given
            .zip(results)
            .rev()
            .for_each(|(((d, c), y), (d_x, d_c))| backward_row(d, c, y, d_x, d_c));
    } else {
        let results = (d_inputs.par_chunks_mut(row), d_coeffs.par_chunks_mut(row));
        let given = (d_outputs.par_chunks(row), coeffs.par_chunks(row), outputs.par_chunks(row));
        (given.0, given.1, given.2, results.0, results.1)
            .into_par_iter()
            .rev()
            .for_each(|(d, c, y, d_x, d_c)| backward_row(d, c, y, d_x, d_c));
    }
}

fn forward_row(inputs: &[f32], coeffs: &[f32], outputs: &mut [f32]) {
    let mut state = 0.0;
    for ((&x, &c), y) in inputs.iter().zip(coeffs).zip(outputs) {
        state = state * c + x;
        *y = state;
    }
}

fn backward_row(
    d_outputs: &[f32],
    coeffs: &[f32],
    outputs: &[f32],
    d_inputs: &mut [f32],
    d_coeffs: &mut [f32],
) {
    let previous = outputs.iter().rev().skip(1).chain([&0.0]);
    let given = d_outputs.iter().zip(coeffs).rev().zip(previous);
    let mut carry = 0.0;
    for (((&d_y, &c), &y), (d_x, d_c)) in given.zip(d_inputs.iter_mut().zip(d_coeffs).rev()) {
        let delta = carry + d_y;
        *d_x = delta;
        *d_c = delta * y;
        carry = delta * c;
    }
}

#[cfg(test)]
mod tests {
    use linrec::Options;
    use ndarray::{Array2, arr2};

    #[test]
    fn the_plain_loop_computes_what_the_library_does() -> Result<(), linrec::Error> {
        let x = arr2(&[[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let c = arr2(&[[0.5_f32, 0.25, 2.0], [1.0, 0.0, 0.5]]);
        let expected = linrec::forward(x.view(), c.view(), &Options::default())?.outputs;
        let gradients = linrec::backward(x.view(), c.view(), expected.view(), &Options::default())?;
        let slice = |array: &'_ Array2<f32>| array.iter().copied().collect::<Vec<_>>();
        let (x, c, y) = (slice(&x), slice(&c), slice(&expected));
        for threads in [1, 2] {
            let mut outputs = [f32::NAN; 6];
            super::forward(threads, 3, &x, &c, &mut outputs);
            assert_eq!(outputs, y[..]);
            let (mut d_x, mut d_c) = ([f32::NAN; 6], [f32::NAN; 6]);
            super::backward(threads, 3, [&x, &c, &y], &mut d_x, &mut d_c);
            assert_eq!(d_x, slice(&gradients.d_inputs)[..]);
            assert_eq!(d_c, slice(&gradients.d_coeffs)[..]);
        }
        Ok(())
    }
}
