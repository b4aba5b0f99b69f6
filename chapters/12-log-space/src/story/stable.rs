//! Products that leave the range of numbers on the way.

use ch01_sequential_loop::linrec;
use linrec::lesson::{Kind, Lesson, Result, Table};
use num_traits::Float;

use crate::{Order, Real, heinsen};

/// By division, by plain exponentials, and by log-sum-exp: where each of them breaks.
pub fn stable(lesson: &mut Lesson) -> Result {
    lesson.step("stable", "Three ways to the same sum")?;
    // So far, and not much farther, the bound of log space promises less than a hundredth in f32.
    let seq_len = 4000;
    lesson.say(&format!(
        "{seq_len} steps with c = 1/2 and x = 1: the outputs approach 2 and stay there. The first position at \
         which a way is off by more than a hundredth:",
    ));
    let mut table = Table::new(["way", "f32", "f64"]);
    let mut last = 0.0;
    for way in WAYS {
        let firsts = [first_wrong::<f32>(way, seq_len), first_wrong::<f64>(way, seq_len)];
        last = if firsts == [None, None] { 0.0 } else { 1.0 };
        let cells = firsts.map(|first| first.map_or("none".to_owned(), |l: usize| l.to_string()));
        let [single, double] = cells;
        table.row([way, &single, &double]);
        let key = way.split_whitespace().next().unwrap_or_default();
        lesson.value(&format!("first_wrong_{key}"), single, Kind::Computed);
    }
    lesson.table("stable.csv", Kind::Computed, &table)?;
    lesson.check("log-sum-exp is wrong anywhere", last, 0.0);
    Ok(())
}

const WAYS: [&str; 3] = ["division by products", "exponentials of x - a", "log-sum-exp"];

fn first_wrong<T: Real>(way: &str, seq_len: usize) -> Option<usize> {
    let (inputs, coeffs) = (vec![T::one(); seq_len], vec![T::from_real(0.5); seq_len]);
    let exact = linrec(&inputs, &coeffs, T::zero());
    let logs = |values: &[T]| values.iter().map(|&v| Float::ln(v)).collect::<Vec<T>>();
    let (log_x, log_c) = (logs(&inputs), logs(&coeffs));
    let outputs: Vec<T> = match way {
        "log-sum-exp" => {
            let log_y = heinsen(Order::Tree, &log_x, &log_c, T::neg_infinity());
            log_y.into_iter().map(Float::exp).collect()
        }
        "division by products" => {
            let (mut product, mut sum) = (T::one(), T::zero());
            let step = |(&x, &c): (&T, &T)| {
                product = product * c;
                sum = sum + x / product;
                product * sum
            };
            inputs.iter().zip(&coeffs).map(step).collect()
        }
        _ => {
            let (mut a, mut sum) = (T::zero(), T::zero());
            let step = |(&log_x, &log_c): (&T, &T)| {
                a = a + log_c;
                sum = sum + Float::exp(log_x - a);
                Float::exp(a) * sum
            };
            log_x.iter().zip(&log_c).map(step).collect()
        }
    };
    let wrong = |(&y, &exact): (&T, &T)| {
        // Written so that NaN is wrong.
        let right = (y - exact).modulus() <= 0.01 * exact.modulus();
        !right
    };
    outputs.iter().zip(&exact).position(wrong)
}
