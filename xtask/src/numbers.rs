//! Compares texts whose numbers may differ in their last digits.

use std::sync::LazyLock;

use regex::Regex;

/// The largest difference of two numbers, relative to the larger one.
const TOLERANCE: f64 = 1e-6;

/// True if two texts are equal, and their numbers within the tolerance. Any blanks and line ends
/// separate words.
pub fn texts_agree(old: &str, new: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (old, new) = (words(old), words(new));
    old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| words_agree(old, new))
}

/// True if two words are equal, and their numbers within the tolerance, as in `[0.5,` and `x=3`.
fn words_agree(old: &str, new: &str) -> bool {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| crate::pattern(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?"));
    if old == new {
        return true;
    }
    let numbers = |word: &str| -> Vec<f64> {
        NUMBER.find_iter(word).filter_map(|found| found.as_str().parse().ok()).collect()
    };
    let (a, b) = (numbers(old), numbers(new));
    NUMBER.replace_all(old, "#") == NUMBER.replace_all(new, "#")
        && a.len() == b.len()
        && a.iter().zip(&b).all(|(&a, &b)| numbers_agree(a, b))
}

/// True if two numbers are equal within the tolerance.
pub fn numbers_agree(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::texts_agree;

    #[test]
    fn the_last_digits_may_differ_and_nothing_else() {
        assert!(texts_agree(
            "[1.0000001, -2e-3]  in 3 steps",
            "[1.0000002, -2.0000001e-3] in\n3 steps"
        ));
        assert!(texts_agree("inf NaN", "inf NaN"));
        for (old, new) in [
            ("1.00001", "1.00002"),
            ("0.5 0.5", "0.5"),
            ("0.5", "-0.5"),
            ("3 steps", "3 rows"),
            ("x=3", "y=3"),
            ("[1, 2]", "[1, 2, 3]"),
            ("1", "NaN"),
            ("c4", "c5"),
        ] {
            assert!(!texts_agree(old, new), "{old} and {new}");
        }
    }
}
