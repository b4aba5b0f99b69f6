//! Tests of the three cups: what counts of swaps reveal, and which recurrences follow the ball.

use std::collections::BTreeMap;

use ch16_gallery::Problem;
use ch16_gallery::cups::counted::{best, formula};
use ch16_gallery::cups::exact::{by_matrices, by_one_row, by_two_layers, matrix};
use ch16_gallery::cups::layer::Kind;
use ch16_gallery::cups::network::{Batch, Network};
use ch16_gallery::cups::training::{CONTESTANTS, Plan, right_after};
use ch16_gallery::cups::{START, Swap, ball, follow};
use linrec::Options;
use linrec::cpu::Cpu;
use ndarray::{Array1, Array2};
use num_complex::Complex;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Returns all sequences of `len` swaps.
fn all(len: usize) -> impl Iterator<Item = Vec<Swap>> {
    let bit = |word: u32, l| if word >> l & 1 == 1 { Swap::Right } else { Swap::Left };
    (0..1 << len).map(move |word| (0..len).map(|l| bit(word, l)).collect())
}

fn random(len: usize, seed: u64) -> Vec<Swap> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..len).map(|_| if rng.random_bool(0.5) { Swap::Right } else { Swap::Left }).collect()
}

#[test]
fn counts_agree_with_a_list_of_all_sequences() {
    for len in 0..=12 {
        let (mut cups, mut orders) = (BTreeMap::new(), BTreeMap::new());
        for swaps in all(len) {
            let rights = swaps.iter().filter(|&&swap| swap == Swap::Right).count();
            let order = swaps.iter().fold(START, |order, swap| swap.apply(order));
            *cups.entry(rights).or_insert([0; 3]).get_mut(ball(order)).unwrap() += 1;
            *orders.entry(rights).or_insert_with(BTreeMap::new).entry(order).or_insert(0) += 1;
        }
        let share = |most: i32| f64::from(most) / f64::from(1 << len);
        let cup = share(cups.values().map(|cups| cups.iter().max().unwrap()).sum());
        let order = share(orders.values().map(|orders| orders.values().max().unwrap()).sum());
        assert_eq!((best(len).cup, best(len).order), (cup, order), "{len} swaps");
    }
}

#[test]
fn the_formula_counts_sequences_of_even_length() {
    for half in 0..=50 {
        let (best, formula) = (best(2 * half), formula(half as i32));
        assert!((best.cup - formula).abs() < 1e-14, "{half}: {} {formula}", best.cup);
        // The number of swaps decides the parity of the order, and then the ball's cup the order.
        assert!((best.cup - best.order).abs() < 1e-14);
    }
    assert_eq!(best(2).cup, 0.75);
    assert_eq!(best(8).cup, 0.4921875);
}

#[test]
fn a_product_of_numbers_forgets_the_order() {
    // Three rows of complex coefficients and no inputs: the states are the same after any
    // arrangement of the same swaps.
    let (left, right) = ([0.9, -1.0, 0.5], [0.7, 1.1, -0.3]);
    let states = |swaps: &[Swap]| {
        let coeffs = Array2::from_shape_fn((3, swaps.len()), |(row, l)| match swaps[l] {
            Swap::Left => Complex::cis(left[row]) * 0.9,
            Swap::Right => Complex::cis(right[row]),
        });
        let options = Options {
            initial: Some(Array1::from_elem(3, Complex::ONE).into()),
            ..Options::default()
        };
        let problem = Problem { inputs: Array2::zeros(coeffs.dim()), coeffs, options };
        problem.solve().unwrap().column(swaps.len() - 1).to_owned()
    };
    let [one, other] = [
        [Swap::Left, Swap::Right, Swap::Right, Swap::Left],
        [Swap::Right, Swap::Left, Swap::Right, Swap::Left],
    ];
    assert!((states(&one) - states(&other)).iter().all(|z| z.norm() < 1e-15));
    assert_ne!(follow(&one)[3], follow(&other)[3]);
}

#[test]
fn all_three_exact_recurrences_follow_the_ball() {
    for swaps in (0..=10).flat_map(all).chain([random(10_000, 1)]) {
        let cups = follow(&swaps);
        assert_eq!(by_matrices(&swaps), cups, "{swaps:?}");
        assert_eq!(by_one_row(&swaps).unwrap(), cups, "{swaps:?}");
        assert_eq!(by_two_layers(&swaps).unwrap(), cups, "{swaps:?}");
    }
}

#[test]
fn matrices_of_swaps_do_not_commute() {
    let (left, right) = (matrix(Swap::Left), matrix(Swap::Right));
    assert_ne!(left.dot(&right), right.dot(&left));
    assert_eq!(left.dot(&left), Array2::<f64>::eye(3));
}

#[test]
fn the_gradient_of_each_network_is_the_slope_of_its_loss() {
    let cpu = Cpu::new().single_threaded();
    let batch = Batch::draw(&mut StdRng::seed_from_u64(2), 3, 5);
    for contestant in CONTESTANTS {
        let mut network = Network::draw(contestant.layers, 3);
        let weights = network.flat();
        let (_, gradient) = network.loss_and_gradient(&cpu, &batch).unwrap();
        let mut loss = |weights: &Array1<f64>| {
            network.set(weights);
            network.loss_and_gradient(&cpu, &batch).unwrap().0
        };
        for i in (0..weights.len()).step_by(7) {
            let step = 1e-5;
            let mut there = weights.clone();
            there[i] += step;
            let up = loss(&there);
            there[i] -= 2.0 * step;
            let slope = (up - loss(&there)) / (2.0 * step);
            let error = (slope - gradient[i]).abs();
            assert!(error < 1e-8, "{} weight {i}: {slope} {}", contestant.name, gradient[i]);
        }
    }
}

#[test]
fn training_lowers_the_loss_and_repeats_itself() {
    let plan = Plan { len: 4, batch: 16, steps: 300, rate: 0.01 };
    let train = || {
        let (mut first, mut last) = (0.0, 0.0);
        let mut watch =
            |step: usize, loss: f64| *(if step == 0 { &mut first } else { &mut last }) = loss;
        let network = plan.train(&[Kind::Delta(2)], 1, &mut watch).unwrap();
        assert!(last < 0.2 && 1.0 < first, "{first} {last}");
        network
    };
    let network = train();
    assert_eq!(network.flat(), train().flat());
    assert!(right_after(&network, 200, 4).unwrap().iter().all(|&right| right > 0.95));
}
