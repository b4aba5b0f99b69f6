//! Every engine of the project, with its domain: what the tests in this folder run over.

use ch01_sequential_loop::Loop;
use ch02_two_threads::{ManyThreads, TwoThreads};
use ch03_matrix_form::Matrix;
use ch04_gradient::ThroughForward;
use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::device::{KernelEngine, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::{Element, Engine};

/// An engine and what it takes.
pub type Entry<T> = (Box<dyn Engine<T>>, Domain);

/// All engines: those of the host, and each kernel on the emulator and on the GPUs that are found, and
/// there the one that picks a kernel by itself.
pub fn all<T: Element + Storage<Accum = T>>() -> Vec<Entry<T>> {
    let tree = Domain { levels: Domain::tree_levels, ..Domain::default() };
    let threads = ManyThreads::new(5);
    let threads_domain = threads.domain();
    let mut engines: Vec<Entry<T>> = vec![
        (Box::new(Cpu::new()), tree),
        (Box::new(Loop), Domain::default()),
        (Box::new(TwoThreads), TwoThreads::domain()),
        (Box::new(threads), threads_domain),
        (Box::new(Matrix), Matrix::domain()),
        (Box::new(ThroughForward(Loop)), Domain::default()),
    ];
    for device in under_test() {
        for choice in KernelChoice::shipped(T::ELEMENT) {
            let kernel = KernelEngine::<T>::new(&device, choice).expect("it is shipped");
            let domain = kernel.domain();
            engines.push((Box::new(kernel), domain));
        }
        let auto = device.engine::<T>();
        let domain = auto.domain();
        engines.push((Box::new(auto), domain));
    }
    engines
}
