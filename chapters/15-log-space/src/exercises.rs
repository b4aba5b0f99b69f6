//! Solutions to the exercises that ask for code.

use ndarray::{Array2, ArrayView2};

use crate::stored::{self, Narrow};

/// Returns the gradient of `ln c` from the outputs `y`, the inputs `x` and the gradient `δ^(x)`.
/// All arrays have the same shape.
// ANCHOR: without_coeffs
pub fn d_log_coeffs(
    outputs: ArrayView2<f64>,
    inputs: ArrayView2<f64>,
    d_inputs: ArrayView2<f64>,
) -> Array2<f64> {
    (&outputs - &inputs) * d_inputs
}
// ANCHOR_END: without_coeffs

// ANCHOR: max_and_sum
/// A sum of exponentials `sum · e^max`, as the largest exponent and a factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxAndSum {
    /// The largest exponent.
    pub max: f64,
    /// The sum of all `e^(exponent - max)`, at least 1.
    pub sum: f64,
}

impl MaxAndSum {
    /// Makes a sum of the single term `e^exponent`.
    pub fn of(exponent: f64) -> Self {
        MaxAndSum { max: exponent, sum: 1.0 }
    }

    /// Adds two sums.
    pub fn plus(self, other: Self) -> Self {
        let (large, small) = if self.max >= other.max { (self, other) } else { (other, self) };
        MaxAndSum { max: large.max, sum: large.sum + small.sum * (small.max - large.max).exp() }
    }

    /// Returns the logarithm of the sum.
    pub fn log(self) -> f64 {
        self.max + self.sum.ln()
    }
}
// ANCHOR_END: max_and_sum

// ANCHOR: scaled
/// A number `mantissa · 2^exponent` whose exponent has the range of an integer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled {
    /// Zero, or a number of about the size one.
    pub mantissa: f64,
    /// The exponent of two.
    pub exponent: i64,
}

impl Scaled {
    /// Makes the number `v · 2^exponent`.
    pub fn new(v: f64, exponent: i64) -> Self {
        if v == 0.0 || !v.is_finite() {
            return Scaled { mantissa: v, exponent: 0 };
        }
        let shift = v.abs().log2().floor() as i32;
        // In two steps: the factor for the smallest number, 2^1074, would be infinite.
        let mantissa = v * 2_f64.powi(-(shift / 2)) * 2_f64.powi(-(shift - shift / 2));
        Scaled { mantissa, exponent: exponent + i64::from(shift) }
    }

    /// Multiplies; the addition of exponents is exact.
    pub fn times(self, other: Self) -> Self {
        Scaled::new(self.mantissa * other.mantissa, self.exponent + other.exponent)
    }

    /// Adds.
    pub fn plus(self, other: Self) -> Self {
        if self.mantissa == 0.0 || other.mantissa == 0.0 {
            return if self.mantissa == 0.0 { other } else { self };
        }
        let (large, small) =
            if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let apart = (large.exponent - small.exponent).min(2000) as i32;
        Scaled::new(large.mantissa + small.mantissa * 2_f64.powi(-apart), large.exponent)
    }

    /// Returns the natural logarithm.
    pub fn ln(self) -> f64 {
        self.mantissa.ln() + self.exponent as f64 * std::f64::consts::LN_2
    }
}

/// Computes the final state of a sequence by the plain loop.
pub fn final_state(inputs: &[f64], coeffs: &[f64], initial: f64) -> Scaled {
    let step =
        |y: Scaled, (&x, &c): (&f64, &f64)| y.times(Scaled::new(c, 0)).plus(Scaled::new(x, 0));
    inputs.iter().zip(coeffs).fold(Scaled::new(initial, 0), step)
}
// ANCHOR_END: scaled

// ANCHOR: how_far
/// Returns the longest way `Σ |ln c|` over `seq_len` elements for which the bound of stored
/// logarithms promises an error of at most `tolerance`, if inputs and outputs are between `1/e` and
/// `e`; `None` if not even a way of zero does.
pub fn longest_way(storage: Narrow, seq_len: usize, tolerance: f64) -> Option<f64> {
    let fits = |way: f64| {
        let bound = stored::relative_bound(storage, seq_len + 1, way, 1.0, 1.0);
        bound <= tolerance
    };
    if !fits(0.0) {
        return None;
    }
    // The bound grows with the way, so bisection finds the longest.
    let (mut low, mut high) = (0.0, 1e6);
    while high - low > 1e-3 {
        let middle = (low + high) / 2.0;
        if fits(middle) { low = middle } else { high = middle }
    }
    Some(low)
}
// ANCHOR_END: how_far

#[cfg(test)]
mod tests {
    use super::{MaxAndSum, Scaled, d_log_coeffs, final_state, longest_way};
    use crate::stored::{BF16, F16};
    use crate::{LogSpace, log_add_exp};
    use approx::assert_abs_diff_eq;
    use linrec::{Engine, Options};
    use ndarray::array;

    #[test]
    fn the_gradient_of_a_logarithm_needs_no_coefficient() {
        let (x, log_c) = (array![[1.0, -2.0, 0.5, 3.0]], array![[-0.5, -0.1, -2.0, 0.3]]);
        let options =
            Options { initial: Some(array![2.0].into()), log_coeffs: true, ..Options::default() };
        let engine = LogSpace::whole();
        let y = engine.forward(x.view(), log_c.view(), &options).unwrap().outputs;
        let dy = array![[1.0, 0.0, -1.0, 2.0]];
        let d = engine.backward(dy.view(), log_c.view(), y.view(), &options).unwrap();
        let without = d_log_coeffs(y.view(), x.view(), d.d_inputs.view());
        assert_abs_diff_eq!(without, d.d_coeffs, epsilon = 1e-13);
    }

    #[test]
    fn a_maximum_and_a_sum_represent_a_logarithm() {
        let exponents = [3.0, -1000.0, 1002.0, 1001.0, 0.0];
        let pairs = exponents.map(MaxAndSum::of);
        let left = pairs.into_iter().reduce(MaxAndSum::plus).unwrap();
        let right = pairs.into_iter().rev().reduce(|sum, pair| pair.plus(sum)).unwrap();
        let log = exponents.into_iter().reduce(log_add_exp).unwrap();
        assert_abs_diff_eq!(left.log(), log, epsilon = 1e-12);
        assert_abs_diff_eq!(right.log(), log, epsilon = 1e-12);
        let pair = MaxAndSum::of(1000.0).plus(MaxAndSum::of(1001.0));
        assert_abs_diff_eq!(pair.log(), 1001.3133, epsilon = 1e-4);
    }

    #[test]
    fn integer_exponents_have_the_range_of_logarithms() {
        let doubled = final_state(&[0.0; 5000], &[2.0; 5000], 1.0);
        assert_eq!(doubled, Scaled { mantissa: 1.0, exponent: 5000 });
        assert_abs_diff_eq!(doubled.ln(), 5000.0 * 2_f64.ln(), epsilon = 5e-9);
        // Back in range, the numbers are the loop's, up to the last bits.
        let (x, c) = ([1.0, -0.3, 0.0, 5.0, 1e-3], [0.1, 1e200, -1e200, 1e-300, 1e-100]);
        let state = final_state(&x, &c, 0.7);
        let exact = -((0.7_f64 * 0.1 + 1.0) * 1e200 - 0.3);
        let exact = (exact * 1e-100 + 5.0) * 1e-100 + 1e-3;
        assert!(
            (state.mantissa * 2_f64.powi(state.exponent as i32) - exact).abs()
                < 1e-15 * exact.abs()
        );
        let tiny = Scaled::new(5e-324, 0);
        assert_eq!((tiny.mantissa, tiny.exponent), (1.0, -1074));
    }

    #[test]
    fn the_reach_of_16_bits_is_short() {
        let way = longest_way(F16, 16, 0.05).unwrap();
        assert!(way > 1.0 && way < 50.0, "{way}");
        assert!(longest_way(F16, 4096, 0.05).unwrap() < way);
        assert_eq!(longest_way(BF16, 16, 0.05), None);
    }
}
