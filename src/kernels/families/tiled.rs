//! The options of kernels with one block per sequence: `tile`, for one tile, and `pipe`, for many.
//!
//! Both families have the same four options under the same names, so [`Tiled`] implements
//! everything once, and the macro `tiled_family` makes a public configuration from it. The launch
//! has as few warps as hold a sequence. The tests at the end of this file try the launch and the
//! codes; `tests/suite/spelling.rs` tries the spelling.

use std::fmt;

use super::family::{Parts, number};
use crate::kernels::{ElementType, Geometry, Pass};

/// The way of a tile from memory and back: the template parameter `kMemcode`. It is written as the
/// number of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Memcode {
    /// Blocked: each thread reads and writes its own elements, which are consecutive in memory.
    #[default]
    Direct = 0,
    /// Striped: consecutive threads move consecutive elements, through shared memory.
    Shared = 1,
    /// Through shared memory in 16-byte vectors.
    SharedVectors = 2,
}

/// The last level of the scan of a tile: the template parameter `kAlgocode`. It is written as the
/// number of the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Algocode {
    /// Inputs are copied.
    Copy = 0,
    /// Each thread scans its own elements.
    Thread = 1,
    /// The threads of a warp are combined.
    Warp = 2,
    /// The warps of the block are combined, which completes the recurrence.
    #[default]
    Block = 3,
}

macro_rules! code {
    ($code:ident, $($stage:ident),*) => {
        impl $code {
            /// All codes, in the order of their numbers.
            pub const ALL: [$code; [$(stringify!($stage)),*].len()] = [$($code::$stage),*];

            /// Returns the number of the template parameter.
            pub const fn code(self) -> u32 {
                self as u32
            }

            /// Returns the code with a number, if there is one.
            pub fn from_code(code: u32) -> Option<$code> {
                $code::ALL.into_iter().find(|one| one.code() == code)
            }
        }

        impl fmt::Display for $code {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.code().fmt(f)
            }
        }
    };
}

code!(Memcode, Direct, Shared, SharedVectors);
code!(Algocode, Copy, Thread, Warp, Block);

/// The options of either family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tiled {
    pub(super) elems: u32,
    pub(super) threads: u32,
    pub(super) memcode: Memcode,
    pub(super) algocode: Algocode,
}

impl Tiled {
    /// Takes the elements of a thread and the threads of a block, then the memcode and the
    /// algocode.
    pub(super) fn parse(parts: &mut Parts, usual: Tiled) -> Option<Tiled> {
        let [elems, threads] = parts.sizes([usual.elems, usual.threads])?;
        let memcode = parts.code(Memcode::from_code)?;
        let algocode = if memcode.is_some() { parts.code(Algocode::from_code)? } else { None };
        let (memcode, algocode) = (memcode.unwrap_or_default(), algocode.unwrap_or_default());
        Some(Tiled { elems, threads, memcode, algocode })
    }

    pub(super) fn spelled(&self) -> String {
        let Tiled { elems, threads, memcode, algocode } = self;
        let stage = match algocode {
            Algocode::Block => String::new(),
            stage => format!(":{stage}"),
        };
        format!("{elems}x{threads}:{memcode}{stage}")
    }

    pub(super) fn from_arguments(arguments: &[&str]) -> Option<Tiled> {
        let numbers: Option<Vec<u32>> = arguments.iter().map(|text| number(text)).collect();
        let [elems, threads, memcode, algocode] = numbers?[..] else { return None };
        let (memcode, algocode) = (Memcode::from_code(memcode)?, Algocode::from_code(algocode)?);
        Some(Tiled { elems, threads, memcode, algocode })
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let Tiled { elems, threads, memcode, algocode } = self;
        [*elems, *threads, memcode.code(), algocode.code()].map(|number| number.to_string()).into()
    }

    // ANCHOR: all
    pub(super) fn candidates() -> impl Iterator<Item = Tiled> {
        let sizes = [4, 8, 16, 32]
            .into_iter()
            .flat_map(|elems| [32, 64, 128, 256, 512, 1024].map(move |threads| (elems, threads)));
        sizes.flat_map(|(elems, threads)| {
            let algocode = Algocode::Block;
            Memcode::ALL.map(|memcode| Tiled { elems, threads, memcode, algocode })
        })
    }
    // ANCHOR_END: all

    /// The early stages have no backward pass.
    pub(super) fn passes(&self) -> &'static [Pass] {
        match self.algocode {
            Algocode::Block => &Pass::ALL,
            _ => &[Pass::Forward],
        }
    }

    /// Returns the number of elements of the largest tile.
    pub(super) const fn max_tile(&self) -> u64 {
        self.elems as u64 * self.threads as u64
    }

    /// Returns the threads of the fewest whole warps that hold a sequence, and at most all threads.
    fn threads_for(&self, seq_len: u64) -> u32 {
        let warps = seq_len.div_ceil(u64::from(self.elems.max(1)) * 32).max(1);
        u32::try_from(32 * warps.min(1 << 20)).unwrap_or(u32::MAX).min(self.threads)
    }

    pub(super) fn geometry(&self, element: ElementType, num_seqs: u64, seq_len: u64) -> Geometry {
        let threads = self.threads_for(seq_len);
        let tile = u64::from(self.elems) * u64::from(threads);
        // The tile, and the bytes by which it may be shifted to be aligned.
        let staging = tile.saturating_mul(element.bytes() as u64).saturating_add(16);
        let staging = if self.memcode == Memcode::Direct { 0 } else { staging };
        let shared_bytes = u32::try_from(staging).unwrap_or(u32::MAX);
        Geometry { blocks: num_seqs, threads, shared_bytes, shared_out: None }
    }

    // ANCHOR: worth
    /// With half of the threads the launch would be the same.
    pub(super) fn is_worth(&self, seq_len: u64) -> bool {
        self.threads == 32 || self.max_tile() / 2 < seq_len
    }
    // ANCHOR_END: worth
}

/// Defines a family whose configuration is [`Tiled`]: with the name of the configuration and of the
/// kernels, the default elements and threads, and the longest sequence.
macro_rules! tiled_family {
    (
        $(#[$about:meta])* $Config:ident is $name:literal,
        $(#[$usual:meta])* usually $elems:literal x $threads:literal,
        up to $max_len:expr
    ) => {
        $(#[$about])*
        ///
        /// The fields have the names of the template parameters `kMaxElemsPerThread`,
        /// `kMaxThreadsPerBlock`, `kMemcode` and `kAlgocode`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $Config {
            /// The most elements that a thread holds in registers.
            pub max_elems_per_thread: u32,
            /// The most threads of a block: a multiple of 32 up to 1024. A short sequence takes
            /// fewer.
            pub max_threads_per_block: u32,
            /// The way of a tile from memory.
            pub memcode: Memcode,
            /// The last level of the scan.
            pub algocode: Algocode,
        }

        impl $Config {
            $(#[$usual])*
            pub const DEFAULT: $Config = $Config {
                max_elems_per_thread: $elems,
                max_threads_per_block: $threads,
                memcode: Memcode::Direct,
                algocode: Algocode::Block,
            };

            /// Returns the number of elements of the largest tile.
            pub const fn max_tile(&self) -> u64 {
                self.tiled().max_tile()
            }

            const fn tiled(&self) -> Tiled {
                let (elems, threads) = (self.max_elems_per_thread, self.max_threads_per_block);
                Tiled { elems, threads, memcode: self.memcode, algocode: self.algocode }
            }
        }

        impl From<Tiled> for $Config {
            fn from(Tiled { elems, threads, memcode, algocode }: Tiled) -> $Config {
                let (max_elems_per_thread, max_threads_per_block) = (elems, threads);
                $Config { max_elems_per_thread, max_threads_per_block, memcode, algocode }
            }
        }

        impl Default for $Config {
            fn default() -> Self {
                $Config::DEFAULT
            }
        }

        impl Family for $Config {
            fn name() -> &'static str {
                $name
            }

            fn parse(parts: &mut Parts) -> Option<Self> {
                Tiled::parse(parts, $Config::DEFAULT.tiled()).map($Config::from)
            }

            fn from_arguments(_: Pass, arguments: &[&str]) -> Option<Self> {
                Tiled::from_arguments(arguments).map($Config::from)
            }

            fn candidates(_: ElementType) -> Vec<Self> {
                Tiled::candidates().map($Config::from).collect()
            }

            fn spelled(&self) -> String {
                self.tiled().spelled()
            }

            fn arguments(&self, _: Pass, _: Direction) -> Vec<String> {
                self.tiled().arguments()
            }

            fn passes(&self) -> &'static [Pass] {
                self.tiled().passes()
            }

            fn geometry(
                &self,
                element: ElementType,
                _: Pass,
                num_seqs: u64,
                seq_len: u64,
            ) -> Geometry {
                self.tiled().geometry(element, num_seqs, seq_len)
            }

            fn max_len(&self, _: ElementType) -> Option<u64> {
                let max_len: fn(&Self) -> Option<u64> = $max_len;
                max_len(self)
            }

            fn tile(&self, _: ElementType) -> Option<u64> {
                Some(self.max_tile())
            }

            fn is_worth(&self, _: ElementType, seq_len: u64) -> bool {
                self.tiled().is_worth(seq_len)
            }
        }
    };
}
pub(super) use tiled_family;

#[cfg(test)]
mod tests {
    use super::*;

    const F32: ElementType = ElementType::F32;

    #[test]
    fn a_block_has_the_warps_that_its_sequence_needs() {
        let (memcode, algocode) = (Memcode::Direct, Algocode::Block);
        let plain = Tiled { elems: 8, threads: 128, memcode, algocode };
        for (seq_len, threads) in
            [(0, 32), (1, 32), (256, 32), (257, 64), (1023, 128), (1024, 128), (u64::MAX, 128)]
        {
            let geometry = plain.geometry(F32, 3, seq_len);
            assert_eq!((geometry.blocks, geometry.threads), (3, threads), "{seq_len}");
        }
        let staged = Tiled { memcode: Memcode::SharedVectors, ..plain };
        assert_eq!(staged.geometry(ElementType::F64, 1, 300).shared_bytes, 64 * 8 * 8 + 16);
        assert_eq!(plain.geometry(F32, 1, 300).shared_bytes, 0);
    }

    #[test]
    fn codes_are_the_template_parameters_numbers() {
        for (place, memcode) in Memcode::ALL.into_iter().enumerate() {
            assert_eq!(memcode.code(), place as u32);
            assert_eq!(Memcode::from_code(memcode.code()), Some(memcode));
        }
        for (place, algocode) in Algocode::ALL.into_iter().enumerate() {
            assert_eq!(algocode.to_string(), place.to_string());
            assert_eq!(Algocode::from_code(algocode.code()), Some(algocode));
        }
        assert_eq!((Memcode::from_code(3), Algocode::from_code(4)), (None, None));
    }
}
