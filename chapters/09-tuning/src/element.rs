//! From the name of an element type to code that is compiled for it.

use half::{bf16, f16};
use linrec::device::Storage;
use linrec::kernels::ElementType;
use num_complex::Complex;

/// Something to do for a type that is known only when the program runs.
pub trait Job {
    /// What it gives.
    type Output;

    /// Does it for `S`.
    fn run<S: Storage>(self) -> Self::Output;
}

/// Does a job for an element type.
pub fn dispatch<J: Job>(element: ElementType, job: J) -> J::Output {
    match element {
        ElementType::F32 => job.run::<f32>(),
        ElementType::F64 => job.run::<f64>(),
        ElementType::Bf16 => job.run::<bf16>(),
        ElementType::F16 => job.run::<f16>(),
        ElementType::ComplexF32 => job.run::<Complex<f32>>(),
        ElementType::ComplexF64 => job.run::<Complex<f64>>(),
    }
}

/// Reads the name of an element type on a command line.
///
/// # Errors
///
/// A sentence with the names that there are.
pub fn parse(name: &str) -> Result<ElementType, String> {
    name.parse().map_err(|error: linrec::Error| error.to_string())
}
