//! The library's engines with their domains, for several tests.

use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::device::{Device, KernelEngine, Storage, under_test};
use linrec::kernels::KernelChoice;
use linrec::{Element, Engine};

/// An engine, and the domain that selects its cases and bounds its errors.
pub struct Entry<T> {
    pub engine: Box<dyn Engine<T>>,
    pub domain: Domain,
}

impl<T: Element> Entry<T> {
    fn new(engine: impl Engine<T> + 'static, domain: Domain) -> Self {
        Entry { engine: Box::new(engine), domain }
    }
}

/// Returns the engine of the CPU, and the engines of [`kernels`].
pub fn all<T: Element + Storage<Accum = T>>() -> Vec<Entry<T>> {
    let tree = Domain { levels: Domain::tree_levels, ..Domain::default() };
    let mut engines = kernels::<T>();
    engines.push(Entry::new(Cpu::new(), tree));
    engines
}

/// Returns each shipped kernel, on the emulator and on every GPU, and the engine that chooses a
/// kernel by itself.
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

/// Returns true if a device computes `ex2.approx` and similar functions with the emulator's bits,
/// which are those of compute capability 9.0.
pub fn has_emulated_functions(device: &Device) -> bool {
    device.is_simt() || device.attributes().compute_capability == (9, 0)
}
