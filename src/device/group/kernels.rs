//! The kernels for rows that are cut: `kernels/linrec_pieces.cu`.

use std::sync::OnceLock;

use crate::Error;
use crate::device::{Device, Function, Launch, Module, Storage};
use crate::kernels::{ElementType, program};

/// The file with the kernels.
const SOURCE: &str = "linrec_pieces.cu";

/// The kernels for one type of elements, loaded when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Kernels(OnceLock<Loaded>);

#[derive(Debug)]
pub(super) struct Loaded {
    /// Computes each piece's transition; or publishes the state behind it by mail, if its tail
    /// determines it.
    pub(super) ends: OverPieces,
    /// Computes the state before each piece from the transitions.
    pub(super) states: Function,
    /// Picks one of several numbers of each row.
    pub(super) column: Function,
    /// Computes the outputs of each piece, with states by mail.
    pub(super) forward: OverPieces,
    /// Computes the gradient of each piece.
    pub(super) backward: OverPieces,
    /// Computes the gradient of each piece, with states by mail.
    pub(super) backward_by_mail: OverPieces,
    /// Fetches the output before each stretch by mail from the rank that has it.
    pub(super) previous: Function,
}

/// A kernel with a block for each piece.
#[derive(Debug)]
pub(super) struct OverPieces {
    pub(super) function: Function,
    threads: u32,
}

impl OverPieces {
    /// Begins a launch over `pieces` pieces; `None` for 0.
    pub(super) fn launch(&self, pieces: usize) -> Option<Launch<'_>> {
        launch(&self.function, pieces, self.threads)
    }
}

/// Begins a launch of `blocks` blocks of `threads` threads; `None` for no blocks.
pub(super) fn launch(function: &Function, blocks: usize, threads: u32) -> Option<Launch<'_>> {
    // More blocks than a number holds are more than any grid has: the launch is refused.
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    (blocks > 0).then(|| function.launch(blocks, threads))
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
        // Kernels over states take the type that kernels compute with.
        let of_states = if wide == element { of_pieces.clone() } else { module(device, wide)? };
        let sized = |(entry, threads): &(String, u32)| {
            Ok::<_, Error>(OverPieces { function: of_pieces.function(entry)?, threads: *threads })
        };
        let [ends, forward, backward, backward_by_mail] = &over_pieces(element);
        let [states, column] = over_states(wide);
        Ok(Loaded {
            ends: sized(ends)?,
            states: of_states.function(&states)?,
            column: of_states.function(&column)?,
            forward: sized(forward)?,
            backward: sized(backward)?,
            backward_by_mail: sized(backward_by_mail)?,
            previous: of_pieces.function(&previous(element))?,
        })
    }
}

/// Returns the kernels with a block for each piece, and the threads of a block.
///
/// Blocks that send a state by mail are so large that an SM holds two: the next rank begins when as
/// many sequences as there are blocks have gone through, and one block alone would leave its SM
/// idle at the beginning of each sequence. Numbers of 16 bits take twice the registers. The other
/// kernels have tiles of 8 KiB, because pieces may be that short, and because one or two tiles are
/// read of a piece whose coefficients fade. (On an H100 the gradients of 2^28 steps take 2.18 ms in
/// pieces of 1024 steps, and 1.83 in pieces of 16,384; in large blocks 6.85 and 1.79: `sizes.csv`
/// in `chapters/17-several-gpus/results/h100/tables.json`.)
fn over_pieces(element: ElementType) -> [(String, u32); 4] {
    let (stored, vectors) = (element.cuda_name(), if element.bytes() == 2 { 2 } else { 4 });
    let sized = |name, vectors: u32, threads: u32, more| {
        (format!("linrec_piece_{name}<{stored}, {vectors}, {threads}{more}>"), threads)
    };
    [
        sized("ends", 2, 256, ""),
        sized("fwd", vectors, 256, ""),
        sized("bwd", 2, 256, ", false"),
        sized("bwd", vectors, 256, ", true"),
    ]
}

fn previous(element: ElementType) -> String {
    format!("linrec_piece_previous<{}>", element.cuda_name())
}

/// The most threads of a block that goes over the pieces of a row.
pub(super) const MOST_THREADS: usize = 512;

fn over_states(element: ElementType) -> [String; 2] {
    let name = element.cuda_name();
    let column = format!("linrec_piece_column<{name}>");
    [format!("linrec_piece_states<{name}, {MOST_THREADS}>"), column]
}

/// Returns the shipped kernels of one type.
fn module(device: &Device, element: ElementType) -> Result<Module, Error> {
    let mut entries = over_pieces(element).map(|(entry, _)| entry).to_vec();
    entries.push(previous(element));
    if element.accumulator() == element {
        entries.extend(over_states(element));
    }
    let source = program(SOURCE).ok_or_else(|| {
        Error::device(device.label(), format!("the library was built without `{SOURCE}`"))
    })?;
    device.program(&source.with_entries(entries))
}
