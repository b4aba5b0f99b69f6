//! Compiling CUDA C++ at run time, with NVIDIA's compiler library NVRTC.
//!
//! NVRTC needs neither a GPU nor a driver nor a C++ compiler, so that a laptop can compile a kernel
//! and run it in the emulator. It is a shared library, which is looked for when it is first needed
//! ([`Nvrtc::find`]). `pip install nvidia-cuda-nvrtc-cu12` installs it on Linux and Windows; macOS
//! has no NVRTC.
//!
//! Devices call [`obtain`]: it takes the shipped PTX, or PTX that was compiled before, or compiles.
//! [`compile`] always compiles.
//!
//! ```no_run
//! use linrec::device::nvrtc;
//! use linrec::kernels::Program;
//!
//! let source = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }";
//! let program = Program::new("twice.cu", source).with_entries(["twice<float>"]);
//! let compiled = nvrtc::compile(&program, 80)?;
//! assert_eq!(compiled.ptx.symbol("twice<float>"), Some("twice_float"));
//! # Ok::<(), linrec::Error>(())
//! ```

use std::path::PathBuf;

pub use ::nvrtc::{Compiled, Nvrtc};

use crate::Error;
use crate::kernels::{Program, Ptx, shipped_as};

/// The compute capability that the shipped PTX is for, as in `compute_80`.
pub const SHIPPED_ARCHITECTURE: u32 = 80;

/// Returns the PTX of `program` for a GPU of the compute capability `architecture` (80 for 8.0).
///
/// It is the shipped PTX, or PTX that was compiled earlier (see [`cache_folder`]), or it is
/// compiled now and saved. For the emulator the architecture is [`SHIPPED_ARCHITECTURE`].
///
/// # Errors
///
/// If it has to be compiled and NVRTC cannot be found, or refuses the program.
pub fn obtain(program: &Program, architecture: u32) -> Result<Ptx, Error> {
    if architecture >= SHIPPED_ARCHITECTURE
        && let Some(ptx) = shipped_as(program)
    {
        return Ok(ptx);
    }
    Nvrtc::find().map_err(|error| {
        let (file, entries) = (&program.file, program.entries.join(", "));
        let message = error.message();
        failure(format!("{message} (no PTX is shipped for {entries} of {file})"))
    })?;
    ::nvrtc::obtain(program, architecture).map_err(|error| failure(error.message()))
}

/// Compiles `program` for GPUs of the compute capability `architecture` (80 for 8.0) and later,
/// with the NVRTC that [`Nvrtc::find`] finds.
///
/// # Errors
///
/// If NVRTC cannot be found, or refuses the program; the message holds the compiler's own.
pub fn compile(program: &Program, architecture: u32) -> Result<Compiled, Error> {
    ::nvrtc::compile(program, architecture).map_err(|error| failure(error.message()))
}

/// Returns the folder where compiled PTX is saved between runs; `None` if nothing is saved.
///
/// `LINREC_CACHE` names it (empty: nothing is saved). Otherwise it is `linrec` in the user's folder
/// for caches. It may be deleted at any time. It is created at the first write, for this user
/// alone.
///
/// # Errors
///
/// If other users could put files there: then nothing is saved either.
pub fn cache_folder() -> Result<Option<PathBuf>, Error> {
    ::nvrtc::cache_folder().map_err(|error| failure(error.message()))
}

/// Makes an error of the compiler. (A `From` for it would be a second one, and closures that end in
/// `Ok(())` could no longer infer their error type.)
fn failure(message: impl Into<String>) -> Error {
    Error::device("NVRTC", message)
}
