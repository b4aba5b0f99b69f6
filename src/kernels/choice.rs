//! Which kernel, and how it is launched.

use std::fmt;

use super::{ElementType, Program, program};
use crate::Direction;

/// A kernel that computes the recurrence, with everything that can be chosen about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelChoice {
    /// `linrec_ref.cu`: one thread per sequence.
    Ref {
        /// Threads in a block.
        threads: u32,
    },
    /// `linrec_tile.cu`: one block per sequence, which must fit into its registers.
    Tile(Config),
    /// `linrec_pipe.cu`: one block per sequence, tile by tile.
    Pipe(Config),
    /// `linrec_rows.cu`: some lanes of a warp for each sequence, which must fit into their registers.
    Rows(RowsConfig),
    /// `linrec_wide.cu`: one block per sequence, tile by tile in words of 16 bytes.
    Wide(WideConfig),
}

/// The reference kernel with 64 threads in a block.
impl Default for KernelChoice {
    fn default() -> Self {
        KernelChoice::Ref { threads: 64 }
    }
}

/// What is chosen when a kernel of one block per sequence is compiled.
///
/// The names are those of the template parameters `kMaxElemsPerThread`, `kMaxThreadsPerBlock`,
/// `kMemcode` and `kAlgocode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Config {
    /// Elements that a thread holds in registers, at most.
    pub max_elems_per_thread: u32,
    /// Threads in a block, at most: a multiple of 32 up to 1024. A short sequence takes fewer.
    pub max_threads_per_block: u32,
    /// How a tile comes from memory: 0, each thread reads its own elements; 1, through shared memory;
    /// 2, through shared memory in words of 16 bytes.
    pub memcode: u32,
    /// How many levels of the scan there are: 0 copies, 1 stops at the thread, 2 at the warp; 3 is the
    /// recurrence.
    pub algocode: u32,
}

/// 8 elements for each of up to 64 threads, read by each thread, and the whole scan.
impl Default for Config {
    fn default() -> Self {
        Config { max_elems_per_thread: 8, max_threads_per_block: 64, memcode: 0, algocode: 3 }
    }
}

impl Config {
    /// 4 elements for each of up to 256 threads: a tile of 1024.
    pub const TILE: Config =
        Config { max_elems_per_thread: 4, max_threads_per_block: 256, memcode: 0, algocode: 3 };

    /// Elements of the largest tile.
    pub fn max_tile(&self) -> u64 {
        u64::from(self.max_elems_per_thread) * u64::from(self.max_threads_per_block)
    }

    /// The threads for a sequence: as few whole warps as hold it, if `max_threads_per_block` do.
    fn threads(&self, seq_len: u64) -> u32 {
        let warps = seq_len.div_ceil(u64::from(self.max_elems_per_thread.max(1)) * 32).max(1);
        u32::try_from(32 * warps.min(1 << 20)).unwrap_or(u32::MAX).min(self.max_threads_per_block)
    }
}

/// What is chosen when `linrec_rows.cu` is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowsConfig {
    /// Lanes of a warp that share a sequence: 1, 2, 4, 8, 16 or 32.
    pub lanes: u32,
    /// Words of 16 bytes that a lane holds of each array: neighbours.
    pub words: u32,
    /// Threads in a block: a multiple of 32 up to 1024.
    pub threads: u32,
    /// Whether all sequences consist of whole words and begin at multiples of 16 bytes.
    pub whole: bool,
}

/// 16 lanes with two words each: sequences of up to 128 f32.
impl Default for RowsConfig {
    fn default() -> Self {
        RowsConfig { lanes: 16, words: 2, threads: 32, whole: true }
    }
}

/// What is chosen when `linrec_wide.cu` is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WideConfig {
    /// Words of 16 bytes that a thread holds of each array.
    pub words: u32,
    /// Threads in a block: a multiple of 32 up to 1024.
    pub threads: u32,
    /// How many tiles are on their way while one is computed, by way of shared memory.
    pub ahead: u32,
    /// Whether all sequences consist of whole words and begin at multiples of 16 bytes.
    pub whole: bool,
}

/// A block of 128 threads with two words each, and sequences that may begin anywhere.
impl Default for WideConfig {
    fn default() -> Self {
        WideConfig { words: 2, threads: 128, ahead: 0, whole: false }
    }
}

/// Elements of so many words of 16 bytes.
fn elements(element: ElementType, words: u32) -> u64 {
    u64::from(words) * 16 / element.bytes() as u64
}

impl RowsConfig {
    /// The longest sequence.
    pub fn max_len(&self, element: ElementType) -> u64 {
        u64::from(self.lanes) * elements(element, self.words)
    }
}

impl WideConfig {
    /// Steps of a tile.
    pub fn tile(&self, element: ElementType) -> u64 {
        u64::from(self.threads) * elements(element, self.words)
    }
}

/// Which of the two computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pass {
    /// The outputs.
    Forward,
    /// The gradients.
    Backward,
}

/// How many threads a launch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks in the grid, along its first axis.
    pub blocks: u64,
    /// Threads in a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl KernelChoice {
    /// The kernel's short name, for engines and tables: `ref`, `tile`, `pipe`.
    pub fn name(&self) -> &'static str {
        match self {
            KernelChoice::Ref { .. } => "ref",
            KernelChoice::Tile(_) => "tile",
            KernelChoice::Pipe(_) => "pipe",
            KernelChoice::Rows(_) => "rows",
            KernelChoice::Wide(_) => "wide",
        }
    }

    /// The kernels that are shipped for an element type, the reference kernel first.
    ///
    /// ```
    /// use linrec::kernels::{ElementType, KernelChoice};
    ///
    /// let names: Vec<_> = KernelChoice::shipped(ElementType::F32).map(|choice| choice.label()).collect();
    /// assert_eq!(names[..5], ["ref", "tile", "pipe", "pipe-m1", "pipe-m2"]);
    /// assert_eq!(names[5..8], ["rows-2x2-w", "rows-4x2-w", "rows-8x2-w"]);
    /// assert_eq!(names[8..], ["rows-16x2-w", "rows-32x2-w", "rows-16x2", "wide-2x128", "wide-4x256-a1-w"]);
    /// ```
    pub fn shipped(element: ElementType) -> impl Iterator<Item = KernelChoice> {
        let (tile, pipe) = (Config::TILE, Config::default());
        let (rows, wide) = (RowsConfig::default(), WideConfig::default());
        let of_lanes = |lanes| KernelChoice::Rows(RowsConfig { lanes, ..rows });
        let choices = [
            KernelChoice::default(),
            KernelChoice::Tile(tile),
            KernelChoice::Pipe(pipe),
            KernelChoice::Pipe(Config { memcode: 1, ..pipe }),
            KernelChoice::Pipe(Config { memcode: 2, ..pipe }),
            of_lanes(2),
            of_lanes(4),
            of_lanes(8),
            of_lanes(16),
            of_lanes(32),
            KernelChoice::Rows(RowsConfig { whole: false, ..rows }),
            KernelChoice::Wide(wide),
            KernelChoice::Wide(WideConfig { words: 4, threads: 256, ahead: 1, whole: true }),
        ];
        choices.into_iter().filter(move |choice| choice.program(element).shipped().is_some())
    }

    /// The name with what tells kernels of one name apart: `pipe-m1` for memcode 1.
    pub fn label(&self) -> String {
        let mut label = self.name().to_owned();
        if let KernelChoice::Tile(config) | KernelChoice::Pipe(config) = self {
            for (letter, value, usual) in [("m", config.memcode, 0), ("a", config.algocode, 3)] {
                if value != usual {
                    label += &format!("-{letter}{value}");
                }
            }
        }
        match self {
            KernelChoice::Rows(RowsConfig { lanes, words, whole, .. }) => {
                label += &format!("-{lanes}x{words}{}", if *whole { "-w" } else { "" });
            }
            KernelChoice::Wide(WideConfig { words, threads, ahead, whole }) => {
                label += &format!("-{words}x{threads}");
                if *ahead > 0 {
                    label += &format!("-a{ahead}");
                }
                label += if *whole { "-w" } else { "" };
            }
            _ => {}
        }
        label
    }

    /// The longest sequence that the kernel takes; `None` if it takes any.
    pub fn max_len(&self, element: ElementType) -> Option<u64> {
        match self {
            KernelChoice::Rows(config) => Some(config.max_len(element)),
            KernelChoice::Tile(config) => Some(config.max_tile()),
            KernelChoice::Ref { .. } | KernelChoice::Pipe(_) | KernelChoice::Wide(_) => None,
        }
    }

    /// What a sequence's length has to be a multiple of, and whether arrays have to begin at a multiple of 16
    /// bytes: 1 and false, but for rows of whole words.
    pub fn multiple_of(&self, element: ElementType) -> u64 {
        match self {
            KernelChoice::Rows(RowsConfig { whole: true, .. })
            | KernelChoice::Wide(WideConfig { whole: true, .. }) => elements(element, 1),
            _ => 1,
        }
    }

    /// What to compile: one module with an entry for each pass and, where that is not an argument, for
    /// each direction. The early stages of a scan (`algocode` below 3) have no backward pass.
    pub fn program(&self, element: ElementType) -> Program {
        let file = match self {
            KernelChoice::Ref { .. } => "linrec_ref.cu",
            KernelChoice::Tile(_) => "linrec_tile.cu",
            KernelChoice::Pipe(_) => "linrec_pipe.cu",
            KernelChoice::Rows(_) => "linrec_rows.cu",
            KernelChoice::Wide(_) => "linrec_wide.cu",
        };
        let passes = match self {
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) if config.algocode < 3 => {
                &[Pass::Forward][..]
            }
            _ => &[Pass::Forward, Pass::Backward],
        };
        let mut entries: Vec<_> = passes
            .iter()
            .flat_map(|&pass| {
                [Direction::Forward, Direction::Reverse]
                    .map(|direction| self.entry(element, pass, direction))
            })
            .collect();
        entries.dedup();
        let program = program(file).expect("every kernel's file is in the table of sources");
        program.with_entries(entries)
    }

    /// The entry of [`KernelChoice::program`] that computes `pass` in `direction`, as C++ writes it.
    ///
    /// `direction` is that of the recurrence, in the backward pass as well.
    pub fn entry(&self, element: ElementType, pass: Pass, direction: Direction) -> String {
        let (name, element) = (self.name(), element.cuda_name());
        let pass = match pass {
            Pass::Forward => "fwd",
            Pass::Backward => "bwd",
        };
        match self {
            KernelChoice::Ref { .. } => {
                format!("linrec_{name}_{pass}<{element}, {}>", direction == Direction::Reverse)
            }
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
                let Config { max_elems_per_thread, max_threads_per_block, memcode, algocode } =
                    config;
                format!(
                    "linrec_{name}_{pass}<{element}, {max_elems_per_thread}, \
                     {max_threads_per_block}, {memcode}, {algocode}>"
                )
            }
            KernelChoice::Rows(RowsConfig { lanes, words, threads, whole }) => {
                let reverse = direction == Direction::Reverse;
                format!(
                    "linrec_{name}_{pass}<{element}, {lanes}, {words}, {threads}, {reverse}, {whole}>"
                )
            }
            KernelChoice::Wide(WideConfig { words, threads, ahead, whole }) => {
                format!("linrec_{name}_{pass}<{element}, {words}, {threads}, {ahead}, {whole}>")
            }
        }
    }

    /// Whether the direction is the kernels' last argument, 0 or 1, and no matter of the entry.
    pub fn takes_direction(&self) -> bool {
        !matches!(self, KernelChoice::Ref { .. } | KernelChoice::Rows(_))
    }

    /// The launch of a pass over `num_seqs` sequences of `seq_len` elements of `element`; of no blocks if there
    /// are no sequences.
    ///
    /// What no launch can be, a block of zero threads say, is passed on as it is: the launch refuses it.
    pub fn geometry(
        &self,
        element: ElementType,
        pass: Pass,
        num_seqs: u64,
        seq_len: u64,
    ) -> Geometry {
        match self {
            KernelChoice::Ref { threads } => Geometry {
                blocks: num_seqs.div_ceil(u64::from((*threads).max(1))),
                threads: *threads,
                shared_bytes: 0,
            },
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
                let threads = config.threads(seq_len);
                let tile = u64::from(config.max_elems_per_thread) * u64::from(threads);
                // The tile, and what it may be moved by for the sake of its alignment.
                let staging = tile.saturating_mul(element.bytes() as u64).saturating_add(16);
                let staging = if config.memcode == 0 { 0 } else { staging };
                let shared_bytes = u32::try_from(staging).unwrap_or(u32::MAX);
                Geometry { blocks: num_seqs, threads, shared_bytes }
            }
            KernelChoice::Rows(RowsConfig { lanes, threads, .. }) => {
                let rows = u64::from((threads / lanes.max(&1)).max(1));
                let blocks = num_seqs.div_ceil(rows);
                Geometry { blocks, threads: *threads, shared_bytes: 0 }
            }
            KernelChoice::Wide(WideConfig { words, threads, ahead, .. }) => {
                let arrays = match pass {
                    Pass::Forward => 2,
                    Pass::Backward => 3,
                };
                let factors = [*words, *threads, *ahead, arrays];
                let shared_bytes = factors.into_iter().fold(16, u32::saturating_mul);
                Geometry { blocks: num_seqs, threads: *threads, shared_bytes }
            }
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelChoice::Ref { threads } => write!(f, "ref with {threads} threads per block"),
            KernelChoice::Tile(config) | KernelChoice::Pipe(config) => {
                let Config { max_elems_per_thread, max_threads_per_block, memcode, algocode } =
                    config;
                let name = self.name();
                write!(f, "{name} with {max_elems_per_thread} elements for each of up to ")?;
                write!(f, "{max_threads_per_block} threads, memcode {memcode}")?;
                if *algocode == 3 { Ok(()) } else { write!(f, ", algocode {algocode}") }
            }
            KernelChoice::Rows(RowsConfig { lanes, words, threads, whole }) => {
                write!(f, "rows with {words} words for each of {lanes} lanes, ")?;
                write!(f, "{threads} threads per block")?;
                if *whole { write!(f, ", whole words") } else { Ok(()) }
            }
            KernelChoice::Wide(WideConfig { words, threads, ahead, whole }) => {
                write!(f, "wide with {words} words for each of {threads} threads")?;
                if *ahead > 0 {
                    write!(f, ", {ahead} tiles ahead")?;
                }
                if *whole { write!(f, ", whole words") } else { Ok(()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: ElementType = ElementType::F32;

    #[test]
    fn every_sequence_has_a_thread_and_no_block_is_idle() {
        for (num_seqs, threads, blocks) in [(0, 64, 0), (1, 64, 1), (64, 64, 1), (65, 64, 2)] {
            let geometry = KernelChoice::Ref { threads }.geometry(F32, Pass::Forward, num_seqs, 10);
            assert_eq!(geometry.blocks, blocks);
        }
        let all = KernelChoice::Ref { threads: 1 }.geometry(F32, Pass::Forward, u64::MAX, 1);
        assert_eq!(all.blocks, u64::MAX);
        assert_eq!(KernelChoice::Ref { threads: 0 }.geometry(F32, Pass::Forward, 3, 1).threads, 0);
    }

    #[test]
    fn a_block_has_the_warps_that_its_sequence_needs() {
        let config = Config { max_threads_per_block: 128, ..Config::default() };
        for (seq_len, threads) in
            [(0, 32), (1, 32), (256, 32), (257, 64), (1023, 128), (1024, 128), (u64::MAX, 128)]
        {
            let geometry = KernelChoice::Pipe(config).geometry(F32, Pass::Forward, 3, seq_len);
            assert_eq!((geometry.blocks, geometry.threads), (3, threads), "{seq_len}");
        }
        let staged = KernelChoice::Pipe(Config { memcode: 2, ..config });
        assert_eq!(
            staged.geometry(ElementType::F64, Pass::Forward, 1, 300).shared_bytes,
            64 * 8 * 8 + 16
        );
        assert_eq!(KernelChoice::Pipe(config).geometry(F32, Pass::Forward, 1, 300).shared_bytes, 0);
    }

    #[test]
    fn directions_share_an_entry_where_they_are_an_argument() {
        let choice = KernelChoice::Tile(Config::default());
        let entries = choice.program(ElementType::Bf16).entries;
        assert_eq!(
            entries,
            ["linrec_tile_fwd<bf16, 8, 64, 0, 3>", "linrec_tile_bwd<bf16, 8, 64, 0, 3>"]
        );
        assert_eq!(KernelChoice::default().program(F32).entries.len(), 4);
    }
}
