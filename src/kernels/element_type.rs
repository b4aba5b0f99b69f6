//! The types of a kernel's numbers in memory.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// The type of the elements of a kernel's arrays.
///
/// Kernels compute in `f32` with elements of 16 bits, and in the element type itself otherwise.
/// Initial and final states have the type of computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ElementType {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE's half precision.
    F16,
    /// Two `f32`: the real and the imaginary part.
    Complex64,
    /// Two `f64`: the real and the imaginary part.
    Complex128,
}

/// The properties of a type.
struct Facts {
    rust: &'static str,
    cuda: &'static str,
    bytes: usize,
    accumulator: ElementType,
}

impl ElementType {
    /// Every element type.
    pub const ALL: [ElementType; 6] = [
        ElementType::F32,
        ElementType::F64,
        ElementType::Bf16,
        ElementType::F16,
        ElementType::Complex64,
        ElementType::Complex128,
    ];

    fn facts(self) -> Facts {
        let (rust, cuda, bytes, accumulator) = match self {
            ElementType::F32 => ("f32", "float", 4, self),
            ElementType::F64 => ("f64", "double", 8, self),
            ElementType::Bf16 => ("bf16", "bf16", 2, ElementType::F32),
            ElementType::F16 => ("f16", "f16", 2, ElementType::F32),
            ElementType::Complex64 => ("complex64", "complex<float>", 8, self),
            ElementType::Complex128 => ("complex128", "complex<double>", 16, self),
        };
        Facts { rust, cuda, bytes, accumulator }
    }

    /// Returns its name in the kernels' sources.
    pub fn cuda_name(self) -> &'static str {
        self.facts().cuda
    }

    /// Returns its name, as [`Display`](fmt::Display) writes it.
    pub fn rust_name(self) -> &'static str {
        self.facts().rust
    }

    /// Returns the type that the kernels compute in.
    pub fn accumulator(self) -> ElementType {
        self.facts().accumulator
    }

    /// Returns the size of one element in bytes.
    pub fn bytes(self) -> usize {
        self.facts().bytes
    }
}

/// Writes the name as in Rust, and `complex64` and `complex128` for complex numbers, with the bits
/// of both parts, as in NumPy and PyTorch.
impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.rust_name())
    }
}

impl FromStr for ElementType {
    type Err = Error;

    fn from_str(name: &str) -> Result<ElementType, Error> {
        let found = ElementType::ALL.into_iter().find(|element| element.rust_name() == name);
        found.ok_or_else(|| {
            let names = ElementType::ALL.map(ElementType::rust_name).join(", ");
            Error::Unsupported {
                engine: String::from("the catalogue of kernels"),
                what: format!("elements of type `{name}`; choose from {names}"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ElementType;

    #[test]
    fn types_are_read_by_name_and_have_the_bits_in_it() {
        for element in ElementType::ALL {
            let name = element.rust_name();
            assert_eq!(name.parse(), Ok(element));
            assert!(name.ends_with(&(8 * element.bytes()).to_string()), "{name}");
        }
        let error = "f8".parse::<ElementType>().unwrap_err().to_string();
        assert!(error.contains("`f8`") && error.contains("bf16"), "{error}");
        // Two halves, which no kernel has.
        assert!("complex32".parse::<ElementType>().is_err());
    }
}
