//! How far single precision is from double precision, and how far it may be.

use linrec::contract::{self, Case, CoeffKind, Data, Domain, InputKind, Layout};
use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use linrec::reference::{self, Rounding};
use linrec::{Direction, Engine};

use crate::Loop;

const LOOP: Rounding = Rounding { levels: 0, exp_ulps: 0.0 };

fn case(coeffs: CoeffKind, seq_len: usize) -> Case {
    Case {
        num_seqs: 17,
        seq_len,
        direction: Direction::Forward,
        initial: true,
        coeffs,
        log_coeffs: false,
        inputs: InputKind::Dense,
        layout: Layout::Standard,
    }
}

/// The errors of the loop in `f32` against the loop in `f64`, beside their bounds.
pub fn against_double_precision(lesson: &mut Lesson) -> Result {
    lesson.step("bound", "How exact is it?")?;
    lesson.say(
        "The loop in f32 beside the loop in f64: 17 sequences of 4093 elements for every kind of \
         coefficients. The bound is computed along with each output.",
    );
    let kinds = [
        ("in [0, 1)", CoeffKind::Gate),
        ("in [0.98, 1)", CoeffKind::NearOne),
        ("1", CoeffKind::One),
        ("-1", CoeffKind::MinusOne),
        ("in (-1.2, 1.2)", CoeffKind::Signed),
        ("in [1, 1 + 16/L]", CoeffKind::Growing),
    ];
    let mut table =
        Table::new(["coefficients", "largest |y|", "largest error", "largest error / bound"]);
    let mut worst: f64 = 0.0;
    for (name, kind) in kinds {
        let data: Data<f32> = case(kind, 4093).data();
        let (x, c) = (data.inputs.view(), data.coeffs());
        let exact = reference::forward(x, c, &data.options)?.outputs;
        let bound = reference::forward_bound(x, c, &data.options, LOOP)?.outputs;
        let ours = Loop.forward(x, c, &data.options)?.outputs;
        let errors = (ours.mapv(f64::from) - &exact).mapv(f64::abs);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let ratio = largest(&mut errors.iter().zip(&bound).map(|(error, bound)| error / bound));
        let size = largest(&mut exact.iter().map(|y| y.abs()));
        let error = largest(&mut errors.iter().copied());
        table.row([
            name.into(),
            format!("{size:.1}"),
            format!("{error:.1e}"),
            format!("{ratio:.3}"),
        ]);
        worst = worst.max(ratio);
        if kind == CoeffKind::NearOne {
            draw(lesson, &errors.row(0).to_vec(), &bound.row(0).to_vec())?;
        }
    }
    lesson.table("bound.csv", Kind::Computed, &table)?;
    lesson.check("largest error / bound", worst, 1.0);
    lesson.value("worst_ratio", format!("{worst:.2}"), Kind::Computed);
    Ok(())
}

fn draw(lesson: &mut Lesson, errors: &[f64], bound: &[f64]) -> Result {
    let points = |values: &[f64]| {
        let every_fourth = values.iter().enumerate().step_by(4);
        every_fourth.map(|(l, &value)| (l as f64, value)).collect::<Vec<_>>()
    };
    let chart = Chart::new("Error of the f32 loop, coefficients in [0.98, 1)")
        .axes("position l", "error of y")
        .log_y(10.0)
        .dashed("", [])
        .dots("error", points(errors))
        .line("bound", points(bound));
    lesson.figure("bound.svg", "the error and its bound", Kind::Computed, &plot::svg(&[&chart])?)
}

/// The table of cases that every engine of the project must pass, at lengths that take no time.
pub fn contract(lesson: &mut Lesson) -> Result {
    lesson.step("contract", "One test for all that follow")?;
    let domain = Domain { max_len: 1000, ..Domain::default() };
    let report = contract::run::<f32>(&Loop, &domain);
    lesson.say(&format!(
        "Every way to compute the recurrence in this book faces one table of cases, and the bound \
         above. The loop took {} of them here (those up to 1000 elements, in f32, forward and \
         backward), and came no closer to the bound than {:.2} of it.",
        report.cases, report.worst
    ));
    lesson.check("cases that failed", report.failures.len() as f64, 0.0);
    lesson.value("contract_cases", report.cases, Kind::Computed);
    Ok(())
}
