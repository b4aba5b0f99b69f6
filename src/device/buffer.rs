//! Arrays in a device's memory.
//!
//! A [`Buffer`] is a handle to a part of an [`Allocation`], which its backend frees when the last
//! handle is dropped. Elements are plain numbers of which every bit pattern is valid, and the host
//! sees them in copies only: a kernel that writes wrong numbers spoils numbers and nothing else. A
//! buffer of no bytes has no memory, and kernels get a null pointer for it. The tests are `arrays`,
//! `large` and `streams` in `tests/suite/device`, and `memory_and_streams_that_are_lent` in
//! `tests/suite/driver`.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;

use super::argument::Slot;
use super::backend::{DeviceMemory, Piece, Users};
use super::{Device, Stream, recording};
use crate::Error;

/// An array of plain numbers in a device's memory, made by [`Device::allocate`] and
/// [`Device::upload`].
///
/// Its memory is freed when the last handle is dropped, behind all work queued on it.
pub struct Buffer<T> {
    memory: Arc<Allocation>,
    /// The offset of its first byte in the memory.
    start: u64,
    len: usize,
    /// It holds no number of the type, so that it is `Send` and `Sync` for every type.
    numbers: PhantomData<fn() -> T>,
}

/// A piece of a device's memory.
#[derive(Debug)]
pub struct Allocation {
    pub(super) device: Device,
    /// `None` for no bytes.
    pub(super) memory: Option<Box<dyn DeviceMemory>>,
}

impl Allocation {
    /// Returns the address of the byte at `offset`; null for no bytes.
    pub(super) fn address(&self, offset: u64) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.address() + offset)
    }
}

impl<T: Pod> Buffer<T> {
    pub(super) fn new(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::for_users(device, name, len, Users::Nobody)
    }

    fn for_users(device: &Device, name: &str, len: usize, users: Users) -> Result<Self, Error> {
        let memory = match bytes_of::<T>(device, name, len)? {
            0 => None,
            bytes => Some(device.backend.clone().allocate(name, bytes, users)?),
        };
        Ok(Buffer::at(device, memory, len))
    }

    /// Allocates an array for work on a lent stream, and for no other work.
    pub(super) fn of_stream(
        stream: &Stream,
        name: &str,
        len: usize,
        zeros: bool,
    ) -> Result<Buffer<T>, Error> {
        let users = stream.queue.handle().map_or(Users::Nobody, Users::Stream);
        let mut buffer = Buffer::for_users(&stream.device, name, len, users)?;
        if zeros {
            buffer.fill_now(0)?;
        }
        Ok(buffer)
    }

    /// Allocates an array of zeros that other devices may [reach](Device::reach).
    pub(super) fn for_peers(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::for_users(device, name, len, Users::Peers)?;
        buffer.fill_now(0)?;
        // Others write there without waiting for anything on this device.
        device.synchronize()?;
        Ok(buffer)
    }

    /// Returns the name by which another process on this host finds an array that was made
    /// [for peers](Buffer::for_peers). The array then stays until this process ends, because the
    /// other process may have it open until then.
    pub(super) fn publish(&self) -> Result<[u8; 64], Error> {
        let name = self.memory.memory.as_ref().map_or(Ok(None), |memory| memory.publish())?;
        let name = name.ok_or_else(|| {
            let why = "only a GPU's memory is reached from another process";
            Error::device(self.device().label(), why)
        })?;
        mem::forget(self.memory.clone());
        Ok(name)
    }

    /// Opens an array of another process on this host, by its [name](Buffer::publish).
    pub(super) fn of_process(
        device: &Device,
        name: [u8; 64],
        len: usize,
    ) -> Result<Buffer<T>, Error> {
        let memory = match bytes_of::<T>(device, "memory of another process", len)? {
            0 => None,
            bytes => Some(device.backend.clone().memory_of_process(name, bytes)?),
        };
        Ok(Buffer::at(device, memory, len))
    }

    /// Makes a buffer of memory that another library allocated.
    pub(super) fn lent(device: &Device, address: u64, len: usize) -> Result<Buffer<T>, Error> {
        bytes_of::<T>(device, "what is lent", len)?;
        let memory = device.backend.clone().lent_memory(address, len, size_of::<T>())?;
        Ok(Buffer::at(device, memory, len))
    }

    fn at(device: &Device, memory: Option<Box<dyn DeviceMemory>>, len: usize) -> Buffer<T> {
        let memory = Arc::new(Allocation { device: device.clone(), memory });
        Buffer { memory, start: 0, len, numbers: PhantomData }
    }

    /// Copies `values` to the device; the copy is over when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if there are not as many values as elements, [`Error::Device`] if
    /// the copy fails.
    pub fn upload(&mut self, values: &[T]) -> Result<(), Error> {
        if values.len() != self.len {
            let arrays = vec![("buffer", vec![self.len]), ("values", vec![values.len()])];
            return Err(Error::ShapeMismatch { operation: "upload", arrays });
        }
        recording::refuse(self.device(), "uploading")?;
        let Some(memory) = &self.memory.memory else { return Ok(()) };
        memory.write(self.start, bytemuck::cast_slice(values))
    }

    /// Copies the elements to the host, behind all work queued on them.
    ///
    /// Elements that nothing has written are zero on the emulator and have any value on a GPU.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the host has too little memory, [`Error::Device`] if the copy
    /// fails, or if a kernel queued before has failed.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        recording::refuse(self.device(), "downloading")?;
        let mut values = Vec::new();
        values.try_reserve_exact(self.len).map_err(|_| Error::OutOfMemory {
            operation: "download",
            bytes: self.len.saturating_mul(size_of::<T>()),
        })?;
        values.resize(self.len, T::zeroed());
        if let Some(memory) = &self.memory.memory {
            memory.read(self.start, &mut values)?;
        }
        Ok(values)
    }

    /// Writes 0xFF into every byte, which is NaN in every format. An element that a kernel does not
    /// write then shows.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn poison(&mut self) -> Result<(), Error> {
        self.fill(0xFF)
    }

    /// Writes zeros.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the device fails.
    pub fn zero(&mut self) -> Result<(), Error> {
        self.fill(0)
    }

    /// Allocates an array of zeros. This also works while launches are being recorded, because no
    /// replay depends on when the array was filled.
    pub(super) fn new_zeros(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = Buffer::new(device, name, len)?;
        buffer.fill_now(0)?;
        Ok(buffer)
    }

    fn fill(&mut self, byte: u8) -> Result<(), Error> {
        recording::refuse(self.device(), "filling a buffer")?;
        self.fill_now(byte)
    }

    fn fill_now(&mut self, byte: u8) -> Result<(), Error> {
        let bytes = (self.len * size_of::<T>()) as u64;
        self.memory.memory.as_ref().map_or(Ok(()), |memory| memory.fill(self.start, bytes, byte))
    }

    /// Returns the array's bytes, as another handle to the same memory.
    pub(super) fn bytes(&self) -> Buffer<u8> {
        let (memory, start) = (self.memory.clone(), self.start);
        Buffer { memory, start, len: self.len * size_of::<T>(), numbers: PhantomData }
    }

    /// Returns a part of the array, as another handle to the same memory: both see what is written
    /// through either.
    ///
    /// ```
    /// use linrec::device::Device;
    ///
    /// let buffer = Device::simt().upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
    /// let mut middle = buffer.slice(1..3)?;
    /// middle.upload(&[20.0, 30.0])?;
    /// assert_eq!(buffer.download()?, [1.0, 20.0, 30.0, 4.0]);
    /// # Ok::<(), linrec::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::ShapeMismatch`] if the range is not in the array.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Buffer<T>, Error> {
        let start = match range.start_bound() {
            Bound::Included(&start) => Some(start),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&end) => Some(end),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => Ok(Buffer {
                memory: self.memory.clone(),
                start: self.start + (start * size_of::<T>()) as u64,
                len: end - start,
                numbers: PhantomData,
            }),
            _ => {
                let bounds = [start, end].map(|bound| bound.unwrap_or(usize::MAX)).to_vec();
                let arrays = vec![("buffer", vec![self.len]), ("range", bounds)];
                Err(Error::ShapeMismatch { operation: "slice", arrays })
            }
        }
    }
}

impl<T> Buffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory it is in.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// True if the first element's address is a multiple of `bytes`, a power of two up to 256. An
    /// allocation begins at such an address. A slice may begin anywhere in it, and lent memory
    /// anywhere.
    pub fn is_aligned_to(&self, bytes: u64) -> bool {
        self.memory.address(self.start).is_multiple_of(bytes)
    }

    /// Returns the memory, and the offset of the first byte in it; `None` for no bytes.
    pub(super) fn piece(&self) -> Option<Piece<'_>> {
        self.memory.memory.as_deref().map(|memory| (memory, self.start))
    }

    pub(super) fn slot(&self, write: bool) -> Slot {
        match self.memory.memory {
            None => Slot::Null,
            Some(_) => Slot::Pointer { memory: self.memory.clone(), start: self.start, write },
        }
    }
}

/// Returns the size of `len` numbers in bytes.
fn bytes_of<T>(device: &Device, name: &str, len: usize) -> Result<u64, Error> {
    (len as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| {
        let message = format!("no memory holds `{name}` of {len} elements");
        Error::device(device.label(), message)
    })
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}] on {}", short_name::<T>(), self.len, self.device().label())
    }
}

/// Returns the name of a type without its path: `f32`.
pub(super) fn short_name<T>() -> &'static str {
    type_name::<T>().rsplit("::").next().unwrap_or_default()
}
