//! The arguments of a kernel.

use std::marker::PhantomData;
use std::sync::Arc;

use half::{bf16, f16};
use num_complex::Complex;

use super::Buffer;
use super::buffer::Allocation;

/// An argument of a kernel: a buffer for a pointer, or a number.
///
/// - `&buffer` for a pointer that the kernel reads from, `&mut buffer` for one that it writes to;
/// - `Option` of either: `None` is a null pointer;
/// - numbers, `bool` included, for parameters of the same size;
/// - [`Bytes`] for a parameter of any size, such as a struct.
pub trait Argument<'a>: sealed::IntoSlot<'a> {}

/// An argument as a launch keeps it.
#[derive(Debug, Clone)]
pub enum Slot {
    /// A number of `bytes` bytes, from the lowest on.
    Number {
        /// The number's bytes, then zeros.
        value: [u64; 2],
        /// The number of bytes.
        bytes: u32,
    },
    /// The address of the byte at `start`.
    Pointer {
        /// The memory that it points into.
        memory: Arc<Allocation>,
        /// The offset from the beginning of the memory, in bytes.
        start: u64,
        /// True if the kernel writes there.
        write: bool,
    },
    /// A pointer to nothing.
    Null,
    /// Bytes as they are, with addresses at some offsets.
    Bytes {
        /// All bytes.
        bytes: Arc<[u8]>,
        /// Offsets and pointers, null ones among them.
        pointers: Arc<[(usize, Slot)]>,
    },
}

/// The bytes of a parameter of any size, such as a struct that a kernel takes by value, with
/// addresses of buffers in them.
///
/// ```
/// # use linrec::device::{Bytes, Device};
/// # let ptx = "
/// # .version 8.0
/// # .target sm_80
/// # .address_size 64
/// # .visible .entry store(.param .align 8 .b8 p[16]) {
/// #     .reg .b64 %rd<2>; .reg .b32 %r<2>;
/// #     ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [p+8];
/// #     st.global.u32 [%rd1], %r1;
/// #     ret;
/// # }";
/// # let device = Device::simt();
/// let store = device.module(ptx)?.function("store")?; // struct { unsigned *to; unsigned value; }
/// let mut to = device.zeros::<u32>(1)?;
/// let mut bytes = [0; 16];
/// bytes[8..12].copy_from_slice(&7_u32.to_le_bytes());
/// store.launch(1, 1).arg(Bytes::new(bytes).address(0, &mut to)).run(&device.stream())?;
/// assert_eq!(to.download()?, [7]);
/// # Ok::<(), linrec::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bytes<'a> {
    bytes: Vec<u8>,
    pointers: Vec<(usize, Slot)>,
    /// The buffers whose addresses are in them.
    buffers: PhantomData<&'a ()>,
}

impl<'a> Bytes<'a> {
    /// Takes these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Bytes<'a> {
        Bytes { bytes: bytes.into(), pointers: Vec::new(), buffers: PhantomData }
    }

    /// Puts the address of a buffer into the eight bytes from `at` on, or zeros for `None`. The
    /// bytes grow if they end before. An argument that is no buffer has no address, and leaves the
    /// bytes as they are.
    #[must_use]
    pub fn address(mut self, at: usize, buffer: impl Argument<'a>) -> Bytes<'a> {
        let slot = buffer.into_slot();
        if matches!(slot, Slot::Pointer { .. } | Slot::Null)
            && let Some(end) = at.checked_add(8)
        {
            let end = end.max(self.bytes.len());
            self.bytes.resize(end, 0);
            self.pointers.push((at, slot));
        }
        self
    }
}

impl<'a> Argument<'a> for Bytes<'a> {}
impl<'a> IntoSlot<'a> for Bytes<'a> {
    fn into_slot(self) -> Slot {
        Slot::Bytes { bytes: self.bytes.into(), pointers: self.pointers.into() }
    }
}

mod sealed {
    pub trait IntoSlot<'a> {
        #[doc(hidden)]
        fn into_slot(self) -> super::Slot;
    }
}
pub(super) use sealed::IntoSlot;

impl Slot {
    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> u32 {
        match self {
            Slot::Number { bytes, .. } => *bytes,
            Slot::Pointer { .. } | Slot::Null => 8,
            Slot::Bytes { bytes, .. } => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the memories that it points into, and whether the kernel writes there.
    pub(super) fn memories(&self) -> impl Iterator<Item = (&Arc<Allocation>, bool)> {
        let inside = match self {
            Slot::Bytes { pointers, .. } => &pointers[..],
            _ => &[],
        };
        let all = std::iter::once(self).chain(inside.iter().map(|(_, slot)| slot));
        all.filter_map(|slot| match slot {
            Slot::Pointer { memory, write, .. } => Some((memory, *write)),
            _ => None,
        })
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Slot::Number { .. } => "a number",
            Slot::Pointer { .. } | Slot::Null => "a buffer",
            Slot::Bytes { .. } => "bytes",
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
