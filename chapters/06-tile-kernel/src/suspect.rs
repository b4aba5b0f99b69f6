//! Kernels with a planted mistake that should do what `linrec_tile.cu` does, tried by the contract.

use std::cmp::Reverse;
use std::fmt;

use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine};
use linrec::{Error, kernels};

use crate::stages::CHOICE;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What the kernel computed when it was found.
    pub case: String,
    /// The emulator's report, or the number that is wrong.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// The names of the broken kernels whose correct twin is the tile kernel.
pub fn names() -> impl Iterator<Item = &'static str> {
    kernels::sources()
        .filter(|(_, text)| text.starts_with("// linrec_tile.cu "))
        .filter_map(|(path, _)| path.strip_prefix("broken/")?.strip_suffix(".cu"))
}

/// Tries the forward cases of the contract's table until one goes wrong, the longest sequences first. `None`
/// if nothing does.
///
/// # Errors
///
/// [`Error::Device`] if there is no such kernel: `broken/zero_for_missing_coefficients`.
pub fn examine(name: &str) -> Result<Option<Finding>, Error> {
    let device = Device::simt();
    let shipped = kernels::shipped().find(|&(shipped, _)| shipped == name);
    let program = kernels::program(&format!("{name}.cu"));
    let (Some((_, ptx)), Some(program)) = (shipped, program) else {
        let message = format!("no PTX is shipped with the name `{name}`");
        return Err(Error::Device { device: device.label().to_owned(), message });
    };
    let program = program.with_entries(ptx.entries().map(|(entry, _)| entry));
    let engine = KernelEngine::<f32>::from_program(&device, CHOICE, &program)?;
    let domain = Domain { backward: false, ..engine.domain() };
    let mut cases = contract::cases(domain.tile);
    cases.retain(|case| domain.contains(case));
    cases.sort_by_key(|case| Reverse(case.seq_len));
    let wrong = |case: &contract::Case| contract::check::<f32>(&engine, &domain, case).err();
    let found = cases.iter().find_map(|case| Some((case.to_string(), wrong(case)?)));
    Ok(found.map(|(case, what)| Finding { case, what }))
}
