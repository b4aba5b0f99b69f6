//! The catalogue of the CUDA kernels: their sources, their shipped PTX, and how kernels are named.
//!
//! A [`KernelChoice`] is a kernel with its launch. With an [`ElementType`] it becomes a
//! [`Program`]: a source file, its headers, and the template instances to compile. For some
//! programs the PTX is shipped, so that they run without a compiler, on a GPU and in the emulator
//! alike. Every other program is compiled by `device::nvrtc` when it is first used.
//!
//! ```
//! use linrec::Direction;
//! use linrec::kernels::{ElementType, KernelChoice, Pass, shipped_as};
//!
//! let choice: KernelChoice = "ref:64".parse()?;
//! let program = choice.program(ElementType::F32);
//! let ptx = shipped_as(&program).expect("the reference kernel is shipped for f32");
//!
//! let entry = choice.entry(ElementType::F32, Pass::Forward, Direction::Reverse);
//! assert_eq!(entry, "linrec_ref_fwd<float, true>");
//! assert!(ptx.text().contains(ptx.symbol(&entry).unwrap()));
//! # Ok::<(), linrec::Error>(())
//! ```
//!
//! # How a kernel is written
//!
//! A kernel has one spelling, on command lines, in tables and files and in the names of engines.
//! [`KernelChoice`] writes it (`Display`) and reads it (`FromStr`):
//!
//! ```text
//! kernel = family [ ":" size { "x" size } { ":" option } ]
//! ```
//!
//! [`KernelChoice`] lists the sizes and options of each family; an option with its default value is
//! not written.
//!
//! Examples are `ref:64`, `tile:4x256:0:2`, `pipe:8x64:1`, `rows:16x2x32:w`, `wide:4x256:a1:w`. The
//! last sizes may be left out, and are then the family's defaults: `pipe` is `pipe:8x64:0`. An
//! engine is a kernel at a device, `pipe:8x64:0@simt`; a file name has dashes for colons and ends
//! with the element type, `pipe-8x64-0-f32.ptx`.
//!
//! ```
//! use linrec::kernels::{KernelChoice, Memcode, PipeConfig};
//!
//! let pipe = KernelChoice::Pipe(PipeConfig { memcode: Memcode::Shared, ..PipeConfig::DEFAULT });
//! assert_eq!(pipe.to_string(), "pipe:8x64:1");
//! assert_eq!("pipe:8x64:1".parse(), Ok(pipe));
//! assert_eq!("wide".parse::<KernelChoice>()?.to_string(), "wide:2x128");
//! # Ok::<(), linrec::Error>(())
//! ```
//!
//! # The fastest kernel
//!
//! [`KernelChoice::best`] looks a shape up in a table of measurements on an H200 ([`Tuned`]).
//!
//! # Arguments
//!
//! Every kernel that computes the recurrence takes the same arguments, whatever its algorithm:
//! arrays `[num_seqs, seq_len]` row after row, states `[num_seqs]` of the type of computation,
//! which may be null, and two 64-bit numbers.
//!
//! - [`Pass::Forward`]: `inputs, coeffs, outputs, initial, final_state, num_seqs, seq_len`;
//! - [`Pass::Backward`]:
//!   `d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial, num_seqs, seq_len`;
//! - after these, if [`KernelChoice::takes_direction`], a 32-bit `reverse`: 0 or 1; or, if
//!   sequences are [shared out](SharedOut), a 32-bit `tile_vectors`, a pointer to the workspace
//!   and, for a kernel with a block for each tile, a 32-bit `deal`: 1 if blocks take tiles in the
//!   order in which they start, 0 if all are on the device at once;
//! - and last, if [`KernelChoice::takes_mail`], two pointers to mailboxes, which are null if
//!   sequences do not continue on other devices, and a 32-bit epoch
//!   ([`Way::Mailboxes`](crate::device::Way::Mailboxes)).

mod archive;
mod best;
mod choice;
mod element_type;
mod families;
#[cfg(feature = "studies")]
mod mistakes;
mod pass;
mod shipped;

pub use archive::{modules, unpack};
pub use best::{Query, Tuned};
pub use element_type::ElementType;
pub use families::*;
#[cfg(feature = "studies")]
pub use mistakes::{Finder, Mistake};
pub use pass::{Geometry, Pass, SharedOut};
pub use shipped::{program, shipped, shipped_as, source, sources};

pub use nvrtc::{Hash, Header, OPTIONS, Program, Ptx};
