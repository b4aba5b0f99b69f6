//! Measures in turns: in each round, every entrant runs once. The median of an entrant's rounds is
//! its result.

/// Returns the times of all entrants in every round, as `times[entrant][round]`. `time` runs an
/// entrant once and returns its time. An additional first round is not counted, because code that
/// is loaded lazily is loaded in it.
///
/// # Errors
///
/// Returns the error of `time`.
// ANCHOR: rounds
pub fn in_turns<E>(
    entrants: usize,
    rounds: usize,
    mut time: impl FnMut(usize) -> Result<f64, E>,
) -> Result<Vec<Vec<f64>>, E> {
    let mut times = vec![Vec::with_capacity(rounds); entrants];
    for round in 0..=rounds {
        for (entrant, times) in times.iter_mut().enumerate() {
            let taken = time(entrant)?;
            // The first round does not count: it loads what is loaded lazily.
            if round > 0 {
                times.push(taken);
            }
        }
    }
    Ok(times)
}
// ANCHOR_END: rounds

/// Returns the number of runs of a problem: five times `runs` where a run takes microseconds, since
/// the times of launches vary there.
pub fn runs_of(runs: usize, bytes: usize) -> usize {
    if bytes < 200_000_000 { 5 * runs } else { runs }
}

/// Returns the middle value; the larger of two middle values; NaN if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::{in_turns, median, runs_of};
    use crate::bytes;
    use linrec::kernels::Pass;

    #[test]
    fn every_entrant_runs_once_per_round_and_the_first_does_not_count() {
        let mut order = Vec::new();
        let times = in_turns(2, 3, |entrant| {
            order.push(entrant);
            Ok::<_, ()>(order.len() as f64)
        });
        assert_eq!(times, Ok(vec![vec![3.0, 5.0, 7.0], vec![4.0, 6.0, 8.0]]));
        assert_eq!(order, [0, 1].repeat(4));
        assert_eq!(in_turns(2, 3, |_| Err("broken")), Err("broken"));
    }

    #[test]
    fn the_value_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([2.0, 1.0]), 2.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn short_problems_run_more_often() {
        assert_eq!(runs_of(9, bytes(Pass::Forward, 13_200 * 16, 4)), 45);
        assert_eq!(runs_of(9, bytes(Pass::Forward, 13_200 * 4096, 4)), 9);
    }
}
