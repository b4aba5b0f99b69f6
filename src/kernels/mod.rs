//! The catalogue of the CUDA kernels: their sources, the PTX that is shipped, and how to ask for one.
//!
//! A [`KernelChoice`] says which kernel and with which launch; together with an [`ElementType`] it
//! is a [`Program`]: a source file, its headers, and the template instances to compile. For some
//! programs the PTX is shipped, so that they run without a compiler, on a GPU and in the emulator
//! alike. Every other one is compiled when it is needed, by `device::nvrtc`.
//!
//! ```
//! use linrec::Direction;
//! use linrec::kernels::{ElementType, KernelChoice, Pass};
//!
//! let choice = KernelChoice::Ref { threads: 64 };
//! let program = choice.program(ElementType::F32);
//! let ptx = program.shipped().expect("the reference kernel is shipped for f32");
//!
//! let entry = choice.entry(ElementType::F32, Pass::Forward, Direction::Reverse);
//! assert_eq!(entry, "linrec_ref_fwd<float, true>");
//! assert!(ptx.text().contains(ptx.symbol(&entry).unwrap()));
//! ```
//!
//! # Which one
//!
//! [`KernelChoice::best`] looks a shape up in a table of measurements ([`Tuned`]): what was fastest on an H200.
//!
//! # Arguments
//!
//! Every kernel that computes the recurrence takes the same arguments, whatever its algorithm:
//! arrays `[num_seqs, seq_len]` row after row, states `[num_seqs]` of the type of computation, which
//! may be null, and two 64-bit numbers.
//!
//! - [`Pass::Forward`]: `inputs, coeffs, outputs, initial, final_state, num_seqs, seq_len`;
//! - [`Pass::Backward`]: `d_outputs, coeffs, outputs, initial, d_inputs, d_coeffs, d_initial, num_seqs,
//!   seq_len`;
//! - after these, if [`KernelChoice::takes_direction`], a 32-bit `reverse`: 0 or 1.

mod best;
mod choice;
mod element_type;
mod hash;
mod name;
mod program;
mod ptx;
mod shipped;

pub use best::Tuned;
pub use choice::{Config, Geometry, KernelChoice, Pass, RowsConfig, WideConfig};
pub use element_type::ElementType;
pub use hash::Hash;
pub use program::{Header, OPTIONS, Program};
pub use ptx::Ptx;
pub use shipped::{program, shipped, source, sources};
