//! Signs beside complex logarithms.

use linrec::lesson::plot::{self, Chart};
use linrec::lesson::{Kind, Lesson, Result, Table};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::number;
use crate::{
    LogSpace, Order, SignedLog, bound, complex_two_sums, linrec_to_the_last_bit, two_sums,
};

/// The largest relative errors up to every position.
struct Errors {
    signs: Vec<f64>,
    complex: Vec<f64>,
    /// What is left in the imaginary part, which should be zero.
    imaginary: Vec<f64>,
    /// The largest error with signs, in units of its bound.
    share: f64,
}

/// The errors of both in `f32`, over length.
pub fn signs(lesson: &mut Lesson) -> Result {
    lesson.step("signs", "A sign, or an angle")?;
    let longest = lesson.size(1 << 16, 1 << 20);
    let decaying = errors(longest, 0.9);
    let flipping = errors(longest, 1.0);
    lesson.say(&format!(
        "Inputs in (-1, 1) and coefficients with random signs, in f32, up to L = {longest}; all prefix sums in a \
         tree. Once the coefficients have sizes from 0.9 to 1, once they are 1 and -1. The largest error so far, \
         relative to the recurrence on absolute values:",
    ));
    let header = [
        "L",
        "0.9 to 1: signs",
        "complex",
        "imaginary part",
        "±1: signs",
        "complex",
        "imaginary part",
    ];
    let mut table = Table::new(header);
    for len in std::iter::successors(Some(16), |l| Some(l * 4)).take_while(|&l| l <= longest) {
        let columns = [&decaying, &flipping].map(|e| [&e.signs, &e.complex, &e.imaginary]);
        let cells = columns.into_iter().flatten().map(|errors| number(errors[len - 1]));
        table.row([len.to_string()].into_iter().chain(cells));
    }
    lesson.table("signs.csv", Kind::Computed, &table)?;

    let points = |errors: &[f64]| -> Vec<(f64, f64)> {
        let ends = std::iter::successors(Some(16), |l| Some(l * 2)).take_while(|&l| l <= longest);
        ends.map(|len| (len as f64, errors[len - 1])).collect()
    };
    let chart = Chart::new("Coefficients 1 and -1 at random, f32")
        .axes("length L", "largest relative error")
        .log_x(2.0)
        .log_y(10.0)
        .measured("complex: imaginary part", points(&flipping.imaginary))
        .measured("complex: real part", points(&flipping.complex))
        .measured("signs", points(&flipping.signs));
    lesson.figure("signs.svg", "signs or angles", Kind::Computed, &plot::svg(&[&chart])?)?;
    let share = decaying.share.max(flipping.share);
    lesson.check("with signs, largest error / bound", share, 1.0);

    let last = longest - 1;
    lesson.value("signs_longest", longest, Kind::Computed);
    lesson.value("flipping_signs", number(flipping.signs[last]), Kind::Computed);
    lesson.value("flipping_complex", number(flipping.complex[last]), Kind::Computed);
    lesson.value("decaying_both", number(decaying.complex[last]), Kind::Computed);
    lesson.value("left_over", number(decaying.imaginary[last]), Kind::Computed);
    lesson.say(
        "An angle adds up: after n negative coefficients it is n π, and as uncertain as a sum of that size. The \
         real part hears of it with the square of the error, which is why it is late. A sign does not add up.",
    );
    Ok(())
}

/// Coefficients of sizes from `smallest` to 1.
fn errors(len: usize, smallest: f32) -> Errors {
    let mut rng = StdRng::seed_from_u64(122);
    let x: Vec<f32> = (0..len).map(|_| rng.random_range(-1.0..1.0)).collect();
    let c: Vec<f32> = (0..len)
        .map(|_| rng.random_range(smallest..=1.0) * if rng.random() { 1.0 } else { -1.0 })
        .collect();
    let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let sizes = |values: &[f32]| values.iter().map(|&v| f64::from(v.abs())).collect::<Vec<f64>>();
    let exact = linrec_to_the_last_bit(&wide(&x), &wide(&c));
    let y_hat = ch01_sequential_loop::linrec(&sizes(&x), &sizes(&c), 0.0);

    let pack = |values: &[f32]| values.iter().map(|&v| SignedLog::of(v)).collect::<Vec<_>>();
    let (packed_x, packed_c) = (pack(&x), pack(&c));
    let signed = two_sums(Order::Tree, &packed_x, &packed_c, SignedLog::of(0.0));
    let signed: Vec<f64> = signed.iter().map(|y| y.value().into()).collect();
    let complex = complex_two_sums(Order::Tree, &x, &c, 0.0);
    let real: Vec<f64> = complex.iter().map(|y| y.re.into()).collect();
    let imaginary: Vec<f64> = complex.iter().map(|y| y.im.into()).collect();

    let upto = |y: &[f64], exact: &[f64]| -> Vec<f64> {
        let mut worst = 0.0_f64;
        let errors = y.iter().zip(exact).zip(&y_hat).map(|((y, e), size)| (y - e).abs() / size);
        let so_far = errors.map(|error| {
            worst = worst.max(error);
            worst
        });
        so_far.collect()
    };
    let bounds = bound::along(&LogSpace::whole(), &sizes(&x), (&sizes(&c), &packed_c), 0.0);
    let shares = signed.iter().zip(&exact).zip(&bounds).map(|((y, e), b)| (y - e).abs() / b);
    Errors {
        share: shares.fold(0.0, f64::max),
        signs: upto(&signed, &exact),
        complex: upto(&real, &exact),
        imaginary: upto(&imaginary, &vec![0.0; len]),
    }
}
