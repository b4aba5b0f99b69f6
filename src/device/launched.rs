//! What there is to say of a launch afterwards.

use super::Function;
use super::function::Code;
use crate::kernels::KernelChoice;
use crate::simt::Counters;

/// A launch that has been queued, and on the emulator run; or one that has been recorded.
#[derive(Debug, Clone)]
pub struct Launched {
    counters: Option<Counters>,
    choice: Option<KernelChoice>,
}

impl Launched {
    /// A launch that a device has been given, or that has been recorded.
    pub(super) fn new(counters: Option<Counters>) -> Launched {
        Launched { counters, choice: None }
    }

    /// No launch, as there was nothing to compute.
    pub(super) fn nothing(function: &Function) -> Launched {
        let is_simt = matches!(function.code, Code::Simt(_));
        Launched { counters: is_simt.then(Counters::default), choice: None }
    }

    /// This launch, known to be of a kernel of the catalogue: [`Launched::choice`].
    pub(super) fn of(self, choice: KernelChoice) -> Launched {
        Launched { choice: Some(choice), ..self }
    }

    /// This launch and others that belong to it: what was counted is added up.
    pub(super) fn and(self, others: &Launched) -> Launched {
        let counters = self.counters.zip(others.counters.as_ref()).map(|(mut sum, others)| {
            sum += others;
            sum
        });
        Launched { counters, ..self }
    }

    /// What the emulator counted; `None` on a GPU, and of a launch that was recorded only.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// Which kernel it was, of a [`Recurrence`](super::Recurrence); `None` of others.
    pub fn choice(&self) -> Option<KernelChoice> {
        self.choice
    }
}
