//! The bits of the special functions against those of an H200 (compute capability 9.0).
//!
//! `special_functions-9.0.csv.gz` holds, for each function and each value `top` of an operand's
//! upper 9 bits, the sum over all lower bits `m` of `mix(m << 32 | result)`, modulo 2^64: a result
//! that differs in any bit, or two that change places, give another sum.

use std::thread;

use crate::approximate::FUNCTIONS;
use crate::unpacked;

const MEASURED: &[u8] = include_bytes!("../data/special_functions-9.0.csv.gz");

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// Computes a function by its name, with or without `.ftz`.
fn result(name: &str, x: u32) -> u32 {
    let (name, ftz) = name.strip_suffix(".ftz").map_or((name, false), |name| (name, true));
    let found = FUNCTIONS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no function {name}")).1(x, ftz)
}

/// Compares the rows that are `chosen`, and panics with those that differ.
fn check(chosen: impl Fn(&str, u32) -> bool) {
    let measured = unpacked(MEASURED);
    let rows: Vec<(&str, u32, u64)> = measured
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let sum = u64::from_str_radix(fields[2], 16).expect("a sum is hexadecimal");
            (fields[0], fields[1].parse().expect("a number"), sum)
        })
        .filter(|&(name, top, _)| chosen(name, top))
        .collect();
    assert!(!rows.is_empty());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let wrong = |first: usize| {
        let differs = |&&(name, top, wanted): &&(&str, u32, u64)| {
            let mut sum = 0_u64;
            for m in 0..1_u32 << 23 {
                let result = result(name, top << 23 | m);
                sum = sum.wrapping_add(mix(u64::from(m) << 32 | u64::from(result)));
            }
            sum != wanted
        };
        rows.iter().skip(first).step_by(workers).filter(differs).copied().collect::<Vec<_>>()
    };
    let wrong: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|i| scope.spawn(move || wrong(i))).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    let (count, all) = (wrong.len(), rows.len());
    assert!(wrong.is_empty(), "results differ for {count} of {all} rows: {wrong:?}");
}

/// One row of each function, where its results change most.
#[test]
fn bits_are_those_of_the_hardware() {
    const ROWS: &str = "ex2.ftz 383, ex2 389, lg2.ftz 126, lg2 0, rcp.ftz 127, rcp 253, \
        rsqrt.ftz 127, rsqrt 0, sqrt.ftz 128, sqrt 0, sin.ftz 385, sin 0, cos.ftz 129, cos 106, \
        tanh 127";
    check(|name, top| ROWS.split(", ").any(|row| row == format!("{name} {top}")));
}

#[test]
#[ignore = "all 2^32 operands of 15 functions: an hour of a core"]
fn all_bits_are_those_of_the_hardware() {
    check(|_, _| true);
}
