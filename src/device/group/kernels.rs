//! The kernels for rows that are cut: `kernels/linrec_pieces.cu`.

use std::sync::OnceLock;

use crate::Error;
use crate::device::{Device, Function, Module, Storage};
use crate::kernels::{ElementType, program};

/// The file with the kernels.
const SOURCE: &str = "linrec_pieces.cu";
/// Vectors of each thread, and threads of a block, of the kernels with a block for each piece.
const VECTORS: u32 = 2;
pub(super) const THREADS: u32 = 128;

/// Those for one type of elements, loaded when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Kernels(OnceLock<Loaded>);

#[derive(Debug)]
pub(super) struct Loaded {
    /// What each piece does to the state; or, told by mail, what comes behind it, where its tail says that.
    pub(super) ends: Function,
    /// From that to the state before each piece.
    pub(super) states: Function,
    /// One of several numbers of each row.
    pub(super) column: Function,
    /// The gradient of each piece.
    pub(super) backward: Function,
    /// The last output of each piece.
    pub(super) lasts: Function,
    /// The output before each stretch, by mail from the rank that has it.
    pub(super) previous: Function,
}

impl Kernels {
    pub(super) fn get<S: Storage>(&self, device: &Device) -> Result<&Loaded, Error> {
        if let Some(loaded) = self.0.get() {
            return Ok(loaded);
        }
        let loaded = Loaded::load(device, S::ELEMENT)?;
        Ok(self.0.get_or_init(|| loaded))
    }
}

impl Loaded {
    fn load(device: &Device, element: ElementType) -> Result<Loaded, Error> {
        let wide = element.accumulator();
        let of_pieces = module(device, element)?;
        // Those over states are with the type that is computed with.
        let of_states = if wide == element { of_pieces.clone() } else { module(device, wide)? };
        let [ends, backward, lasts, previous] = over_pieces(element);
        let [states, column] = over_states(wide);
        Ok(Loaded {
            ends: of_pieces.function(&ends)?,
            states: of_states.function(&states)?,
            column: of_states.function(&column)?,
            backward: of_pieces.function(&backward)?,
            lasts: of_pieces.function(&lasts)?,
            previous: of_pieces.function(&previous)?,
        })
    }
}

fn over_pieces(element: ElementType) -> [String; 4] {
    let stored = element.cuda_name();
    let sized = |name| format!("linrec_piece_{name}<{stored}, {VECTORS}, {THREADS}");
    let [lasts, previous] =
        ["lasts", "previous"].map(|name| format!("linrec_piece_{name}<{stored}>"));
    [sized("ends") + ">", sized("bwd") + ", false>", lasts, previous]
}

fn over_states(element: ElementType) -> [String; 2] {
    let name = element.cuda_name();
    [format!("linrec_piece_states<{name}, {THREADS}>"), format!("linrec_piece_column<{name}>")]
}

/// Threads of a block, and 16-byte vectors of each, of the kernels that hand states on by mailboxes: so large that an SM has one,
/// as the next rank begins when as many sequences as there are blocks have gone through. Numbers of 16 bits take twice the
/// registers.
pub(super) const THREADS_BY_MAIL: u32 = 512;

fn vectors_by_mail(element: ElementType) -> u32 {
    if element.bytes() == 2 { 2 } else { 4 }
}

/// Those that hand states on by mailboxes, for one type of elements, loaded when they are first needed.
#[derive(Debug, Default)]
pub(super) struct ByMail(OnceLock<LoadedByMail>);

#[derive(Debug)]
pub(super) struct LoadedByMail {
    pub(super) forward: Function,
    pub(super) backward: Function,
}

impl ByMail {
    pub(super) fn get<S: Storage>(&self, device: &Device) -> Result<&LoadedByMail, Error> {
        if let Some(loaded) = self.0.get() {
            return Ok(loaded);
        }
        let (stored, vectors) = (S::ELEMENT.cuda_name(), vectors_by_mail(S::ELEMENT));
        let sized = |name| format!("linrec_piece_{name}<{stored}, {vectors}, {THREADS_BY_MAIL}");
        let entries = [sized("fwd") + ">", sized("bwd") + ", true>"];
        let module = with_entries(device, entries.to_vec())?;
        let [forward, backward] = entries.map(|entry| module.function(&entry));
        let loaded = LoadedByMail { forward: forward?, backward: backward? };
        Ok(self.0.get_or_init(|| loaded))
    }
}

/// The kernels of one type, as they are shipped.
fn module(device: &Device, element: ElementType) -> Result<Module, Error> {
    let mut entries = over_pieces(element).to_vec();
    if element.accumulator() == element {
        entries.extend(over_states(element));
    }
    with_entries(device, entries)
}

fn with_entries(device: &Device, entries: Vec<String>) -> Result<Module, Error> {
    let source = program(SOURCE).ok_or_else(|| {
        Error::device(device.label(), format!("the library was built without `{SOURCE}`"))
    })?;
    device.program(&source.with_entries(entries))
}
