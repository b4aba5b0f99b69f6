//! Every engine of the project, with its domain: what the tests in this folder run over.

use ch01_sequential_loop::Loop;
use ch02_two_threads::{ManyThreads, TwoThreads};
use ch03_matrix_form::Matrix;
use ch04_gradient::ThroughForward;
use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::{Element, Engine};

/// An engine and what it takes.
pub type Entry<T> = (Box<dyn Engine<T>>, Domain);

/// All engines.
pub fn all<T: Element>() -> Vec<Entry<T>> {
    let tree = Domain { levels: Domain::tree_levels, ..Domain::default() };
    let threads = ManyThreads::new(5);
    let threads_domain = threads.domain();
    vec![
        (Box::new(Cpu::new()), tree),
        (Box::new(Loop), Domain::default()),
        (Box::new(TwoThreads), TwoThreads::domain()),
        (Box::new(threads), threads_domain),
        (Box::new(Matrix), Matrix::domain()),
        (Box::new(ThroughForward(Loop)), Domain::default()),
    ]
}
