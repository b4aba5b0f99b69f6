//! CUDA C++ to PTX with NVIDIA's compiler library NVRTC.
//!
//! NVRTC needs neither a GPU nor a driver nor a C++ compiler, so that a laptop can compile a kernel
//! and run it in an emulator such as `simt`. It is a shared library, which [`Nvrtc::find`] looks
//! for when it is first needed. `pip install nvidia-cuda-nvrtc-cu12` installs it on Linux and
//! Windows; it does not exist for macOS.
//!
//! [`compile`] always compiles; [`obtain`] returns PTX from the cache where it can.
//!
//! ```no_run
//! use nvrtc::Program;
//!
//! let source = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }";
//! let program = Program::new("twice.cu", source).with_entries(["twice<float>"]);
//! let compiled = nvrtc::compile(&program, 80)?;
//! assert_eq!(compiled.ptx.symbol("twice<float>"), Some("twice_float"));
//! # Ok::<(), nvrtc::Error>(())
//! ```
//!
//! Without the feature `load` nothing is loaded, and only programs, their fingerprints and PTX
//! remain.

mod error;
mod hash;
mod program;
mod ptx;

#[cfg(feature = "load")]
mod ask;
#[cfg(feature = "load")]
mod cache;
#[cfg(feature = "load")]
mod find;
#[cfg(feature = "load")]
mod folders;
#[cfg(feature = "load")]
mod library;
#[cfg(feature = "load")]
mod text;
#[cfg(feature = "load")]
pub mod trust;

pub use error::Error;
pub use hash::Hash;
pub use program::{Header, OPTIONS, Program};
pub use ptx::{Ptx, Unpacked};

#[cfg(feature = "load")]
pub use cache::cache_folder;
#[cfg(feature = "load")]
pub use library::{Compiled, Nvrtc};

/// Returns the PTX of `program` for a GPU of the compute capability `architecture` (80 for 8.0).
///
/// PTX that was compiled earlier comes from the cache (see [`cache_folder`]); otherwise it is
/// compiled now and cached.
///
/// # Errors
///
/// If NVRTC cannot be found, or refuses the program.
#[cfg(feature = "load")]
pub fn obtain(program: &Program, architecture: u32) -> Result<Ptx, Error> {
    let nvrtc = Nvrtc::find()?;
    let architecture = nvrtc.nearest(architecture)?;
    let key = cache::Key::new(program, architecture, nvrtc.version());
    if let Some(ptx) = key.load() {
        return Ok(ptx);
    }
    let compiled = nvrtc.compile(program, architecture)?;
    key.store(&compiled.ptx);
    Ok(compiled.ptx)
}

/// Compiles `program` for GPUs of the compute capability `architecture` (80 for 8.0) and later,
/// with the NVRTC that [`Nvrtc::find`] finds.
///
/// # Errors
///
/// If NVRTC cannot be found, or refuses the program; then the message contains the compiler's own.
#[cfg(feature = "load")]
pub fn compile(program: &Program, architecture: u32) -> Result<Compiled, Error> {
    let nvrtc = Nvrtc::find()?;
    nvrtc.compile(program, nvrtc.nearest(architecture)?)
}
