//! Log space against the contract's table of cases, within its own bound.

use ch15_log_space::{LogSpace, Order, Real};
use linrec::Engine;
use linrec::contract::{self, Case, CoeffKind, Domain, Table};

/// For prefix sums in order the bound itself is NaN where the products of a very long sequence
/// underflow: those engines are judged up to this length, the others at every one.
const MAX_LEN_IN_ORDER: usize = 1000;

fn engines() -> [(LogSpace, usize); 5] {
    [
        (LogSpace::whole(), usize::MAX),
        (LogSpace::restarting(8.0), usize::MAX),
        (LogSpace::restarting(0.0), usize::MAX),
        (LogSpace::whole().with_order(Order::InOrder), MAX_LEN_IN_ORDER),
        (LogSpace::restarting(30.0).with_order(Order::InOrder), MAX_LEN_IN_ORDER),
    ]
}

fn passes<T: Real>(domain: Domain) {
    for (engine, max_len) in engines() {
        let domain = Domain { max_len, ..domain.clone() };
        let report = contract::run_within::<T>(&engine, &domain, &engine);
        println!("{report}");
        assert!(report.passed(), "{report}");
        assert!(report.worst > 0.0, "nothing was compared");
    }
}

#[test]
fn f32_stays_within_its_bound() {
    passes::<f32>(LogSpace::domain().as_asked());
}

#[test]
fn f64_stays_within_its_bound() {
    passes::<f64>(LogSpace::domain().as_asked());
}

#[test]
fn beyond_the_table() {
    passes::<f32>(Domain { table: Table::Drawn(200), ..LogSpace::domain() });
}

/// What the bound allows beyond that of a tree of products and additions is not given away: log
/// space needs it.
#[test]
fn the_bound_of_a_tree_is_too_narrow_for_it() {
    let tree = Domain { max_len: 100, levels: Domain::tree_levels, ..LogSpace::domain() };
    let report = contract::run::<f32>(&LogSpace::whole(), &tree);
    assert!(!report.failures.is_empty(), "{report}");
}

/// A bound that nothing exceeds is none: one lost carry must.
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
    let (domain, bound) = (LogSpace::domain(), LogSpace::whole());
    let near_one = |case: &Case| {
        case.initial && case.coeffs == CoeffKind::NearOne && case.num_seqs > 0 && case.seq_len > 0
    };
    let cases: Vec<_> = Table::asked().cases(64).into_iter().filter(near_one).collect();
    assert!(!cases.is_empty());
    for case in cases {
        let outcome = contract::check_within::<f32>(&Forgetful, &domain, &bound, &case);
        assert!(outcome.is_err(), "{case}");
    }
}
