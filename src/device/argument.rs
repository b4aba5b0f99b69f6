//! What a kernel is given.

use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;

use super::Buffer;
use super::buffer::Allocation;

/// Something that a kernel takes as an argument: a buffer for a pointer, or a number.
///
/// - `&buffer` for a pointer that the kernel reads from, `&mut buffer` for one that it writes to;
/// - `Option` of either: `None` is a null pointer;
/// - numbers, `bool` included, for parameters of the same size.
pub trait Argument<'a>: sealed::IntoSlot<'a> {}

/// An argument, as a launch keeps it.
#[derive(Debug, Clone)]
pub enum Slot {
    /// A number of `bytes` bytes, from the lowest on.
    Number {
        /// The number's bytes, then zeros.
        value: [u64; 2],
        /// How many there are.
        bytes: u32,
    },
    /// The address of the byte at `start`.
    Pointer {
        /// The memory that it points into.
        memory: Arc<Allocation>,
        /// From the beginning of the memory, in bytes.
        start: u64,
        /// Whether the kernel writes there.
        write: bool,
    },
    /// A pointer to nothing.
    Null,
}

mod sealed {
    pub trait IntoSlot<'a> {
        #[doc(hidden)]
        fn into_slot(self) -> super::Slot;
    }
}
pub(super) use sealed::IntoSlot;

impl Slot {
    /// The size in bytes.
    pub(super) fn bytes(&self) -> u32 {
        match self {
            Slot::Number { bytes, .. } => *bytes,
            Slot::Pointer { .. } | Slot::Null => 8,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Slot::Number { .. } => "a number",
            Slot::Pointer { .. } | Slot::Null => "a buffer",
        }
    }
}

impl<'a, T> Argument<'a> for &'a Buffer<T> {}
impl<'a, T> IntoSlot<'a> for &'a Buffer<T> {
    fn into_slot(self) -> Slot {
        self.slot(false)
    }
}

impl<'a, T> Argument<'a> for &'a mut Buffer<T> {}
impl<'a, T> IntoSlot<'a> for &'a mut Buffer<T> {
    fn into_slot(self) -> Slot {
        self.slot(true)
    }
}

impl<'a, A: Argument<'a>> Argument<'a> for Option<A> {}
impl<'a, A: Argument<'a>> IntoSlot<'a> for Option<A> {
    fn into_slot(self) -> Slot {
        self.map_or(Slot::Null, IntoSlot::into_slot)
    }
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl<'a> Argument<'a> for $number {}
        impl<'a> IntoSlot<'a> for $number {
            fn into_slot(self) -> Slot {
                let mut value = [0_u64; 2];
                let bytes = bytemuck::bytes_of(&self);
                bytemuck::bytes_of_mut(&mut value)[..bytes.len()].copy_from_slice(bytes);
                Slot::Number { value, bytes: bytes.len() as u32 }
            }
        }
    )*};
}

number!(
    bool,
    i8,
    u8,
    i16,
    u16,
    i32,
    u32,
    i64,
    u64,
    f16,
    bf16,
    f32,
    f64,
    Complex<f32>,
    Complex<f64>
);
