//! A PTX emulator: CUDA kernels run without a GPU, with the same bits as on one.
//!
//! [`Module::parse`] decodes PTX and refuses what it does not know. An unknown statement inside a
//! kernel refuses only that kernel; the others run. A [`Launch`] on a [`Memory`] runs a kernel's
//! blocks, each instruction in 32 lanes. It returns [`Counters`], or a [`Report`] that names what
//! the kernel does wrong, which threads do it, and in which line.
//!
//! ```
//! use simt::{Launch, Memory, Module};
//!
//! let module = Module::parse(
//!     "
//!     .version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry double_it(.param .u64 values)
//!     {
//!         .reg .b32 %r<2>;
//!         .reg .f32 %f<2>;
//!         .reg .b64 %rd<4>;
//!         ld.param.u64 %rd1, [values];
//!         mov.u32 %r1, %tid.x;
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.s64 %rd3, %rd1, %rd2;
//!         ld.global.f32 %f1, [%rd3];
//!         add.rn.f32 %f1, %f1, %f1;
//!         st.global.f32 [%rd3], %f1;
//!         ret;
//!     }",
//! )?;
//! let kernel = module.kernel("double_it").expect("it is there");
//!
//! let memory = Memory::new(1 << 20);
//! let values = memory.allocate("values", 4 * 32)?;
//! memory.write(values, &1.5_f32.to_le_bytes().repeat(32))?;
//!
//! let arguments = values.to_le_bytes();
//! let launch = Launch::new(kernel, [1, 1, 1], [32, 1, 1], &arguments).prepare(&memory)?;
//! let counters = launch.run(0..1)?;
//! assert_eq!(counters.instructions, 8);
//! assert_eq!(counters.sites[0].sectors_per_request(), 4.0);
//!
//! let mut result = [0; 4];
//! memory.read(values + 4 * 31, &mut result)?;
//! assert_eq!(f32::from_le_bytes(result), 3.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Stepper`] goes through a launch one instruction at a time, forward and backward.
//!
//! [`Declarations`] lists the kernels and parameters of any PTX, even of PTX that cannot run.
//!
//! Nothing in a launch depends on time: `%clock`, `%globaltimer` and the like count the
//! instructions that a warp has executed. A kernel can wait for them and compare them within a
//! warp, but they measure nothing.
//!
//! Textures ([`Memory::texture`]) and surfaces ([`Memory::surface`]) use buffers as their storage.
//! A fetch is counted as a request, with the bytes of its texels and without sectors, since the
//! layout of arrays on a GPU is opaque.
//!
//! The source has layers. Each layer is a folder that knows only the layers below it:
//!
//! 1. `stepper` goes through a launch one instruction at a time;
//! 2. `launch` checks a launch and runs its blocks;
//! 3. `machine` executes instructions: `state`, `arithmetic`, `access`, then warps and blocks;
//! 4. `parse` turns PTX into kernels: `source`, `body`, `decode`, then kernels and modules;
//! 5. `memory` holds global and shared memory, textures, and the order of accesses;
//! 6. `report` holds reports, counters, and the bounds of a launch;
//! 7. `isa` defines the instructions, in one table.
//!
//! The crate is plain safe Rust without dependencies, threads, clocks or files. Its caller provides
//! everything that it needs from outside.

/// Returns the variant of an enum that a name selects, or `None` if the table lacks the name.
macro_rules! named {
    ($name:expr, $type:ident { $($known:pat => $variant:ident $(($value:expr))?),* $(,)? }) => {
        match $name {
            $($known => Some($type::$variant $(($value))?),)*
            _ => None,
        }
    };
}

mod isa;
mod launch;
mod machine;
mod memory;
mod parse;
mod report;
pub mod special;
mod stepper;

#[doc(hidden)]
pub use isa::instructions;
pub use isa::{Access, Class, Kernel, Param, SharedVariable};
pub use launch::{Prepared, Variable};
pub use machine::Launch;
pub use memory::global::{Memory, MemoryError};
pub use memory::texture::{AddressMode, Element, Extent, Filter, Image, Sampler};
pub use parse::{Declaration, Declarations, Module, ParseError};
pub use report::{
    Accessed, Copied, Counters, Event, Printed, Report, ReportKind, Site, Trace, What,
};
pub use report::{sectors, wavefronts};
pub use stepper::{Cell, Path, Register, Step, Stepper, Values, Waits, Warp};

/// Runs the code of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
