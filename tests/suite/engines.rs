//! The library's engines, with their domains: what several tests run over.

use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::device::{Device, KernelEngine, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::{Element, Engine};

/// An engine, which cases it takes, and by them the bound that it is judged by.
pub struct Entry<T> {
    pub engine: Box<dyn Engine<T>>,
    pub domain: Domain,
}

impl<T: Element> Entry<T> {
    fn new(engine: impl Engine<T> + 'static, domain: Domain) -> Self {
        Entry { engine: Box::new(engine), domain }
    }
}

/// The CPU's engine, and those of [`kernels`].
pub fn all<T: Element + Storage<Accum = T>>() -> Vec<Entry<T>> {
    let tree = Domain { levels: Domain::tree_levels, ..Domain::default() };
    let mut engines = kernels::<T>();
    engines.push(Entry::new(Cpu::new(), tree));
    engines
}

/// Each kernel that is shipped, on the emulator and on the GPUs that are found, and there the
/// engine that picks a kernel by itself.
pub fn kernels<S: Storage>() -> Vec<Entry<S::Accum>> {
    let mut engines = Vec::new();
    for device in under_test() {
        for choice in KernelChoice::shipped(S::ELEMENT) {
            let kernel = KernelEngine::<S>::new(&device, choice).expect("it is shipped");
            let domain = kernel.domain();
            engines.push(Entry::new(kernel, domain));
        }
        let auto = device.engine::<S>();
        let domain = auto.domain();
        engines.push(Entry::new(auto, domain));
    }
    engines
}

/// Whether a device computes `ex2.approx` and its like with the bits that the emulator has, which
/// are those of compute capability 9.0.
pub fn has_emulated_functions(device: &Device) -> bool {
    device.is_simt() || device.attributes().compute_capability == (9, 0)
}
