//! How the numbers of a kernel lie in memory.

use std::fmt;

/// The type of the elements of a kernel's arrays.
///
/// The 16-bit formats are computed with in `f32`, all others in themselves; initial and final states
/// are of the type of computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE's half precision.
    F16,
    /// Two `f32`: real and imaginary part.
    ComplexF32,
    /// Two `f64`: real and imaginary part.
    ComplexF64,
}

impl ElementType {
    /// Every element type.
    pub const ALL: [ElementType; 6] = [
        ElementType::F32,
        ElementType::F64,
        ElementType::Bf16,
        ElementType::F16,
        ElementType::ComplexF32,
        ElementType::ComplexF64,
    ];

    /// Its name in the kernels' sources.
    pub fn cuda_name(self) -> &'static str {
        match self {
            ElementType::F32 => "float",
            ElementType::F64 => "double",
            ElementType::Bf16 => "bf16",
            ElementType::F16 => "f16",
            ElementType::ComplexF32 => "complex<float>",
            ElementType::ComplexF64 => "complex<double>",
        }
    }

    /// Its name, as [`Display`](fmt::Display) writes it.
    pub fn rust_name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::F64 => "f64",
            ElementType::Bf16 => "bf16",
            ElementType::F16 => "f16",
            ElementType::ComplexF32 => "complex32",
            ElementType::ComplexF64 => "complex64",
        }
    }

    /// The type that the kernels compute in.
    pub fn accumulator(self) -> ElementType {
        match self {
            ElementType::Bf16 | ElementType::F16 => ElementType::F32,
            other => other,
        }
    }

    /// The size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::Bf16 | ElementType::F16 => 2,
            ElementType::F32 => 4,
            ElementType::F64 | ElementType::ComplexF32 => 8,
            ElementType::ComplexF64 => 16,
        }
    }
}

/// As Rust writes it, `complex32` and `complex64` for the complex numbers (each part's bits).
impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.rust_name())
    }
}
