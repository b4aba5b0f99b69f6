//! The choice of the kernel that computes a recurrence.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::kernels::KernelChoice;

/// The kernel that computes a [`Recurrence`](super::Recurrence): a named one, or the fastest for
/// each call.
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
    /// This kernel for every call.
    Kernel(KernelChoice),
    /// The fastest kernel for each shape: among all kernels on a GPU, among shipped ones on the
    /// emulator.
    #[default]
    Fastest,
    /// The fastest kernel for each shape among those whose PTX is part of this library.
    FastestShipped,
    /// The fastest kernel for each shape among all; one that is not shipped has to be compiled.
    FastestOfAll,
}

impl From<KernelChoice> for Choice {
    fn from(kernel: KernelChoice) -> Choice {
        Choice::Kernel(kernel)
    }
}

/// Writes the kernel, or `auto`, `auto:shipped`, `auto:all`.
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
