//! The general case with complex logarithms, as published, for comparison with signs.

use linrec::Element;
use num_complex::Complex;
use num_traits::Float;

use crate::{Order, Real};

// ANCHOR: complex
/// The recurrence of real numbers by two prefix sums of complex logarithms: a negative number has
/// the logarithm `ln |v| + iπ`. Returns `e^(a + b)` with its imaginary part, which should be zero.
pub fn complex_two_sums<T: Real>(
    order: Order,
    inputs: &[T],
    coeffs: &[T],
    initial: T,
) -> Vec<Complex<T>>
where
    Complex<T>: Element,
{
    let mut a: Vec<_> = coeffs.iter().map(|&c| log(c)).collect();
    order.prefix(&mut a, |left, right| left + right);

    let terms = inputs.iter().zip(&a).map(|(&x, &a)| log(x) - a);
    let mut b: Vec<_> = std::iter::once(log(initial)).chain(terms).collect();
    order.prefix(&mut b, |p, q| {
        let (large, small) = if p.re >= q.re { (p, q) } else { (q, p) };
        if small.re == T::neg_infinity() {
            return large;
        }
        large + Element::ln(Complex::from(T::one()) + Element::exp(small - large))
    });

    a.iter().zip(&b[1..]).map(|(&a, &b)| Element::exp(a + b)).collect()
}

fn log<T: Real>(v: T) -> Complex<T> {
    let angle = if v < T::zero() { T::from_real(std::f64::consts::PI) } else { T::zero() };
    Complex::new(Float::ln(Float::abs(v)), angle)
}
// ANCHOR_END: complex

#[cfg(test)]
mod tests {
    use super::complex_two_sums;
    use crate::Order;
    use approx::assert_abs_diff_eq;
    use ch01_sequential_loop::linrec;

    #[test]
    fn complex_logarithms_solve_the_recurrence_up_to_rounding() {
        let (inputs, coeffs) = ([1.0_f64, -2.0, 0.0, 0.5], [-0.5, 0.9, -2.0, -0.1]);
        let y = complex_two_sums(Order::Tree, &inputs, &coeffs, -4.0);
        for (y, exact) in y.iter().zip(linrec(&inputs, &coeffs, -4.0)) {
            assert_abs_diff_eq!(y.re, exact, epsilon = 1e-13);
            assert_abs_diff_eq!(y.im, 0.0, epsilon = 1e-13);
        }
    }
}
