//! Tests of every model against a formula that uses no recurrence, and of its errors.
//!
//! The lengths are zero, one, a few steps, and more than one tile of the kernel, because models
//! lose their first and last steps easily. `solve` computes each problem by the library and by the
//! kernel of chapter 7 on the emulator, and compares both. Golden data from PyTorch cover minGRU
//! with its gradients.

use approx::assert_abs_diff_eq;
use ch16_gallery::Problem;
use ch16_gallery::models::gate_loop::Head;
use ch16_gallery::models::iir::{SecondOrder, bank, bank_direct};
use ch16_gallery::models::interest::{account, payment, remaining};
use ch16_gallery::models::lru::{Lru, ring};
use ch16_gallery::models::min_rnn::{self, min_gru, min_gru_backward, min_lstm};
use ch16_gallery::models::returns::{direct, returns};
use ch16_gallery::models::rg_lru::{RgLru, decay_from};
use ch16_gallery::models::rwkv::Wkv;
use ch16_gallery::models::s4d::S4d;
use ch16_gallery::models::s5::S5;
use ch16_gallery::models::slstm::Gates;
use ch16_gallery::models::{log_sigmoid, sigmoid};
use linrec::contract::golden::array_distance;
use linrec::device::Storage;
use linrec::device::{Device, KernelEngine};
use linrec::kernels::{KernelChoice, PipeConfig};
use linrec::{Element, Engine};
use ndarray::{Array1, Array2, Axis, array};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The largest `max |a − b| / max |b|` in double precision: the limit for golden data.
const LIMIT: f64 = 1e-11;

/// Zero steps, one, a few, and enough for more than one tile of the kernel.
const LENGTHS: [usize; 5] = [0, 1, 2, 33, 700];

fn draw(rng: &mut StdRng, shape: (usize, usize), low: f64, high: f64) -> Array2<f64> {
    Array2::from_shape_simple_fn(shape, || rng.random_range(low..high))
}

fn complex(rng: &mut StdRng, shape: (usize, usize)) -> Array2<Complex<f64>> {
    Array2::from_shape_simple_fn(shape, || {
        Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))
    })
}

/// Returns the library's states; the kernel's states on the emulator must be close.
fn solve<T: Element<Wide = T> + Storage<Accum = T>>(problem: &Problem<T>) -> Array2<T> {
    let states = problem.solve().unwrap();
    let pipe = KernelChoice::Pipe(PipeConfig::DEFAULT);
    let kernel = KernelEngine::<T>::new(&Device::simt(), pipe).unwrap();
    let by_kernel = problem.solve_with(&kernel as &dyn Engine<T>).unwrap();
    assert!(array_distance(&by_kernel, &states) <= LIMIT);
    states
}

#[test]
fn interest_follows_the_annuity_formula() {
    for (rate, months) in [(0.0, 12), (0.005, 0), (0.005, 1), (0.005, 480), (-0.01, 50)] {
        let pay = payment(1000.0, rate, months.max(1));
        let (rates, deposits) = (Array1::from_elem(months, rate), Array1::from_elem(months, -pay));
        let balances = solve(&account(1000.0, rates.view(), deposits.view()));
        let formula = remaining(1000.0, rate, pay, months).insert_axis(Axis(0));
        // The last balance is zero, so the error is relative to the loan.
        let error = (&balances - &formula).mapv(f64::abs).fold(0.0, |a: f64, &b| a.max(b));
        assert!(error <= 1000.0 * LIMIT, "{rate} {months}: {error:e}");
        if months > 0 {
            assert_abs_diff_eq!(balances[[0, months - 1]], 0.0, epsilon = 1000.0 * LIMIT);
        }
    }
    let error = account(1.0, array![0.1].view(), array![1.0, 2.0].view()).solve().unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in forward: inputs [1, 2], coeffs [1, 1]");
}

#[test]
fn returns_equal_the_sums_until_each_episodes_end() {
    let mut rng = StdRng::seed_from_u64(1);
    for steps in LENGTHS {
        let rewards = draw(&mut rng, (3, steps), -1.0, 1.0);
        let ends = Array2::from_shape_simple_fn((3, steps), || rng.random_range(0..10) == 0);
        let beyond = array![5.0, -5.0, 0.0];
        let got = solve(&returns(rewards.view(), ends.view(), beyond.view(), 0.97).unwrap());
        let expected = direct(rewards.view(), ends.view(), beyond.view(), 0.97);
        assert!(array_distance(&got, &expected) <= LIMIT, "{steps}");
    }
    let (rewards, ends) = (Array2::zeros((1, 3)), Array2::from_elem((1, 2), false));
    let error = returns(rewards.view(), ends.view(), array![0.0].view(), 0.9).unwrap_err();
    assert_eq!(error.to_string(), "shape mismatch in returns: rewards [1, 3], ends [1, 2]");
}

#[test]
fn filters_look_back_twice() {
    let mut rng = StdRng::seed_from_u64(2);
    for len in LENGTHS {
        let signal = draw(&mut rng, (1, len), -1.0, 1.0).row(0).to_owned();
        for filter in [
            SecondOrder::swinging(7.3, 0.99),
            SecondOrder { a1: 0.3, a2: 0.6 }, // real poles of both signs
            SecondOrder { a1: 1.0, a2: 1.0 }, // Fibonacci: one pole outside of the circle
            SecondOrder { a1: -0.5, a2: 0.0 }, // the first order
        ] {
            let got = filter.read(solve(&filter.problem(signal.view())).view()).unwrap();
            assert!(
                array_distance(&got, &filter.direct(signal.view())) <= LIMIT,
                "{filter:?} {len}"
            );
        }
    }
    let mut impulse = Array1::zeros(50);
    impulse[0] = 1.0;
    let fibonacci = SecondOrder { a1: 1.0, a2: 1.0 }.filter(impulse.view()).unwrap();
    assert_eq!(fibonacci.mapv(f64::round)[49], 12_586_269_025.0);
}

#[test]
fn a_resonator_is_a_faded_sum_and_responds_to_its_period() {
    let signal = Array1::from_shape_fn(2000, |l| (l as f64 * std::f64::consts::TAU / 12.5).cos());
    let periods = array![6.0, 12.5, 30.0];
    let states = solve(&bank(signal.view(), periods.view(), 80.0));
    for (row, &period) in periods.iter().enumerate() {
        for l in [0, 1, 500] {
            let difference = states[[row, l]] - bank_direct(signal.view(), period, 80.0, l);
            assert!(difference.norm() <= LIMIT, "{period} {l}");
        }
    }
    let size = |row: usize| states[[row, 1999]].norm();
    // A cosine is two rotating numbers; the one that rotates against the row leaves less than
    // 1/(memory sin θ).
    assert!((size(1) - 1.0).abs() < 1.0 / (80.0 * (std::f64::consts::TAU / 12.5).sin()));
    assert!(size(0) < 0.1 && size(2) < 0.2, "{} {}", size(0), size(2));
}

#[test]
fn s4d_is_a_convolution_fused_or_not() {
    let mut rng = StdRng::seed_from_u64(3);
    for len in LENGTHS {
        let signal = draw(&mut rng, (1, len), -1.0, 1.0).row(0).to_owned();
        let mut model = S4d::linear(complex(&mut rng, (1, 5)).row(0).to_owned(), 0.02);
        model.b = complex(&mut rng, (1, 5)).row(0).to_owned();
        let got = model.read(solve(&model.problem(signal.view()).unwrap()).view());
        let expected = model.convolution(signal.view()).unwrap();
        assert!(array_distance(&got, &expected) <= LIMIT, "{len}");
        assert!(array_distance(&model.fused(signal.view()).unwrap(), &expected) <= LIMIT, "{len}");
    }
    let mut model = S4d::linear(Array1::zeros(4), 0.1);
    model.b = Array1::zeros(3);
    let message = model.problem(array![1.0].view()).unwrap_err().to_string();
    assert_eq!(message, "shape mismatch in s4d: A [4], B [3]");
}

#[test]
fn a_held_input_may_be_split_into_two_steps() {
    let mut rng = StdRng::seed_from_u64(4);
    for len in LENGTHS {
        let model = S5 {
            eigenvalues: array![Complex::new(-0.3, 2.0), Complex::new(-2.0, -0.5)],
            b: complex(&mut rng, (2, 3)),
            c: complex(&mut rng, (3, 2)),
        };
        let signals = draw(&mut rng, (3, len), -1.0, 1.0);
        let steps = Array1::from_shape_simple_fn(len, || rng.random_range(0.01..0.5));
        let states = solve(&model.problem(signals.view(), steps.view()).unwrap());
        let expected = model.direct(signals.view(), steps.view()).unwrap();
        assert!(array_distance(&states, &expected) <= LIMIT, "{len}");
        // Every step in two parts, 30 % and 70 %: the same states at its end.
        let twice = Array2::from_shape_fn((3, 2 * len), |(h, l)| signals[[h, l / 2]]);
        let parts =
            Array1::from_shape_fn(2 * len, |l| steps[l / 2] * if l % 2 == 0 { 0.3 } else { 0.7 });
        let cut = solve(&model.problem(twice.view(), parts.view()).unwrap());
        let ends = Array2::from_shape_fn(states.dim(), |(p, l)| cut[[p, 2 * l + 1]]);
        assert!(array_distance(&ends, &states) <= LIMIT, "{len}");
        let too_many = Array1::zeros(len + 1);
        assert!(model.problem(signals.view(), too_many.view()).is_err());
    }
}

#[test]
fn lru_stays_inside_the_circle_and_sums_powers() {
    let mut rng = StdRng::seed_from_u64(5);
    let (nu, theta) = ring(20, (0.5, 0.999), 3.0);
    let model = Lru { nu, theta, b: complex(&mut rng, (20, 2)) };
    for (coefficient, scale) in model.coefficients().iter().zip(model.scales()) {
        assert!((0.5..0.999).contains(&coefficient.norm()));
        let square = coefficient.norm_sqr() + scale * scale;
        assert_abs_diff_eq!(square, 1.0, epsilon = 8e-15);
    }
    for len in LENGTHS {
        let signals = draw(&mut rng, (2, len), -1.0, 1.0);
        let states = solve(&model.problem(signals.view()).unwrap());
        assert!(array_distance(&states, &model.direct(signals.view()).unwrap()) <= LIMIT, "{len}");
    }
    let message = model.problem(Array2::zeros((3, 4)).view()).unwrap_err().to_string();
    assert_eq!(message, "shape mismatch in lru: nu by signals [20, 3], B [20, 2]");
}

#[test]
fn rg_lru_matches_the_papers_steps() {
    let mut rng = StdRng::seed_from_u64(6);
    for open in [0.9, 0.99, 0.999] {
        let decay = decay_from(open);
        assert_abs_diff_eq!(sigmoid(decay).powi(8), open, epsilon = 1e-13);
    }
    for len in LENGTHS {
        let model = RgLru { decay: array![decay_from(0.9), decay_from(0.999)] };
        let [signals, recurrence, input] =
            std::array::from_fn(|_| draw(&mut rng, (2, len), -4.0, 4.0));
        let got = solve(&model.problem(signals.view(), recurrence.view(), input.view()).unwrap());
        let expected = model.direct(signals.view(), recurrence.view(), input.view()).unwrap();
        assert!(array_distance(&got, &expected) <= LIMIT, "{len}");
    }
    let (two, three) = (Array2::zeros((2, 4)), Array2::zeros((3, 4)));
    let model = RgLru { decay: Array1::zeros(2) };
    assert!(model.problem(two.view(), three.view(), two.view()).is_err());
    assert!(model.problem(three.view(), three.view(), three.view()).is_err());
}

#[test]
fn exponential_gates_average() {
    let mut rng = StdRng::seed_from_u64(7);
    for len in LENGTHS {
        let values = draw(&mut rng, (2, len), -1.0, 1.0);
        let (input, forget) =
            (draw(&mut rng, (2, len), -50.0, 50.0), draw(&mut rng, (2, len), -3.0, 6.0));
        let gates = Gates { values: values.view(), input: input.view(), forget: forget.view() };
        let got = gates.read(solve(&gates.problem().unwrap()).view());
        assert!(array_distance(&got, &gates.direct()) <= LIMIT, "{len}");
        // The stabiliser cancels: without it, and without overflow, the outputs are the same.
        let plain = gates.read(gates.unstabilised().unwrap().solve().unwrap().view());
        assert!(array_distance(&plain, &got) <= LIMIT, "{len}");
        let loud = &input * 100.0;
        let gates = Gates { input: loud.view(), ..gates };
        let got = gates.read(gates.problem().unwrap().solve().unwrap().view());
        assert!(got.iter().all(|y| y.abs() <= 1.0 + 1e-12), "an average stays between its values");
    }
}

#[test]
fn golden_data_agree_with_gradients() {
    let golden = ch15_log_space::golden::min_gru().unwrap();
    assert_eq!(golden.k.dim(), (12, 40));
    let (gate, candidate, initial) = (golden.k.view(), golden.h_tilde.view(), golden.h0.view());
    let states = solve(&min_gru(gate, candidate, initial).unwrap());
    assert!(array_distance(&states, &golden.h) <= LIMIT);
    let pipe = KernelChoice::Pipe(PipeConfig::DEFAULT);
    let kernel = KernelEngine::<f64>::new(&Device::simt(), pipe).unwrap();
    for engine in [&linrec::cpu::Cpu::new() as &dyn Engine<f64>, &kernel] {
        let (d_gate, d_candidate) =
            min_gru_backward(engine, (gate, candidate), initial, golden.d_h.view()).unwrap();
        assert!(array_distance(&d_gate, &golden.d_k) <= LIMIT, "{}", engine.name());
        assert!(array_distance(&d_candidate, &golden.d_h_tilde) <= LIMIT, "{}", engine.name());
    }
}

#[test]
fn min_lstm_is_an_average_with_one_sigmoid() {
    let mut rng = StdRng::seed_from_u64(8);
    for len in LENGTHS {
        let [forget, input, candidate] =
            std::array::from_fn(|_| draw(&mut rng, (3, len), -5.0, 5.0));
        let (f, i, h) = (forget.view(), input.view(), candidate.view());
        let got = solve(&min_lstm(f, i, h).unwrap());
        assert!(array_distance(&got, &min_rnn::min_lstm_direct(f, i, h)) <= LIMIT, "{len}");
    }
    // f / (f + i) is the sigmoid of a difference of logarithms.
    let odds = log_sigmoid(2.0) - log_sigmoid(-1.0);
    let share = sigmoid(2.0) / (sigmoid(2.0) + sigmoid(-1.0));
    assert_abs_diff_eq!(sigmoid(odds), share, epsilon = 1e-15);
}

#[test]
fn a_matrix_of_states_is_attention() {
    let mut rng = StdRng::seed_from_u64(9);
    for len in [0, 1, 2, 33, 300] {
        let [queries, keys, modulus, angle] =
            std::array::from_fn(|_| draw(&mut rng, (4, len), -2.0, 2.0));
        let values = draw(&mut rng, (3, len), -1.0, 1.0);
        let head = Head {
            queries: queries.view(),
            keys: keys.view(),
            values: values.view(),
            modulus: modulus.view(),
            angle: angle.view(),
        };
        let got = head.read(solve(&head.problem().unwrap()).view());
        assert!(array_distance(&got, &head.attention()) <= LIMIT, "{len}");
        let narrow = Array2::zeros((3, len));
        assert!(Head { angle: narrow.view(), ..head }.problem().is_err());
        let long = Array2::zeros((3, len + 1));
        assert!(Head { values: long.view(), ..head }.problem().is_err());
    }
}

#[test]
fn rwkv_is_a_weighted_average() {
    let mut rng = StdRng::seed_from_u64(10);
    let model = Wkv { decay: array![0.02, 1.5], bonus: array![-0.5, 0.8] };
    for len in LENGTHS {
        let (keys, values) =
            (draw(&mut rng, (2, len), -3.0, 3.0), draw(&mut rng, (2, len), -1.0, 1.0));
        let states = solve(&model.problem(keys.view(), values.view()).unwrap());
        let got = model.read(states.view(), keys.view(), values.view());
        assert!(array_distance(&got, &model.direct(keys.view(), values.view())) <= LIMIT, "{len}");
    }
    let three = Array2::zeros((3, 4));
    let message = model.problem(three.view(), three.view()).unwrap_err().to_string();
    assert_eq!(message, "shape mismatch in wkv: keys' rows [3], decay [2]");
}
