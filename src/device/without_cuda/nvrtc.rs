//! What stands in the place of the compiler where the feature `cuda` is off: PTX that is shipped,
//! and no other.

use crate::Error;
use crate::kernels::{Program, Ptx, shipped_as};

/// As the compiler has it.
pub(super) const SHIPPED_ARCHITECTURE: u32 = 80;

/// The PTX of `program` that is shipped.
pub(super) fn obtain(program: &Program, _architecture: u32) -> Result<Ptx, Error> {
    shipped_as(program).ok_or_else(|| {
        let (file, entries) = (&program.file, program.entries.join(", "));
        let message = format!(
            "no PTX is shipped for {entries} of {file}, and linrec was built without the feature `cuda`, \
             which has the compiler"
        );
        Error::device("NVRTC", message)
    })
}
