//! Every engine of the project, with its domain: what the tests in this folder run over.

use ch01_sequential_loop::Loop;
use ch02_two_threads::{ManyThreads, TwoThreads};
use ch03_matrix_form::Matrix;
use ch04_gradient::ThroughForward;
use ch12_log_space::{LogSpace, Real};
use linrec::contract::{Domain, ErrorBound};
use linrec::cpu::Cpu;
use linrec::device::{KernelEngine, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::{Element, Engine};

/// An engine, which cases it takes, and the bound that it is judged by.
pub struct Entry<T: Element> {
    pub engine: Box<dyn Engine<T>>,
    pub domain: Domain,
    pub bound: Box<dyn ErrorBound<T>>,
}

impl<T: Element> Entry<T> {
    /// An engine that multiplies and adds: its domain says how often it rounds.
    fn new(engine: impl Engine<T> + 'static, domain: Domain) -> Self {
        Entry { engine: Box::new(engine), bound: Box::new(domain.clone()), domain }
    }
}

/// The engines for all types of element: those of the host, and each kernel on the emulator and on
/// the GPUs that are found, and there the one that picks a kernel by itself.
pub fn all<T: Element + Storage<Accum = T>>() -> Vec<Entry<T>> {
    let tree = Domain { levels: Domain::tree_levels, ..Domain::default() };
    let threads = ManyThreads::new(5);
    let threads_domain = threads.domain();
    let mut engines = vec![
        Entry::new(Cpu::new(), tree),
        Entry::new(Loop, Domain::default()),
        Entry::new(TwoThreads, TwoThreads::domain()),
        Entry::new(threads, threads_domain),
        Entry::new(Matrix, Matrix::domain()),
        Entry::new(ThroughForward(Loop), Domain::default()),
    ];
    for device in under_test() {
        for choice in KernelChoice::shipped(T::ELEMENT) {
            let kernel = KernelEngine::<T>::new(&device, choice).expect("it is shipped");
            let domain = kernel.domain();
            engines.push(Entry::new(kernel, domain));
        }
        let auto = device.engine::<T>();
        let domain = auto.domain();
        engines.push(Entry::new(auto, domain));
    }
    engines
}

/// The same, and those for real numbers alone: log space, whose error depends on the data.
pub fn real<T: Real + Storage<Accum = T>>() -> Vec<Entry<T>> {
    let log_space = [LogSpace::whole(), LogSpace::restarting(8.0)].map(|engine| Entry {
        domain: LogSpace::domain(),
        bound: Box::new(engine.clone()),
        engine: Box::new(engine),
    });
    all().into_iter().chain(log_space).collect()
}
