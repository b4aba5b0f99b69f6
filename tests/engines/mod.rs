//! Every engine of the project, with its domain: what the tests in this folder run over.

use linrec::contract::Domain;
use linrec::cpu::Cpu;
use linrec::{Element, Engine};

/// An engine and what it takes.
pub type Entry<T> = (Box<dyn Engine<T>>, Domain);

/// All engines.
pub fn all<T: Element>() -> Vec<Entry<T>> {
    vec![(Box::new(Cpu::new()), ch00())]
}
