//! Exercises that check the reader's answer.

/// Checks an answer if there is one. `check` fails for a wrong answer, with an `assert!` that
/// explains the mistake.
///
/// ```
/// use lesson::notebook::exercise;
///
/// // Replace `None` by `Some(…)`.
/// let answer: Option<f64> = None;
/// exercise(answer, |coeff| {
///     let left = coeff.powi(10);
///     assert!((left - 0.5).abs() < 1e-6, "after 10 steps {left} is left");
/// });
/// ```
///
/// # Panics
///
/// Panics if `check` panics: a cell reports a wrong answer in this way.
pub fn exercise<T>(answer: Option<T>, check: impl FnOnce(T)) {
    match answer {
        Some(answer) => {
            check(answer);
            println!("Right.");
        }
        None => println!("Not answered yet: replace `None` by `Some(…)` and run the cell again."),
    }
}

#[cfg(test)]
mod tests {
    use super::exercise;

    #[test]
    fn only_a_given_answer_is_checked() {
        exercise(None::<u32>, |_| panic!("there is nothing to check"));
        exercise(Some(4), |answer| assert_eq!(answer, 4));
    }

    #[test]
    #[should_panic(expected = "5 is not even")]
    fn a_wrong_answer_fails_with_the_reason() {
        exercise(Some(5), |answer| assert!(answer % 2 == 0, "{answer} is not even"));
    }
}
