//! The loop under the contract that every engine is held to, and the golden data.

use ch01_sequential_loop::Loop;
use linrec::Element;
use linrec::contract::{self, Domain, Table, golden};
use num_complex::Complex;

fn passes<T: Element>(domain: Domain) {
    let report = contract::run::<T>(&Loop, &domain);
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[test]
fn single_precision() {
    passes::<f32>(Domain::default().as_asked());
}

#[test]
fn double_precision() {
    passes::<f64>(Domain::default().as_asked());
}

#[test]
fn complex_single_precision() {
    passes::<Complex<f32>>(Domain::default().as_asked());
}

#[test]
fn complex_double_precision() {
    passes::<Complex<f64>>(Domain::default().as_asked());
}

#[test]
fn beyond_the_table() {
    let drawn = Domain { table: Table::Drawn(200), ..Domain::default() };
    passes::<f32>(drawn.clone());
    passes::<Complex<f64>>(drawn);
}

#[test]
fn golden_data() -> Result<(), Box<dyn std::error::Error>> {
    for case in golden::real()? {
        let distance = golden::distance::<f64>(&Loop, &case)?;
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
    for case in golden::complex()? {
        let distance = golden::distance::<Complex<f64>>(&Loop, &case)?;
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
    Ok(())
}
