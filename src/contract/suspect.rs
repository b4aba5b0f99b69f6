//! Kernels with one planted mistake, from `kernels/mistakes.toml`, and their detection: by the
//! emulator, which watches the launch, or by the table, which compares numbers.
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

/// A mistake that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The case that the kernel computed.
    pub case: String,
    /// The emulator's report, or the wrong number.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.case, self.what)
    }
}

/// Returns the names of the mistakes that are planted in the source `twin`, `linrec_tile.cu`: such
/// as `lost_carry`.
pub fn names(twin: &str) -> impl Iterator<Item = &'static str> {
    Mistake::all().iter().filter(move |mistake| mistake.twin == twin).map(|mistake| &*mistake.name)
}

/// Loads a shipped kernel of any name (`broken/lost_carry`) in place of `choice`, on the emulator;
/// returns the engine and its domain, without the long sequences of the table, which add nothing.
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

/// Runs the cases of the table that are not empty, the longest sequences first, until one fails.
/// Returns `None` if none fails.
pub fn examine(engine: &dyn Engine<f32>, domain: &Domain) -> Option<Finding> {
    let mut cases = cases(domain.tile);
    cases.retain(|case| domain.contains(case) && case.num_seqs > 0 && case.seq_len > 0);
    cases.sort_by_key(|case| Reverse(case.seq_len));
    cases.iter().find_map(|case| {
        let what = check::<f32>(engine, domain, case).err()?;
        Some(Finding { case: case.to_string(), what })
    })
}
