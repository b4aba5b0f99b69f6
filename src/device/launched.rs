//! The outcome of a launch.

use super::Function;
use crate::kernels::KernelChoice;
use crate::simt::Counters;

/// A launch that has been queued, and on the emulator run; or one that has been recorded.
#[derive(Debug, Clone)]
pub struct Launched {
    counters: Option<Counters>,
    choice: Option<KernelChoice>,
}

impl Launched {
    /// A launch that was queued or recorded.
    pub(super) fn new(counters: Option<Counters>) -> Launched {
        Launched { counters, choice: None }
    }

    /// No launch, because there was nothing to compute.
    pub(super) fn nothing(function: &Function) -> Launched {
        Launched::new(function.device.is_simt().then(Counters::default))
    }

    /// Adds the kernel of the catalogue that it was: [`Launched::choice`].
    pub(super) fn of(self, choice: KernelChoice) -> Launched {
        Launched { choice: Some(choice), ..self }
    }

    /// Adds the counters of launches that belong to it.
    pub(super) fn and(self, others: &Launched) -> Launched {
        let counters = self.counters.zip(others.counters.as_ref()).map(|(mut sum, others)| {
            sum += others;
            sum
        });
        Launched { counters, ..self }
    }

    /// What the emulator counted; `None` on a GPU, and for a launch that was only recorded.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// The kernel of the catalogue, if a [`Recurrence`](super::Recurrence) launched it.
    pub fn choice(&self) -> Option<KernelChoice> {
        self.choice
    }
}
