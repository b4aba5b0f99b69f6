//! By which kernel a recurrence is computed.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::kernels::KernelChoice;

/// By which kernel a [`Recurrence`](super::Recurrence) is computed: one that is named, or the
/// fastest for each call.
///
/// ```
/// use linrec::device::Choice;
/// use linrec::kernels::KernelChoice;
///
/// assert_eq!(Choice::from(KernelChoice::default()).to_string(), "ref:64");
/// assert_eq!("auto".parse(), Ok(Choice::Fastest));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Choice {
    /// This one, always.
    Kernel(KernelChoice),
    /// The fastest for each shape: on a GPU of all, on the emulator of those that are shipped.
    #[default]
    Fastest,
    /// The fastest for each shape of those whose PTX is part of this library.
    FastestShipped,
    /// The fastest for each shape of all; those that are not shipped have to be compiled.
    FastestOfAll,
}

impl From<KernelChoice> for Choice {
    fn from(kernel: KernelChoice) -> Choice {
        Choice::Kernel(kernel)
    }
}

/// The kernel, or `auto`, `auto:shipped`, `auto:all`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Kernel(kernel) => kernel.fmt(f),
            Choice::Fastest => f.pad("auto"),
            Choice::FastestShipped => f.pad("auto:shipped"),
            Choice::FastestOfAll => f.pad("auto:all"),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes.
impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Choice, Error> {
        let fastest = [Choice::Fastest, Choice::FastestShipped, Choice::FastestOfAll];
        match fastest.into_iter().find(|choice| choice.to_string() == text) {
            Some(choice) => Ok(choice),
            None => text.parse().map(Choice::Kernel),
        }
    }
}
