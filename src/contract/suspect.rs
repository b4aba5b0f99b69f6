//! Kernels with one planted mistake, of `kernels/mistakes.toml`, and what finds them: the emulator,
//! which watches them, or the table, which compares their numbers.
//!
//! ```
//! use linrec::contract::suspect;
//! use linrec::kernels::{KernelChoice, TileConfig};
//!
//! let tile = KernelChoice::Tile(TileConfig::DEFAULT);
//! let name = suspect::names("linrec_tile.cu").next().expect("there is one");
//! let (engine, domain) = suspect::load(&format!("broken/{name}"), tile)?;
//! println!("{}", suspect::examine(&engine, &domain).expect("it is found out"));
//! # Ok::<(), linrec::Error>(())
//! ```

use std::cmp::Reverse;
use std::fmt;

use super::{Domain, cases, check};
use crate::device::{Device, KernelEngine};
use crate::kernels::{self, KernelChoice, Mistake};
use crate::{Engine, Error};

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

/// The names of the broken kernels that should do what this one does, `linrec_tile.cu`: such as
/// `lost_carry`.
pub fn names(twin: &str) -> impl Iterator<Item = &'static str> {
    Mistake::all().iter().filter(move |mistake| mistake.twin == twin).map(|mistake| &*mistake.name)
}

/// A shipped kernel of any name (`broken/lost_carry`) in the place of `choice`, on the emulator and
/// as an engine, with what it takes. The long lengths of the table add nothing.
///
/// # Errors
///
/// [`Error::Device`] if no kernel of this name is shipped.
pub fn load(name: &str, choice: KernelChoice) -> Result<(KernelEngine<f32>, Domain), Error> {
    let device = Device::simt();
    let shipped = kernels::shipped().find(|&(shipped, _)| shipped == name);
    let program = kernels::program(&format!("{name}.cu"));
    let (Some((_, ptx)), Some(program)) = (shipped, program) else {
        let message = format!("no PTX is shipped with the name `{name}`");
        return Err(Error::Device { device: device.label().to_owned(), message });
    };
    let program = program.with_entries(ptx.entries().map(|(entry, _)| entry));
    let backward = program.entries.iter().any(|entry| entry.contains("_bwd"));
    let engine = KernelEngine::from_program(&device, choice, &program)?;
    let domain = engine.domain();
    let max_len = domain.max_len.min(1100);
    Ok((engine, Domain { max_len, backward, ..domain }))
}

/// Tries the cases of the table with something to compute until one goes wrong, the longest
/// sequences first. `None` if nothing does.
pub fn examine(engine: &dyn Engine<f32>, domain: &Domain) -> Option<Finding> {
    let mut cases = cases(domain.tile);
    cases.retain(|case| domain.contains(case) && case.num_seqs > 0 && case.seq_len > 0);
    cases.sort_by_key(|case| Reverse(case.seq_len));
    cases.iter().find_map(|case| {
        let what = check::<f32>(engine, domain, case).err()?;
        Some(Finding { case: case.to_string(), what })
    })
}
