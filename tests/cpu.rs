//! The CPU engine against the contract, at every instruction set that this machine has.

use linrec::contract::{self, Domain, golden};
use linrec::cpu::{Cpu, Simd};
use linrec::{Direction, Element, Engine, Options};
use num_complex::Complex;

/// One engine per instruction set of this machine, alone and on a small pool of threads.
fn levels() -> Vec<Cpu> {
    let engines = Simd::ALL.into_iter().filter_map(|simd| Cpu::new().with_simd(simd));
    engines.flat_map(|cpu| [cpu.clone(), cpu.single_threaded()]).collect()
}

fn domain(tile: usize) -> Domain {
    Domain { levels: Domain::tree_levels, tile, ..Domain::default() }
}

fn passes<T: Element>() {
    for cpu in levels() {
        for tile in [4, 8, 16, 256] {
            let report = contract::run::<T>(&cpu, &domain(tile));
            println!("{cpu:?}: {report}");
            assert!(report.passed(), "{cpu:?}: {report}");
        }
    }
}

#[test]
fn contract_f32() {
    passes::<f32>();
}

#[test]
fn contract_f64() {
    passes::<f64>();
}

#[test]
fn contract_complex_f32() {
    passes::<Complex<f32>>();
}

#[test]
fn contract_complex_f64() {
    passes::<Complex<f64>>();
}
