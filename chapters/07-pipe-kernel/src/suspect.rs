//! The pipe kernel with a planted mistake.

use std::cmp::Reverse;
use std::fmt;

use linrec::contract::{self, Domain};
use linrec::device::{Device, KernelEngine};
use linrec::{Error, kernels};

use crate::PIPE;

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

/// The names of the broken kernels that should do what `linrec_pipe.cu` does.
pub fn names() -> impl Iterator<Item = &'static str> {
    let broken = kernels::sources().filter(|(_, text)| text.starts_with("// linrec_pipe.cu "));
    broken.filter_map(|(path, _)| path.strip_prefix("broken/")?.strip_suffix(".cu"))
}

/// The broken kernel of this name on the emulator, as an engine, with what it takes.
///
/// # Errors
///
/// [`Error::Device`] if there is none.
pub fn load(name: &str) -> Result<(KernelEngine<f32>, Domain), Error> {
    let device = Device::simt();
    let path = format!("broken/{name}");
    let ptx = kernels::shipped().find_map(|(shipped, ptx)| (shipped == path).then_some(ptx));
    let (Some(ptx), Some(program)) = (ptx, kernels::program(&format!("{path}.cu"))) else {
        let message = format!("there is no broken pipe kernel `{name}`");
        return Err(Error::Device { device: device.label().to_owned(), message });
    };
    let program = program.with_entries(ptx.entries().map(|(entry, _)| entry));
    // Without an entry for the backward pass, the kernel has none.
    let backward = program.entries.len() > 1;
    let engine = KernelEngine::from_program(&device, PIPE, &program)?;
    let domain = Domain { backward, max_len: 1100, ..engine.domain() };
    Ok((engine, domain))
}

/// Tries the cases of the contract's table until one goes wrong, the longest sequences first. `None` if nothing
/// does.
// ANCHOR: examine
pub fn examine(engine: &KernelEngine<f32>, domain: &Domain) -> Option<Finding> {
    let mut cases = contract::cases(domain.tile);
    cases.retain(|case| domain.contains(case));
    cases.sort_by_key(|case| Reverse(case.seq_len));
    cases.iter().find_map(|case| {
        let what = contract::check::<f32>(engine, domain, case).err()?;
        Some(Finding { case: case.to_string(), what })
    })
}
// ANCHOR_END: examine
