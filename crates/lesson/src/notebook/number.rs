//! Formats numbers in few digits.

use linrec::Element;

/// Formats a number with at most six significant digits; a complex number as `re+imi`.
pub(super) fn short<T: Element>(value: T) -> String {
    let text = value.to_string();
    // The text of a complex number already contains both parts.
    match text.parse::<f64>() {
        Ok(number) => short_real(number),
        Err(_) => text,
    }
}

pub(super) fn short_real(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || value == 0.0 {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        let text = format!("{value:.5e}");
        return match text.split_once('e') {
            Some((digits, power)) => format!("{}e{power}", trimmed(digits)),
            None => text,
        };
    }
    // Six digits in all, of which the magnitude determines the number of integer digits.
    let before = size.log10().floor() as i32 + 1;
    let after = usize::try_from(6 - before).unwrap_or(0);
    trimmed(&format!("{value:.after$}")).to_owned()
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::{short, short_real};
    use num_complex::Complex;

    #[test]
    fn six_digits_without_trailing_zeros() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "-0.5"),
            (1.0 / 3.0, "0.333333"),
            (100.0 / 3.0, "33.3333"),
            (1234567.8, "1234568"),
            (1e9, "1e9"),
            (1.5e-7, "1.5e-7"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(short_real(value), expected);
        }
        assert_eq!(short(0.1_f32), "0.1");
        assert_eq!(short(Complex::new(1.0, -2.0)), "1-2i");
    }
}
