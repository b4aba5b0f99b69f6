//! What a coefficient of zero does.

use ch01_sequential_loop::linrec;
use linrec::lesson::{Kind, Lesson, Result, Table};

use super::number;
use crate::{LogSpace, Order, SignedLog, two_sums};

/// A reset: by the loop, by the plain sums, with a small number in its place, and cut.
pub fn zeros(lesson: &mut Lesson) -> Result {
    lesson.step("zeros", "A reset")?;
    let (inputs, coeffs) = ([1e6_f32, 1e6, 0.0, 1.0, 1.0, 1.0], [0.5_f32, 1.0, 0.0, 0.5, 0.5, 0.5]);
    lesson.say(
        "The state has grown to two million when a coefficient is 0, and the input as well: the state is 0, and \
         begins again. In f32:",
    );
    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let zero = SignedLog::of(0.0);
    let values = |y: Vec<SignedLog<f32>>| y.iter().map(|y| y.value()).collect::<Vec<f32>>();
    let sums = |coeffs: &[f32]| values(two_sums(Order::Tree, &pack(&inputs), &pack(coeffs), zero));
    // The common remedy: nothing is smaller than eps, neither a coefficient nor an input.
    let at_least = |eps: f32| {
        let (x, c) = (inputs.map(|x| x.max(eps)), coeffs.map(|c| c.max(eps)));
        values(two_sums(Order::Tree, &pack(&x), &pack(&c), zero))
    };
    let exact = linrec(&inputs, &coeffs, 0.0);
    let cut = values(LogSpace::whole().sequence(&pack(&inputs), &pack(&coeffs), zero));
    let columns = [exact.clone(), sums(&coeffs), at_least(1e-6), at_least(1e-12), cut.clone()];

    let header = ["l", "x", "c", "loop", "plain sums", "eps 1e-6", "eps 1e-12", "cut at zero"];
    let mut table = Table::new(header);
    for l in 0..inputs.len() {
        let given = [inputs[l], coeffs[l]].map(|v| number(v.into()));
        let outputs = columns.iter().map(|y| number(y[l].into()));
        table.row([l.to_string()].into_iter().chain(given).chain(outputs));
    }
    lesson.table("zeros.csv", Kind::Computed, &table)?;
    let leaked = f64::from(columns[2][2]);
    lesson.value("leaked", number(leaked), Kind::Computed);
    let wrong = cut.iter().zip(&exact).filter(|(cut, exact)| {
        let error = (**cut - **exact).abs();
        // No logarithm here exceeds 16, and no number meets more than 30 roundings of them.
        error > 500.0 * f32::EPSILON * exact.abs()
    });
    lesson.check("outputs that the cut gets wrong", wrong.count() as f64, 0.0);
    let missing = columns[1].iter().filter(|y| !y.is_nan()).count();
    lesson.check(
        "outputs of the plain sums from the zero on that are numbers",
        missing as f64 - 2.0,
        0.0,
    );
    Ok(())
}
