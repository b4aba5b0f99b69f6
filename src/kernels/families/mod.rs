//! The families of kernels: what tells one from the others, and the one list of them.
//!
//! A family is a source, `linrec_NAME.cu`, with everything that can be chosen when it is compiled
//! and launched. Its file here says all that the rest of the library, its tests and the tuner ask
//! of it; nothing outside of this folder knows a family by its name.

mod once;
mod pipe;
mod reference;
mod rows;
mod spelling;
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
use spelling::Parts;

/// One configuration of a family's kernel; what has no `self` is about the family.
trait Family: fmt::Debug {
    /// The family's name: `linrec_NAME.cu` is its source, `linrec_NAME_fwd` and `linrec_NAME_bwd`
    /// are its kernels.
    fn name() -> &'static str
    where
        Self: Sized;

    /// The configuration that is spelled with these sizes and options; whatever is left over is
    /// refused.
    fn parse(parts: &mut Parts) -> Option<Self>
    where
        Self: Sized;

    /// The configuration whose [`arguments`](Family::arguments) for a pass these are, in either
    /// direction. What is no matter of compilation is as in the default.
    fn from_arguments(pass: Pass, arguments: &[&str]) -> Option<Self>
    where
        Self: Sized;

    /// Every configuration that a tuner may try, in a fixed order.
    fn candidates(element: ElementType) -> Vec<Self>
    where
        Self: Sized;

    /// What follows the name in the spelling, with all sizes and those options that are not the
    /// usual ones.
    fn spelled(&self) -> String;

    /// What follows the name in the name of the PTX file: what is compiled, and not how it is
    /// launched.
    fn compiled(&self) -> String {
        format!("-{}", self.spelled().replace(':', "-"))
    }

    /// The template arguments after the element type.
    fn arguments(&self, pass: Pass, direction: Direction) -> Vec<String>;

    /// Whether the direction is the kernels' last argument, and no matter of the template.
    fn takes_direction(&self) -> bool {
        true
    }

    /// Whether its last arguments are mailboxes, by which sequences go on on other devices.
    fn takes_mail(&self) -> bool {
        false
    }

    /// The computations that there are kernels for.
    fn passes(&self) -> &'static [Pass] {
        &Pass::ALL
    }

    /// The launch over `num_seqs` sequences of `seq_len` elements.
    fn geometry(&self, element: ElementType, pass: Pass, num_seqs: u64, seq_len: u64) -> Geometry;

    /// The longest sequence that it takes; `None` if it takes any.
    fn max_len(&self, _element: ElementType) -> Option<u64> {
        None
    }

    /// What a sequence's length has to be a multiple of.
    fn multiple_of(&self, _element: ElementType) -> u64 {
        1
    }

    /// Steps that are computed at a time; `None` if one after the other.
    fn tile(&self, element: ElementType) -> Option<u64>;

    /// Whether a tuner should measure it at a length that it takes: it is not the same launch as a
    /// smaller one, and neither far too large nor far too small.
    fn is_worth(&self, element: ElementType, seq_len: u64) -> bool;
}

/// The public enum over the families, and what has to name each of them.
macro_rules! families {
    ($($(#[$doc:meta])* $variant:ident($config:ident),)*) => {
        /// A kernel that computes the recurrence, with everything that can be chosen about it.
        ///
        /// It is written, and read again, as the [module](crate::kernels) says: `pipe:8x64:0`. The
        /// order is that of the families, and within one that of sizes.
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

        /// How many families there are.
        const COUNT: usize = [$(stringify!($variant)),*].len();

        impl KernelChoice {
            /// The names of all families, the reference first.
            pub fn families() -> [&'static str; COUNT] {
                [$($config::name()),*]
            }

            /// Its family's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(KernelChoice::$variant(_) => $config::name(),)*
                }
            }

            /// Every configuration of a family that a tuner may try, in a fixed order; none of a
            /// family that there is not.
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
    /// early stage, `tile:4x256:0:2`, also that of the [`Algocode`].
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
    /// told so many waves ahead, `:f2` for so many more in flight, and `:w` for rows of whole
    /// vectors.
    Waves(WavesConfig),
    /// `linrec_once.cu`: a block for each tile, and all at once. `once:4x512` has the vectors of a
    /// thread and the threads of a block, with `:w` for rows of whole vectors.
    Once(OnceConfig),
}

/// The reference kernel with 64 threads in a block.
impl Default for KernelChoice {
    fn default() -> Self {
        KernelChoice::Ref(RefConfig::DEFAULT)
    }
}

/// What is asked of a choice, whatever its family.
impl KernelChoice {
    /// The longest sequence that the kernel takes; `None` if it takes any.
    pub fn max_len(&self, element: ElementType) -> Option<u64> {
        self.family().max_len(element)
    }

    /// What a sequence's length has to be a multiple of: 1, but for rows of whole vectors. Where it
    /// is not 1, arrays have to begin at a multiple of 16 bytes.
    pub fn multiple_of(&self, element: ElementType) -> u64 {
        self.family().multiple_of(element)
    }

    /// How many steps of a sequence are computed at a time, and combined with what came before;
    /// `None` if one after the other, with one rounding a step.
    pub fn tile(&self, element: ElementType) -> Option<u64> {
        self.family().tile(element)
    }

    /// Whether it takes sequences of a length.
    pub fn takes(&self, element: ElementType, seq_len: u64) -> bool {
        let fits = self.max_len(element).is_none_or(|most| seq_len <= most);
        fits && seq_len.is_multiple_of(self.multiple_of(element))
    }

    /// Whether a tuner should measure it at a length: it takes such sequences, is not the same
    /// launch as a smaller one, and neither far too large nor far too small.
    pub fn is_worth(&self, element: ElementType, seq_len: u64) -> bool {
        self.takes(element, seq_len) && self.family().is_worth(element, seq_len)
    }

    /// The computations that it has: both, but for the early stages of a scan.
    pub fn passes(&self) -> &'static [Pass] {
        self.family().passes()
    }

    /// Whether the direction is the kernels' last argument, 0 or 1, and no matter of the entry.
    pub fn takes_direction(&self) -> bool {
        self.family().takes_direction()
    }

    /// Whether the kernels' last arguments are the mailboxes by which a state comes from another
    /// device and goes on to the next one, `from` and `to`, either of which may be null, and a
    /// 32-bit epoch.
    pub fn takes_mail(&self) -> bool {
        self.family().takes_mail()
    }

    /// The launch of a pass over `num_seqs` sequences of `seq_len` elements of `element`; of no
    /// blocks if there are no sequences.
    ///
    /// What no launch can be, a block of zero threads say, is passed on as it is: the launch
    /// refuses it.
    pub fn geometry(
        &self,
        element: ElementType,
        pass: Pass,
        num_seqs: u64,
        seq_len: u64,
    ) -> Geometry {
        self.family().geometry(element, pass, num_seqs, seq_len)
    }

    /// The template arguments of its entries after the element type.
    pub(super) fn arguments(&self, pass: Pass, direction: Direction) -> Vec<String> {
        self.family().arguments(pass, direction)
    }

    /// The kernel of a family with these template arguments after the element type.
    pub(super) fn of_arguments(
        family: &str,
        pass: Pass,
        arguments: &[&str],
    ) -> Option<KernelChoice> {
        KernelChoice::from_arguments(family, pass, arguments)
    }

    /// The name of the file in `kernels/ptx`, without its ending, if the kernel is shipped: its
    /// spelling with dashes, as far as it is a matter of compilation, and the element type.
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

/// The spelling: see the [module](crate::kernels).
impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.name(), self.family().spelled()))
    }
}

/// Reads what [`Display`](fmt::Display) writes; sizes and options that are left out are the usual
/// ones.
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

/// Elements of so many 16-byte vectors.
fn elements(element: ElementType, vectors: u32) -> u64 {
    u64::from(vectors) * 16 / element.bytes() as u64
}

/// Whether rows consist of whole vectors: both, but for an element of 16 bytes, which is a vector
/// of its own.
fn wholes(element: ElementType) -> &'static [bool] {
    if element.bytes() < 16 { &[false, true] } else { &[false] }
}

/// `true` or `false`, as a template argument has it.
fn truth(text: &str) -> Option<bool> {
    text.parse().ok()
}
