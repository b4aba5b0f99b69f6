//! The families of kernels, and the only list of them.
//!
//! A family is a source, `linrec_NAME.cu`, with all options of its compilation and launch. Each
//! family has a file here, with a configuration that implements [`Family`]: the spelling, the
//! entries, the launch and the limits. The rest of the library, its tests and the tuner use this
//! trait through [`KernelChoice`]; nothing outside of this folder names a family.
//! `tests/suite/spelling.rs` and `tests/suite/additions.rs` test the list as a whole.

mod family;
mod once;
mod pipe;
mod reference;
mod rows;
mod tile;
mod tiled;
mod waves;
mod wide;

use std::fmt;

pub use once::OnceConfig;
pub use pipe::PipeConfig;
pub use reference::RefConfig;
pub use rows::RowsConfig;
pub use tile::TileConfig;
pub use tiled::{Algocode, Memcode};
pub use waves::WavesConfig;
pub use wide::WideConfig;

use super::{ElementType, Geometry, Pass};
use crate::Direction;
use family::{Family, Parts};

/// The public enum over the families, and the functions that name each of them.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident($config:ident),)*) => {
        /// A kernel that computes the recurrence, with all its options.
        ///
        /// It is written and read as `pipe:8x64:0`: see the [module](crate::kernels). The order is
        /// by family, and within a family by sizes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum KernelChoice {
            $($(#[$doc])* $variant($config),)*
        }

        $(impl From<$config> for KernelChoice {
            fn from(config: $config) -> KernelChoice {
                KernelChoice::$variant(config)
            }
        })*

        /// The number of families.
        const COUNT: usize = [$(stringify!($variant)),*].len();

        impl KernelChoice {
            /// Returns the names of all families, the reference first.
            pub fn families() -> [&'static str; COUNT] {
                [$($config::name()),*]
            }

            /// Returns its family's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(KernelChoice::$variant(_) => $config::name(),)*
                }
            }

            /// Returns every configuration of a family that a tuner may try, in a fixed order; none
            /// for an unknown family.
            pub fn candidates(family: &str, element: ElementType) -> Vec<KernelChoice> {
                match family {
                    $(name if name == $config::name() => {
                        $config::candidates(element).into_iter().map(KernelChoice::$variant).collect()
                    })*
                    _ => Vec::new(),
                }
            }

            fn family(&self) -> &dyn Family {
                match self {
                    $(KernelChoice::$variant(config) => config,)*
                }
            }

            fn parse(family: &str, parts: &mut Parts) -> Option<KernelChoice> {
                match family {
                    $(name if name == $config::name() => {
                        $config::parse(parts).map(KernelChoice::$variant)
                    })*
                    _ => None,
                }
            }

            fn from_arguments(family: &str, pass: Pass, arguments: &[&str]) -> Option<KernelChoice> {
                match family {
                    $(name if name == $config::name() => {
                        $config::from_arguments(pass, arguments).map(KernelChoice::$variant)
                    })*
                    _ => None,
                }
            }
        }
    };
}

families! {
    /// `linrec_ref.cu`: one thread per sequence. `ref:64` has the threads of a block.
    Ref(RefConfig),
    /// `linrec_tile.cu`: one block per sequence, which must fit into its registers. `tile:4x256:0`
    /// has the elements of a thread, the threads of a block and the number of the [`Memcode`]; an
    /// early stage, `tile:4x256:0:2`, also has the number of the [`Algocode`].
    Tile(TileConfig),
    /// `linrec_pipe.cu`: one block per sequence, tile by tile. `pipe:8x64:0` as for tile.
    Pipe(PipeConfig),
    /// `linrec_rows.cu`: some lanes of a warp for each sequence, which must fit into their
    /// registers. `rows:16x2x32` has the lanes of a sequence, the vectors of a lane and the threads
    /// of a block, with `:w` for rows of whole vectors.
    Rows(RowsConfig),
    /// `linrec_wide.cu`: one block per sequence, tile by tile in 16-byte vectors. `wide:4x256` has
    /// the vectors of a thread and the threads of a block, with `:a1` for a tile ahead and `:w` for
    /// rows of whole vectors.
    Wide(WideConfig),
    /// `linrec_waves.cu`: all blocks share each sequence, wave by wave. `waves:4x288` has the
    /// vectors of a thread and the threads of a block that compute, with `:a4` for tiles that are
    /// published four waves ahead, `:f2` for two more tiles in flight, and `:w` for rows of whole
    /// vectors.
    Waves(WavesConfig),
    /// `linrec_once.cu`: a block for each tile, all of which run at once. `once:4x512` has the
    /// vectors of a thread and the threads of a block, with `:w` for rows of whole vectors.
    Once(OnceConfig),
}

/// The reference kernel with 64 threads in a block.
impl Default for KernelChoice {
    fn default() -> Self {
        KernelChoice::Ref(RefConfig::DEFAULT)
    }
}

/// The properties of a choice, whatever its family.
impl KernelChoice {
    /// The longest sequence that the kernel takes; `None` if it takes any.
    pub fn max_len(&self, element: ElementType) -> Option<u64> {
        self.family().max_len(element)
    }

    /// Returns the number that the length of a sequence must be a multiple of: 1, except for rows
    /// of whole vectors. If it is not 1, arrays must begin at a multiple of 16 bytes.
    pub fn multiple_of(&self, element: ElementType) -> u64 {
        self.family().multiple_of(element)
    }

    /// Returns the number of steps of a sequence that are computed at a time and then combined with
    /// the state before them; `None` if steps are computed one after the other, with one rounding
    /// each.
    pub fn tile(&self, element: ElementType) -> Option<u64> {
        self.family().tile(element)
    }

    /// Returns whether it takes sequences of a length.
    pub fn takes(&self, element: ElementType, seq_len: u64) -> bool {
        let fits = self.max_len(element).is_none_or(|most| seq_len <= most);
        fits && seq_len.is_multiple_of(self.multiple_of(element))
    }

    /// Returns whether a tuner should measure it at a length: it takes such sequences, the launch
    /// differs from that of a smaller configuration, and is neither far too large nor far too
    /// small.
    pub fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        self.takes(element, seq_len) && self.family().is_worth(element, seq_len)
    }

    /// Returns its passes: both, except for the early stages of a scan.
    pub fn passes(&self) -> &'static [Pass] {
        self.family().passes()
    }

    /// Returns whether the direction is the kernels' last argument, 0 or 1, and not a part of the
    /// entry.
    pub fn takes_direction(&self) -> bool {
        self.family().takes_direction()
    }

    /// Returns whether the kernels' last arguments are two mailboxes and a 32-bit epoch. By `from`
    /// a state comes from another device, by `to` it goes to the next one; either may be null.
    pub fn takes_mail(&self) -> bool {
        self.family().takes_mail()
    }

    /// Returns the launch of a pass over `num_seqs` sequences of `seq_len` elements of `element`;
    /// it has no blocks if there are no sequences.
    ///
    /// An impossible size, such as a block of zero threads, is returned as it is: the launch is
    /// then an error.
    pub fn geometry(
        &self,
        element: ElementType,
        pass: Pass,
        num_seqs: u64,
        seq_len: u64,
    ) -> Geometry {
        self.family().geometry(element, pass, num_seqs, seq_len)
    }

    /// Returns the template arguments of its entries after the element type.
    pub(super) fn arguments(&self, pass: Pass, direction: Direction) -> Vec<String> {
        self.family().arguments(pass, direction)
    }

    /// Returns the kernel of a family with these template arguments after the element type.
    pub(super) fn of_arguments(
        family: &str,
        pass: Pass,
        arguments: &[&str],
    ) -> Option<KernelChoice> {
        KernelChoice::from_arguments(family, pass, arguments)
    }

    /// Returns the name of its module in the archives of `kernels/ptx`, if the kernel is shipped:
    /// the options of its compilation, with dashes, and the element type.
    ///
    /// ```
    /// use linrec::kernels::{ElementType, KernelChoice};
    ///
    /// let choice: KernelChoice = "pipe:8x64:1".parse()?;
    /// assert_eq!(choice.file_name(ElementType::F32), "pipe-8x64-1-f32");
    /// assert_eq!(KernelChoice::default().file_name(ElementType::F64), "ref-f64");
    /// # Ok::<(), linrec::Error>(())
    /// ```
    pub fn file_name(&self, element: ElementType) -> String {
        format!("{}{}-{element}", self.name(), self.family().compiled())
    }
}

/// Writes the spelling: see the [module](crate::kernels).
impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.name(), self.family().spelled()))
    }
}

/// Reads what [`Display`](fmt::Display) writes; sizes and options that are left out have their
/// defaults.
impl std::str::FromStr for KernelChoice {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<KernelChoice, crate::Error> {
        let (family, rest) = match text.split_once(':') {
            Some((family, rest)) => (family, Some(rest)),
            None => (text, None),
        };
        let read = || {
            let mut parts = Parts::read(rest)?;
            KernelChoice::parse(family, &mut parts).filter(|_| parts.are_used_up())
        };
        read().ok_or_else(|| {
            let examples = KernelChoice::families().map(|name| {
                let usual = KernelChoice::parse(name, &mut Parts::default());
                usual.map_or_else(String::new, |usual| usual.to_string())
            });
            crate::Error::Unsupported {
                engine: String::from("the catalogue of kernels"),
                what: format!("`{text}`; write {} or the like", examples.join(", ")),
            }
        })
    }
}
