//! The recurrence with one coefficient for the whole sequence: a convolution, computed by the fast
//! Fourier transform.

use std::sync::Arc;

use linrec::{Element, Error, validate};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Zip};
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, FftError, FftNum, RealFftPlanner, RealToComplex};

/// Returns the kernel `K = [1, c, c², …]` of length `seq_len`: the first row of the Toeplitz matrix
/// `C̃`.
// ANCHOR: kernel
pub fn kernel<R: Element>(coeff: R, seq_len: usize) -> Array1<R> {
    let mut kernel = Array1::ones(seq_len);
    for j in 1..seq_len {
        kernel[j] = kernel[j - 1] * coeff;
    }
    kernel
}
// ANCHOR_END: kernel

/// Convolutions of one length, with planned Fourier transforms.
#[derive(Clone)]
pub struct Convolution<R: FftNum> {
    seq_len: usize,
    forward: Arc<dyn RealToComplex<R>>,
    inverse: Arc<dyn ComplexToReal<R>>,
}

impl<R: FftNum + Element> Convolution<R> {
    /// Plans the convolution that equals the recurrence. The transforms' length is the next power
    /// of two from `2 seq_len - 1` on, so that nothing wraps around.
    pub fn padded(seq_len: usize) -> Self {
        Self::planned(seq_len, (2 * seq_len).saturating_sub(1).next_power_of_two())
    }

    /// Plans the circular convolution, by transforms of length `seq_len` itself, as a circulant
    /// matrix computes it. The end of the sequence leaks into its beginning.
    pub fn circular(seq_len: usize) -> Self {
        Self::planned(seq_len, seq_len.max(1))
    }

    fn planned(seq_len: usize, transform_len: usize) -> Self {
        let mut planner = RealFftPlanner::new();
        let (forward, inverse) =
            (planner.plan_fft_forward(transform_len), planner.plan_fft_inverse(transform_len));
        Convolution { seq_len, forward, inverse }
    }

    /// Returns the length of the transforms.
    pub fn transform_len(&self) -> usize {
        self.forward.len()
    }

    /// Computes the outputs `y = K * x` of one sequence, `[seq_len]`. All positions share the
    /// coefficient.
    ///
    /// The error is relative to the largest output, not to each output: see [`error_bound`].
    ///
    /// # Errors
    ///
    /// Returns an error if `inputs` has another length, or if a number is not finite.
    // ANCHOR: apply
    pub fn apply(&self, inputs: ArrayView1<R>, coeff: R) -> Result<Array1<R>, Error> {
        check_len(inputs.len(), self.seq_len)?;
        let mut spectrum = self.transform(inputs)?;
        let kernel = self.transform(kernel(coeff, self.seq_len).view())?;
        for (input, weight) in spectrum.iter_mut().zip(kernel) {
            *input = *input * weight;
        }
        let mut outputs = self.inverse.make_output_vec();
        self.inverse.process(&mut spectrum, &mut outputs).map_err(refusal)?;
        // The library does not normalise: the two transforms together multiply by their length.
        let scale = R::from_real(1.0 / self.transform_len() as f64);
        Ok(outputs.iter().take(self.seq_len).map(|&y| y * scale).collect())
    }

    /// Computes the Fourier transform of a sequence that is padded with zeros.
    fn transform(&self, sequence: ArrayView1<R>) -> Result<Vec<Complex<R>>, Error> {
        let mut padded = self.forward.make_input_vec();
        padded.iter_mut().zip(sequence).for_each(|(place, &value)| *place = value);
        let mut spectrum = self.forward.make_output_vec();
        self.forward.process(&mut padded, &mut spectrum).map_err(refusal)?;
        Ok(spectrum)
    }
    // ANCHOR_END: apply
}

fn check_len(given: usize, planned: usize) -> Result<(), Error> {
    validate::same_shape("convolution", ("planned for", &[planned]), ("inputs", &[given]))
}

fn refusal(error: FftError) -> Error {
    let what = match error {
        FftError::InputValues(..) => "values that are not finite".to_owned(),
        other => other.to_string(),
    };
    Error::Unsupported { engine: "convolution".to_owned(), what }
}

/// Computes the recurrence with one coefficient per sequence: `inputs` and the result have the
/// shape `[num_seqs, seq_len]`, `coeffs` has `[num_seqs]`.
///
/// # Errors
///
/// Returns an error if the shapes do not match, or if a number is not finite.
pub fn convolve<R: FftNum + Element>(
    inputs: ArrayView2<R>,
    coeffs: ArrayView1<R>,
) -> Result<Array2<R>, Error> {
    let (num_seqs, seq_len) = inputs.dim();
    validate::same_shape(
        "convolve",
        ("one coefficient per sequence:", &[num_seqs]),
        ("coeffs", coeffs.shape()),
    )?;
    let mut outputs = validate::allocate("convolve", (num_seqs, seq_len))?;
    if inputs.is_empty() {
        return Ok(outputs);
    }
    let convolution = Convolution::padded(seq_len);
    for ((mut outputs, inputs), &coeff) in
        outputs.rows_mut().into_iter().zip(inputs.rows()).zip(coeffs)
    {
        outputs.assign(&convolution.apply(inputs, coeff)?);
    }
    Ok(outputs)
}

/// Bounds the distance of each output of [`Convolution::padded`] from the exact convolution, to
/// first order: `(2κ + 3ε) ‖K‖₂ ‖x‖₂ + κ ‖K‖₁ ‖x‖₂` for the transforms and their product, and `ε
/// ‖(j c^j)_j‖₂ ‖x‖₂` for the rounded powers in the kernel, with `ε` the unit round-off.
///
/// `κ` is the relative error of one transform of length `P` in the 2-norm: `24 ε (log₂ P + 1)`,
/// from Higham (2002), theorem 24.2. The twiddle factors are off by at most `17 ε` (they are the
/// cosine and sine of an angle that is rounded three times), and packing real numbers adds one
/// level.
pub fn error_bound<R: Element>(inputs: ArrayView1<R>, coeff: R) -> f64 {
    let seq_len = inputs.len();
    let unit = R::UNIT_ROUNDOFF;
    let transform_len = (2 * seq_len).saturating_sub(1).next_power_of_two();
    let transform = 24.0 * unit * (f64::from(transform_len.ilog2()) + 1.0);
    let kernel = kernel(coeff.modulus(), seq_len);
    let norm = |values: &Array1<f64>| values.mapv(|v| v * v).sum().sqrt();
    let steps = Array1::from_iter((0..seq_len).map(|j| j as f64));
    let input_norm = norm(&inputs.mapv(|x| x.modulus()));
    let transforms = (2.0 * transform + 3.0 * unit) * norm(&kernel) + transform * kernel.sum();
    let powers = unit * norm(&Zip::from(&kernel).and(&steps).map_collect(|k, j| k * j));
    (transforms + powers) * input_norm
}
