//! Tests of the iteration that evaluates a network by linear recurrences.

use ch16_gallery::newton::{Gated, Slopes, errors};
use ndarray::{Array2, s};
use rand::SeedableRng;
use rand::rngs::StdRng;

fn network(gain: f64, seq_len: usize) -> Gated {
    Gated::draw(&mut StdRng::seed_from_u64(20), (6, seq_len), gain)
}

#[test]
fn a_tame_network_converges_to_its_states_within_the_bound() {
    for slopes in [Slopes::Diagonal, Slopes::Zero] {
        let network = network(0.4, 300);
        let states = network.sequential().unwrap();
        let guesses = network.iterate(slopes, 120).unwrap();
        let [.., last, guess] = guesses.as_slice() else { panic!("120 guesses") };
        let error = errors(guess.view(), states.view());
        let bound = network.error_bound(slopes, last.view(), guess.view(), states.view()).unwrap();
        for (l, (error, bound)) in error.iter().zip(&bound).enumerate() {
            assert!(error <= bound, "{slopes:?} at {l}: {error:e} > {bound:e}");
            // The bound means something: it grows with the last change, which is small.
            assert!(*bound < 1e-10, "{slopes:?} at {l}: {bound:e}");
        }
    }
}

#[test]
fn every_iteration_settles_at_least_one_more_position() {
    // A network wild enough that far positions stay wrong for long.
    let (network, iterations) = (network(30.0, 60), 10);
    let states = network.sequential().unwrap();
    let far = s![.., 40..];
    for slopes in [Slopes::Diagonal, Slopes::Zero] {
        let guesses = network.iterate(slopes, iterations + 1).unwrap();
        for (k, pair) in guesses.windows(2).enumerate() {
            let [guess, next] = pair else { panic!("two") };
            let error = errors(next.view(), states.view());
            let bound =
                network.error_bound(slopes, guess.view(), next.view(), states.view()).unwrap();
            for l in 0..=k {
                assert!(
                    error[l] <= bound[l],
                    "{slopes:?} {k} {l}: {:e} > {:e}",
                    error[l],
                    bound[l]
                );
                assert!(bound[l] < 1e-6, "{slopes:?} {k} {l}: {:e}", bound[l]);
            }
        }
        let first = errors(guesses[0].slice(far), states.slice(far));
        assert!(first.iter().any(|&e| e > 1e-3), "there is something to settle");
    }
}

#[test]
fn the_diagonal_is_the_slope_of_a_step() {
    let network = network(3.0, 5);
    let guess = Array2::from_shape_fn((6, 5), |(i, l)| ((i * 5 + l) as f64).sin());
    let problem = network.linearised(guess.view(), Slopes::Diagonal).unwrap();
    // With zero slopes, the inputs are the step itself, evaluated at the guess.
    let step = |guess: &Array2<f64>| network.linearised(guess.view(), Slopes::Zero).unwrap().inputs;
    let h = 1e-6;
    for i in 0..6 {
        for l in 1..5 {
            let mut moved = [guess.clone(), guess.clone()];
            moved[0][[i, l - 1]] += h;
            moved[1][[i, l - 1]] -= h;
            let slope = (step(&moved[0])[[i, l]] - step(&moved[1])[[i, l]]) / (2.0 * h);
            // Truncation of h²·M/6 with M below 100, and rounding of numbers near 1 divided by h.
            let limit = h * h * 100.0 / 6.0 + 8.0 * f64::EPSILON / h;
            let difference = problem.coeffs[[i, l]] - slope;
            assert!(difference.abs() <= limit, "{i} {l}: {difference:e}");
        }
    }
}

#[test]
fn a_network_without_weights_takes_one_iteration() {
    let mut network = network(1.0, 200);
    network.gate.fill(0.0);
    network.candidate.fill(0.0);
    let states = network.sequential().unwrap();
    let guesses = network.iterate(Slopes::Diagonal, 1).unwrap();
    let error = errors(guesses[0].view(), states.view());
    assert!(error.iter().all(|&e| e < 1e-13), "{error}");
    // Every difference fades by 1 − z: the exponent is the mean logarithm of the slowest state.
    let mean = |i: usize| -> f64 {
        let logs = network.gate_drive.row(i).mapv(|d| (1.0 - 1.0 / (1.0 + (-d).exp())).ln());
        logs.mean().unwrap()
    };
    let slowest = (0..6).map(mean).fold(f64::NEG_INFINITY, f64::max);
    let exponent = network.lyapunov(states.view()).unwrap();
    // The other states' share of the difference fades within the first of 200 steps.
    assert!((exponent - slowest).abs() < (6.0_f64).ln() / 200.0 + 1e-12, "{exponent} {slowest}");
}

#[test]
fn wrong_shapes_are_errors_and_empty_networks_are_not() {
    let mut network = network(1.0, 4);
    let error = network.linearised(Array2::zeros((6, 3)).view(), Slopes::Zero).unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in gated: gate drive [6, 4], guess [6, 3]");
    network.candidate = Array2::zeros((5, 6));
    assert!(network.sequential().is_err());
    let empty = Gated::draw(&mut StdRng::seed_from_u64(21), (3, 0), 1.0);
    assert_eq!(empty.sequential().unwrap().dim(), (3, 0));
    assert_eq!(empty.iterate(Slopes::Diagonal, 2).unwrap().len(), 2);
}
