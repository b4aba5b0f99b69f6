//! The loop with twice the digits of `f64`, which shows the errors of `f64` itself.

/// Computes the outputs `y_l = y_{l-1} * c_l + x_l` from zero, each rounded once.
///
/// The state is the unevaluated sum of two `f64`; the second holds what the first lost to rounding.
pub fn linrec_to_the_last_bit(inputs: &[f64], coeffs: &[f64]) -> Vec<f64> {
    let (mut high, mut low) = (0.0_f64, 0.0_f64);
    let step = |(&x, &c): (&f64, &f64)| {
        let product = high * c;
        let lost_in_product = high.mul_add(c, -product);
        let sum = product + x;
        let x_as_added = sum - product;
        let lost_in_sum = (product - (sum - x_as_added)) + (x - x_as_added);
        let rest = low.mul_add(c, lost_in_product + lost_in_sum);
        high = sum + rest;
        low = rest - (high - sum);
        high
    };
    inputs.iter().zip(coeffs).map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::linrec_to_the_last_bit;

    #[test]
    fn digits_that_f64_loses_survive() {
        // 1 + 2^-60 - 1: f64 loses the small number, and here it survives.
        let small = 2_f64.powi(-60);
        let y = linrec_to_the_last_bit(&[1.0, small, -1.0], &[1.0; 3]);
        assert_eq!(y, [1.0, 1.0, small]);
        // (1 + 2^-52)^2 = 1 + 2^-51 + 2^-104.
        let c = 1.0 + f64::EPSILON;
        let y = linrec_to_the_last_bit(&[c, -1.0 - 2.0 * f64::EPSILON], &[0.0, c]);
        assert_eq!(y[1], 2_f64.powi(-104));
    }
}
