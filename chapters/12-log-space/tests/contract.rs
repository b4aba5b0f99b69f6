//! Log space against the table of cases: within its own bound, and within the contract's.

use ch12_log_space::{LogSpace, Order, Real, judge};
use linrec::Engine;
use linrec::contract::{self, Case, CoeffKind, Domain};
use rayon::prelude::*;

/// Up to this length every case is judged in all ways; longer ones a sequence at a time by two
/// engines.
const MAX_LEN: usize = 1000;

fn engines() -> [LogSpace; 5] {
    [
        LogSpace::whole(),
        LogSpace::restarting(8.0),
        LogSpace::restarting(0.0),
        LogSpace::whole().with_order(Order::InOrder),
        LogSpace::restarting(30.0).with_order(Order::InOrder),
    ]
}

fn stays_within_its_bound<T: Real>(engine: &LogSpace, cases: &[Case]) {
    let outcomes: Vec<_> =
        cases.par_iter().map(|case| (case, judge::check::<T>(engine, case))).collect();
    let mut worst = 0.0_f64;
    for (case, outcome) in outcomes {
        let error = outcome.unwrap_or_else(|what| panic!("{engine:?}, {case}: {what}"));
        worst = worst.max(error);
    }
    println!("{engine:?} {}: {} cases, {worst:.3} of the bound", T::NAME, cases.len());
    assert!(worst > 0.0, "nothing was compared");
}

fn all_cases_up_to(max_len: usize) -> Vec<Case> {
    contract::cases(64).into_iter().filter(|case| case.seq_len <= max_len).collect()
}

#[test]
fn f32_stays_within_its_bound() {
    let cases = all_cases_up_to(MAX_LEN);
    for engine in engines() {
        stays_within_its_bound::<f32>(&engine, &cases);
    }
}

#[test]
fn f64_stays_within_its_bound() {
    let cases = all_cases_up_to(MAX_LEN);
    for engine in engines() {
        stays_within_its_bound::<f64>(&engine, &cases);
    }
}

#[test]
fn the_longest_sequences_stay_within_it() {
    let longest = contract::cases(64).into_iter().filter(|case| case.seq_len > MAX_LEN);
    let longest: Vec<_> = longest.filter(|case| case.num_seqs == 1).collect();
    assert!(longest.len() > 50);
    stays_within_its_bound::<f32>(&LogSpace::whole(), &longest);
    stays_within_its_bound::<f64>(&LogSpace::restarting(8.0), &longest);
}

fn passes_the_contract<T: Real>(max_len: usize) {
    for engine in [LogSpace::whole(), LogSpace::restarting(8.0)] {
        let stated = engine.domain::<T>();
        let domain = Domain { max_len: stated.max_len.min(max_len), ..stated };
        let report = contract::run::<T>(&engine, &domain);
        println!("{report}");
        assert!(report.passed(), "{report}");
    }
}

#[test]
fn the_contract_passes_without_a_look_at_the_data() {
    passes_the_contract::<f32>(MAX_LEN);
    passes_the_contract::<f64>(MAX_LEN);
}

/// A judge that cannot fail is none: one lost carry must exceed both bounds.
#[test]
fn a_lost_carry_is_seen() {
    /// Forgets the initial state.
    struct Forgetful;
    impl<T: Real> Engine<T> for Forgetful {
        fn name(&self) -> &str {
            "forgetful"
        }
        fn forward(
            &self,
            inputs: ndarray::ArrayView2<T>,
            coeffs: ndarray::ArrayView2<T>,
            options: &linrec::Options<T>,
        ) -> Result<linrec::Outputs<T>, linrec::Error> {
            let from_zero = linrec::Options { initial: None, ..options.clone() };
            LogSpace::whole().forward(inputs, coeffs, &from_zero)
        }
        fn backward(
            &self,
            d_outputs: ndarray::ArrayView2<T>,
            coeffs: ndarray::ArrayView2<T>,
            outputs: ndarray::ArrayView2<T>,
            options: &linrec::Options<T>,
        ) -> Result<linrec::Gradients<T>, linrec::Error> {
            LogSpace::whole().backward(d_outputs, coeffs, outputs, options)
        }
    }
    let domain = LogSpace::whole().domain::<f32>();
    let cases = all_cases_up_to(domain.max_len);
    let near_one = |case: &&Case| {
        case.initial && case.coeffs == CoeffKind::NearOne && case.num_seqs > 0 && case.seq_len > 0
    };
    let cases: Vec<_> = cases.iter().filter(near_one).collect();
    assert!(!cases.is_empty());
    for case in cases {
        assert!(contract::check::<f32>(&Forgetful, &domain, case).is_err(), "{case}");
        let data = case.data::<f32>();
        let (x, c) = (data.inputs.view(), data.coeffs());
        let engine = LogSpace::whole();
        let exact = linrec::reference::forward(x, c, &data.options).unwrap().outputs;
        let limit = ch12_log_space::bound::forward(&engine, x, c, &data.options).unwrap().outputs;
        let got = Forgetful.forward(x, c, &data.options).unwrap().outputs;
        assert!(judge::worst("outputs", &got, &exact, &limit).is_err(), "{case}");
    }
}
