//! Properties that hold for any problem, drawn by proptest beyond the contract's table.

use crate::engines::{self, Entry};
use linrec::contract::{self, Case, CoeffKind, InputKind, Layout};
use linrec::{Direction, Options};
use ndarray::{Array2, s};
use num_complex::Complex;
use proptest::prelude::*;

fn cases() -> impl Strategy<Value = Case> {
    let layouts = [
        Layout::Standard,
        Layout::Columns,
        Layout::Backwards,
        Layout::EverySecond,
        Layout::SharedCoeffs,
    ];
    (
        (0_usize..12, 0_usize..700),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(CoeffKind::ALL.to_vec()),
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(layouts.to_vec()),
    )
        .prop_map(|((num_seqs, seq_len), reverse, initial, coeffs, log, sparse, layout)| {
            Case {
                num_seqs,
                seq_len,
                direction: if reverse { Direction::Reverse } else { Direction::Forward },
                initial,
                coeffs,
                log_coeffs: log && coeffs.has_log(),
                inputs: if sparse { InputKind::Sparse } else { InputKind::Dense },
                layout,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_engine_stays_within_the_bound(case in cases()) {
        for Entry { engine, domain } in engines::all::<f32>() {
            if let Some(case) = domain.fitted(&case) {
                let outcome = contract::check(&*engine, &domain, &case);
                prop_assert!(outcome.is_ok(), "{}: {case}: {outcome:?}", engine.name());
            }
        }
        for Entry { engine, domain } in engines::all::<Complex<f64>>() {
            if let Some(case) = domain.fitted(&case) {
                let outcome = contract::check(&*engine, &domain, &case);
                prop_assert!(outcome.is_ok(), "{}: {case}: {outcome:?}", engine.name());
            }
        }
    }

    /// Reverse is forward on flipped arrays, up to rounding, as engines may sum in another order.
    #[test]
    fn reverse_is_forward_on_flipped_arrays(case in cases()) {
        let case = Case { direction: Direction::Forward, ..case };
        let flipped = |array: ndarray::ArrayView2<f64>| array.slice(s![.., ..;-1]).to_owned();
        for Entry { engine, domain } in engines::all::<f64>() {
            let Some(case) = domain.fitted(&case) else { continue };
            let data = case.data::<f64>();
            let reverse = Options { direction: Direction::Reverse, ..data.options.clone() };
            let straight = engine.forward(data.inputs.view(), data.coeffs(), &data.options)?;
            let (inputs, coeffs) = (flipped(data.inputs.view()), flipped(data.coeffs()));
            let back = engine.forward(inputs.view(), coeffs.view(), &reverse)?;
            let difference = (flipped(back.outputs.view()) - &straight.outputs).mapv(f64::abs);
            let scale = straight.outputs.iter().fold(1.0, |m: f64, y| m.max(y.abs()));
            prop_assert!(difference.iter().all(|&d| d <= 1e-12 * scale), "{}", engine.name());
        }
    }

    /// Cutting a sequence and passing the state on gives the same outputs.
    #[test]
    fn the_state_can_be_passed_on(case in cases(), share in 0.0..1.0) {
        let case = Case { direction: Direction::Forward, log_coeffs: false, ..case };
        for Entry { engine, domain } in engines::all::<f64>() {
            let Some(case) = domain.fitted(&case) else { continue };
            let data = case.data::<f64>();
            let split = (share * case.seq_len as f64) as usize;
            let split = split - split % domain.multiple_of;
            let (inputs, coeffs) = (data.inputs.view(), data.coeffs());
            let whole = engine.forward(inputs, coeffs, &data.options)?;
            let head = engine.forward(
                inputs.slice(s![.., ..split]), coeffs.slice(s![.., ..split]), &data.options)?;
            let go_on = Options { initial: Some(head.final_state.into()), ..Options::default() };
            let tail = engine.forward(
                inputs.slice(s![.., split..]), coeffs.slice(s![.., split..]), &go_on)?;
            let joined: Array2<f64> =
                ndarray::concatenate![ndarray::Axis(1), head.outputs, tail.outputs];
            let scale = whole.outputs.iter().fold(1.0, |m: f64, y| m.max(y.abs()));
            let difference = (joined - &whole.outputs).mapv(f64::abs);
            prop_assert!(difference.iter().all(|&d| d <= 1e-12 * scale), "{}", engine.name());
            let states = (tail.final_state - &whole.final_state).mapv(f64::abs);
            prop_assert!(states.iter().all(|&d| d <= 1e-12 * scale), "{}", engine.name());
        }
    }
}
