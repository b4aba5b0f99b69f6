//! Compiling CUDA C++ at run time, with NVIDIA's compiler library NVRTC.
//!
//! NVRTC needs neither a GPU nor a driver nor a C++ compiler, so that a laptop can compile a kernel
//! and run it in the emulator. It is a shared library that is looked for when it is first needed
//! ([`Nvrtc::find`]); `pip install nvidia-cuda-nvrtc-cu12` brings it to Linux and Windows (there is
//! none for macOS).
//!
//! [`obtain`] is what a device calls: it takes the PTX that is shipped, else one that was compiled
//! before, else compiles. [`compile`] always compiles.

mod ask;
mod cache;
mod find;
mod folders;
mod library;
mod text;
pub(super) mod trust;

pub use cache::cache_folder;
pub use library::Nvrtc;

use crate::Error;
use crate::kernels::{Program, Ptx, shipped_as};

/// The compute capability that the shipped PTX is for, as in `compute_80`.
pub const SHIPPED_ARCHITECTURE: u32 = 80;

/// The newest compute capability that is compiled for. Later GPUs run its PTX as well, and every
/// driver since CUDA 12.0 knows it.
const NEWEST_ARCHITECTURE: u32 = 90;

/// The result of a compilation.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The PTX, with the kernels' names in its head.
    pub ptx: Ptx,
    /// What the compiler said: warnings, or nothing.
    pub log: String,
    /// The compiler: `NVRTC 12.0`.
    pub compiler: String,
}

/// The PTX of `program` for a GPU of the compute capability `architecture` (80 for 8.0).
///
/// Shipped PTX is taken where there is one, then PTX compiled earlier (see [`cache_folder`]), and else
/// it is compiled now and kept. For the emulator the architecture is [`SHIPPED_ARCHITECTURE`].
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
    let nvrtc = Nvrtc::find().map_err(|error| match error {
        Error::Device { device, message } => {
            let (file, entries) = (&program.file, program.entries.join(", "));
            Error::device(device, format!("{message} (no PTX is shipped for {entries} of {file})"))
        }
        other => other,
    })?;
    let architecture = nvrtc.nearest(architecture)?;
    let key = cache::Key::new(program, architecture, nvrtc.version());
    if let Some(ptx) = key.load() {
        return Ok(ptx);
    }
    let compiled = nvrtc.compile(program, architecture)?;
    key.store(&compiled.ptx);
    Ok(compiled.ptx)
}

/// Compiles `program` for GPUs of the compute capability `architecture` (80 for 8.0) and later, with
/// the NVRTC that [`Nvrtc::find`] finds.
///
/// ```no_run
/// use linrec::device::nvrtc;
/// use linrec::kernels::Program;
///
/// let source = "template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }";
/// let compiled = nvrtc::compile(&Program::new("twice.cu", source).with_entries(["twice<float>"]), 80)?;
/// assert_eq!(compiled.ptx.symbol("twice<float>"), Some("twice_float"));
/// # Ok::<(), linrec::Error>(())
/// ```
///
/// # Errors
///
/// If NVRTC cannot be found, or refuses the program; the message holds the compiler's own.
pub fn compile(program: &Program, architecture: u32) -> Result<Compiled, Error> {
    let nvrtc = Nvrtc::find()?;
    nvrtc.compile(program, nvrtc.nearest(architecture)?)
}

/// An error of this module.
fn failure(message: impl Into<String>) -> Error {
    Error::device("NVRTC", message)
}
