//! Four steps, sum by sum.

use linrec::lesson::{Kind, Lesson, Result, Table};

use super::number;
use crate::{Order, heinsen, log_add_exp};

/// The columns of Heinsen's formula for a small example.
pub fn by_hand(lesson: &mut Lesson) -> Result {
    lesson.step("by-hand", "Four steps, two sums")?;
    let (inputs, coeffs, initial) = ([1.0_f64, 3.0, 2.0, 8.0], [0.5_f64; 4], 2.0_f64);
    let logs = |values: [f64; 4]| values.map(f64::ln);
    let (log_x, log_c) = (logs(inputs), logs(coeffs));
    let log_y = heinsen(Order::InOrder, &log_x, &log_c, initial.ln());

    lesson.say(
        "The initial state is 2, its logarithm the first entry of the second sum. a adds up ln c; b adds up \
         e^(ln x - a), and is kept as a logarithm.",
    );
    let mut table = Table::new(["l", "x", "c", "a", "ln x - a", "b", "a + b", "y"]);
    let (mut a, mut b) = (0.0, initial.ln());
    for l in 0..4 {
        a += log_c[l];
        b = log_add_exp(b, log_x[l] - a);
        let y = number(log_y[l].exp());
        let numbers = [a, log_x[l] - a, b, log_y[l]].map(|v| format!("{v:.4}"));
        let [a, term, b, log_y] = numbers;
        let (x, c) = (inputs[l].to_string(), coeffs[l].to_string());
        table.row([l.to_string(), x, c, a, term, b, log_y, y]);
    }
    lesson.table("by-hand.csv", Kind::Computed, &table)?;
    let exact = [2.0, 4.0, 4.0, 10.0];
    let errors = log_y.iter().zip(exact).map(|(log, y)| (log.exp() - y).abs() / y);
    // Every logarithm here is below 3, and no number meets more than 20 roundings of them.
    lesson.check("y minus 2, 4, 4, 10, relative", errors.fold(0.0, f64::max), 60.0 * f64::EPSILON);
    Ok(())
}
