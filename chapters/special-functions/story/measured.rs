//! The results of an H200, the promises of PTX, and the precision of the functions.
//!
//! The H200 was measured once: a sum over its results for each function and each value of an
//! argument's upper 9 bits is checked in with the emulator's tests. This module computes the same
//! sums from [`simt::special`], so equal sums mean equal bits for every argument. Then it measures
//! the largest errors over all arguments and compares them with what the PTX ISA allows.

use lesson::{Kind, Lesson, Result, Table};
use rayon::prelude::*;
use simt::special;

use crate::errors::{Errors, Over};

/// A sum of an H200's results, for each function and each value of an argument's upper 9 bits.
const MEASURED: &[u8] =
    include_bytes!("../../../emulator/simt/tests/data/special_functions-9.0.csv.gz");
/// The numbers of arguments over which the functions' sums were compared.
const COUNTS: &str =
    include_str!("../../../emulator/simt/tests/data/special_functions-9.0-counts.csv");

/// A function and its intervals in the appendix.
struct Row {
    name: &'static str,
    function: fn(u32) -> u32,
    exact: fn(f64) -> f64,
    /// The arguments, in words.
    arguments: &'static str,
    /// The first argument and the one after the last, in the order of their bits.
    intervals: &'static [(f32, f32)],
    promise: Promise,
}

/// The largest error that the PTX ISA allows.
enum Promise {
    /// The distance from the correctly rounded result, counted in numbers of f32.
    Off(u32),
    /// A relative error, as the exponent of two.
    Relative(f64),
    /// An absolute error, as the exponent of two.
    Absolute(f64),
}

const TAU: f32 = std::f32::consts::TAU;
/// The number after 1.
const AFTER_ONE: f32 = 1.0 + f32::EPSILON;

const ROWS: [Row; 11] = [
    Row {
        name: "ex2",
        function: |x| special::ex2(x, true),
        exact: f64::exp2,
        arguments: "1/16 to 2",
        intervals: &[(0.0625, 2.0)],
        promise: Promise::Off(2),
    },
    Row {
        name: "ex2",
        function: |x| special::ex2(x, true),
        exact: f64::exp2,
        arguments: "-2 to -1/16",
        intervals: &[(-0.0625, -2.0)],
        promise: Promise::Off(2),
    },
    Row {
        name: "lg2",
        function: |x| special::lg2(x, true),
        exact: f64::log2,
        arguments: "1/2 to 2",
        intervals: &[(0.5, 1.0), (AFTER_ONE, 2.0)],
        promise: Promise::Absolute(-22.0),
    },
    Row {
        name: "lg2",
        function: |x| special::lg2(x, true),
        exact: f64::log2,
        arguments: "2 to 16",
        intervals: &[(2.0, 16.0)],
        promise: Promise::Relative(-22.0),
    },
    Row {
        name: "lg2",
        function: |x| special::lg2(x, true),
        exact: f64::log2,
        arguments: "1/16 to 1/2",
        intervals: &[(0.0625, 0.5)],
        promise: Promise::Relative(-22.0),
    },
    Row {
        name: "rcp",
        function: |x| special::rcp(x, true),
        exact: |x| 1.0 / x,
        arguments: "1 to 2",
        intervals: &[(1.0, 2.0)],
        promise: Promise::Off(1),
    },
    Row {
        name: "rsqrt",
        function: |x| special::rsqrt(x, true),
        exact: |x| 1.0 / x.sqrt(),
        arguments: "1 to 4",
        intervals: &[(1.0, 4.0)],
        promise: Promise::Relative(-22.9),
    },
    Row {
        name: "sqrt",
        function: |x| special::sqrt(x, true),
        exact: f64::sqrt,
        arguments: "1 to 4",
        intervals: &[(1.0, 4.0)],
        promise: Promise::Relative(-23.0),
    },
    Row {
        name: "sin",
        function: special::sin,
        exact: f64::sin,
        arguments: "1/2 to 2π",
        intervals: &[(0.5, TAU)],
        promise: Promise::Absolute(-20.5),
    },
    Row {
        name: "cos",
        function: special::cos,
        exact: f64::cos,
        arguments: "1/2 to 2π",
        intervals: &[(0.5, TAU)],
        promise: Promise::Absolute(-20.5),
    },
    Row {
        name: "tanh",
        function: special::tanh,
        exact: f64::tanh,
        arguments: "1/256 to 8",
        intervals: &[(0.003_906_25, 8.0)],
        promise: Promise::Relative(-11.0),
    },
];

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

// ANCHOR: sum
/// The sum over the 2^23 arguments with these upper 9 bits. It changes if a result differs in any
/// bit, or if two results change places.
fn sum(function: fn(u32) -> u32, top: u32) -> u64 {
    (0..1_u32 << 23).fold(0, |sum: u64, m| {
        let result = function(top << 23 | m);
        sum.wrapping_add(mix(u64::from(m) << 32 | u64::from(result)))
    })
}
// ANCHOR_END: sum

pub(super) fn sums(lesson: &mut Lesson) -> Result {
    lesson.step("sums", "The results of an H200")?;
    let mut tops: Vec<(&Row, u32)> = Vec::new();
    for row in &ROWS {
        for (first, end) in row.intervals {
            let (first, last) = (first.to_bits() >> 23, (end.to_bits() - 1) >> 23);
            let new: Vec<u32> = (first..=last)
                .filter(|&top| !tops.iter().any(|(r, t)| r.name == row.name && *t == top))
                .collect();
            tops.extend(new.into_iter().map(|top| (row, top)));
        }
    }
    let sums = lesson::recorded::text(MEASURED)?;
    let measured = |name: &str, top: u32| {
        let name = if name == "tanh" { String::from(name) } else { format!("{name}.ftz") };
        let start = format!("{name},{top},");
        let line = sums.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|hexadecimal| u64::from_str_radix(hexadecimal, 16).ok())
    };
    let differ = tops
        .par_iter()
        .filter(|(row, top)| measured(row.name, *top) != Some(sum(row.function, *top)))
        .count();
    lesson.say(&format!(
        "Of an H200's results there is a sum for every function and every value of an argument's upper 9 bits, sign and \
         exponent. Here are all arguments with {} of these values. What follows looks at no others.",
        tops.len()
    ));
    lesson.check("sums that differ from an H200's", differ as f64, 0.0);
    lesson.value("sums", tops.len(), Kind::Computed);
    let rows = sums.lines().count() - 1;
    lesson.value("rows", thousands(rows as u64), Kind::Computed);

    let mut table = Table::new(["function", "arguments compared", "in sums that differ"]);
    let mut differing = 0.0;
    for line in COUNTS.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [name, compared, wrong] = cells[..] else {
            return Err(format!("no three cells: {line}").into());
        };
        table.row([name.to_owned(), thousands(compared.parse()?), wrong.to_owned()]);
        differing += wrong.parse::<f64>()?;
    }
    lesson.say(
        "What has been compared over the whole range of arguments, which takes an hour of a core:",
    );
    lesson.table("compared.csv", Kind::Computed, &table)?;
    lesson.check("arguments in sums that differ", differing, 0.0);
    Ok(())
}

/// Formats digits in groups of three.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn promises(lesson: &mut Lesson) -> Result {
    lesson.step("promises", "What is promised, and what is measured")?;
    lesson.say(
        "Every argument of the intervals, against f64. Off is the distance to the correctly rounded result, in \
         numbers of f32; backward are the results that lie on the wrong side of the one before.",
    );
    let mut errors_table = Table::new([
        "function",
        "arguments",
        "promised",
        "largest",
        "correctly rounded",
        "backward",
    ]);
    let mut beyond = Vec::new();
    for (number, row) in ROWS.iter().enumerate() {
        let measure = |&(first, end): &(f32, f32)| {
            let bits = (first.to_bits(), end.to_bits());
            Over { function: row.function, exact: row.exact, bits }.errors()
        };
        let Some(errors) = row.intervals.iter().map(measure).reduce(Errors::with) else { continue };
        let power = |error: f64| format!("2^{:.2}", error.log2());
        let (promised, largest, kept) = match row.promise {
            Promise::Off(off) => {
                (format!("off by {off}"), format!("off by {}", errors.off), errors.off <= off)
            }
            Promise::Relative(exponent) => (
                format!("2^{exponent} relative"),
                power(errors.relative),
                errors.relative <= exponent.exp2(),
            ),
            Promise::Absolute(exponent) => (
                format!("2^{exponent} absolute"),
                power(errors.absolute.0),
                errors.absolute.0 <= exponent.exp2(),
            ),
        };
        if !kept {
            beyond.push((row.name, largest.clone()));
        }
        let share = f64::from(errors.rounded) / f64::from(errors.arguments);
        errors_table.row([
            row.name.to_owned(),
            row.arguments.to_owned(),
            promised,
            largest,
            format!("{:.0} %", 100.0 * share),
            thousands(errors.backward.0.into()),
        ]);
        quote(lesson, row.name, number, &errors);
    }
    lesson.table("errors.csv", Kind::Computed, &errors_table)?;
    for (name, largest) in &beyond {
        lesson.say(&format!(
            "The largest error of {name} is {largest}, a little more than promised."
        ));
    }
    let names: Vec<&str> = beyond.iter().map(|(name, _)| *name).collect();
    lesson.value("beyond", names.join(", "), Kind::Computed);
    Ok(())
}

/// Publishes what the page quotes of one row.
fn quote(lesson: &mut Lesson, name: &str, number: usize, errors: &Errors) {
    let at = |bits: u32| f32::from_bits(bits).to_string();
    let mut value = |key: &str, text: String| {
        lesson.value(&format!("{name}_{number}_{key}"), text, Kind::Computed);
    };
    value("low", format!("{:.2}", errors.low.0));
    value("low_at", at(errors.low.1));
    value("high", format!("{:.2}", errors.high.0));
    value("high_at", at(errors.high.1));
    value("backward_by", errors.backward.1.to_string());
    value("absolute", format!("{:.2e}", errors.absolute.0));
    value("absolute_at", at(errors.absolute.1));
}

pub(super) fn reduction(lesson: &mut Lesson) -> Result {
    lesson.step("reduction", "Before the table")?;
    let ex2 = |x: f32| f32::from_bits(special::ex2(x.to_bits(), true));
    lesson.say(
        "To negate a fraction of 23 bits exactly, one turns all bits round and adds 1 in the last place. The unit \
         leaves the 1 out: for every x between 1 and 2, its result for -x is an eighth of that for 3 - x - 2^-23.",
    );
    let differ = (1..1_u32 << 23).filter(|m| {
        let [negative, turned] =
            [0xbf80_0000 | m, 0x3f80_0000 | !m & 0x7f_ffff].map(f32::from_bits);
        8.0 * ex2(negative) != ex2(turned)
    });
    lesson.check("negative arguments without this property", differ.count() as f64, 0.0);

    let beside = |x: f32| {
        let (result, exact) = (ex2(x), f64::from(x).exp2());
        format!("ex2({x}) = {result}, {:+.2} ulp", crate::errors::in_ulps(result, exact))
    };
    lesson.show([0.25_f32, -0.25, -0.75].map(beside).join("\n"));

    let sin = |x: f32| f32::from_bits(special::sin(x.to_bits()));
    let mut x = 1e-8_f32;
    while sin(x) == 0.0 {
        x = x.next_up();
    }
    lesson.say(&format!(
        "The smallest positive angle whose sine is not 0: {x:e}, with the sine {:e}.",
        sin(x)
    ));
    lesson.value("sin_first", format!("{x:.3e}"), Kind::Computed);
    let small = 0.001_f32;
    let error = (f64::from(sin(small)) - f64::from(small).sin()) / f64::from(small).sin();
    lesson.value("sin_small", format!("{:.1e}", error.abs()), Kind::Computed);
    Ok(())
}
