//! Signs beside complex logarithms.

use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::number;
use crate::{Order, SignedLog, bound, complex_two_sums, linrec_to_the_last_bit, two_sums};

/// The errors of both in `f32`, over length.
pub fn signs(lesson: &mut Lesson) -> Result {
    lesson.step("signs", "A sign, or an angle")?;
    let longest = lesson.size(1 << 16, 1 << 20);
    lesson.say(&format!(
        "Inputs in (-1, 1), coefficients of size 0.9 to 1 with random signs, in f32, up to L = {longest}; both \
         prefix sums in a tree. The largest error so far, relative to the recurrence on absolute values:",
    ));
    let mut rng = StdRng::seed_from_u64(122);
    let x: Vec<f32> = (0..longest).map(|_| rng.random_range(-1.0..1.0)).collect();
    let c: Vec<f32> = (0..longest)
        .map(|_| rng.random_range(0.9..1.0) * if rng.random() { 1.0 } else { -1.0 })
        .collect();
    let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let exact = linrec_to_the_last_bit(&wide(&x), &wide(&c));
    let sizes = |values: &[f32]| values.iter().map(|&v| f64::from(v.abs())).collect::<Vec<f64>>();
    let y_hat = ch01_sequential_loop::linrec(&sizes(&x), &sizes(&c), 0.0);

    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let (px, pc) = (pack(&x), pack(&c));
    let signed = two_sums(Order::Tree, &px, &pc, SignedLog::of(0.0));
    let signed: Vec<f64> = signed.iter().map(|y| y.value().into()).collect();
    let complex = complex_two_sums(Order::Tree, &x, &c, 0.0);
    let real: Vec<f64> = complex.iter().map(|y| y.re.into()).collect();
    let imaginary: Vec<f64> = complex.iter().map(|y| y.im.into()).collect();

    let relative = |y: &[f64], exact: &[f64]| -> Vec<f64> {
        let mut worst = 0.0_f64;
        let errors = y.iter().zip(exact).zip(&y_hat).map(|((y, e), size)| (y - e).abs() / size);
        errors.map(|error| std::mem::replace(&mut worst, worst.max(error)).max(error)).collect()
    };
    let zeros = vec![0.0; longest];
    let [by_sign, by_angle, left_over] =
        [relative(&signed, &exact), relative(&real, &exact), relative(&imaginary, &zeros)];

    let mut table = Table::new(["L", "signs", "complex", "imaginary part"]);
    let lengths: Vec<usize> =
        std::iter::successors(Some(16), |l| Some(l * 4)).take_while(|&l| l <= longest).collect();
    for &len in &lengths {
        let cells = [&by_sign, &by_angle, &left_over].map(|errors| number(errors[len - 1]));
        table.row([len.to_string()].into_iter().chain(cells));
    }
    lesson.table("signs.csv", Kind::Computed, &table)?;
    let points = |errors: &[f64]| -> Vec<(f64, f64)> {
        let ends = std::iter::successors(Some(16), |l| Some(l * 2)).take_while(|&l| l <= longest);
        ends.map(|len| (len as f64, errors[len - 1])).collect()
    };
    let chart = Chart::new("Random signs, |c| from 0.9 to 1, f32")
        .axes("length L", "largest relative error")
        .log_x(2.0)
        .log_y(10.0)
        .measured("complex logarithms", points(&by_angle))
        .measured("signs and logarithms", points(&by_sign));
    lesson.figure("signs.svg", "signs or angles", Kind::Computed, &plot::svg(&[&chart])?)?;

    let engine = crate::LogSpace::whole();
    let bounds = bound::along(&engine, &sizes(&x), (&sizes(&c), &pc), 0.0);
    let errors = signed.iter().zip(&exact).zip(&bounds).map(|((y, e), b)| (y - e).abs() / b);
    lesson.check("signs and logarithms, error / bound", errors.fold(0.0, f64::max), 1.0);
    let ratio = by_angle[longest - 1] / by_sign[longest - 1];
    lesson.value("angle_over_sign", format!("{ratio:.0}"), Kind::Computed);
    lesson.value("signs_longest", longest, Kind::Computed);
    lesson.say(
        "An angle adds up, too: after n negative coefficients it is n π, known to u n π. A sign does not add up. \
         And it is one bit, where an angle is a second number, a sine, a cosine and an arctangent.",
    );
    Ok(())
}
