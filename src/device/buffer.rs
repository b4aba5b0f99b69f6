//! Arrays in a device's memory.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use bytemuck::Pod;

use super::argument::Slot;
use super::cuda::GpuMemory;
use super::emulator::{Emulator, memory_error};
use super::stream::Queue;
use super::{Backend, Device, Stream, recording};
use crate::Error;

/// An array in a device's memory, of plain numbers: made by [`Device::allocate`] and
/// [`Device::upload`].
///
/// It is given back when the last handle is dropped, behind all work queued on it.
pub struct Buffer<T> {
    memory: Arc<Allocation>,
    /// Where it begins in the memory, in bytes.
    start: u64,
    len: usize,
    /// No number of the type is held here, so that it does not matter what type it is.
    numbers: PhantomData<fn() -> T>,
}

/// A piece of a device's memory.
#[derive(Debug)]
pub struct Allocation {
    pub(super) device: Device,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) enum Place {
    /// No bytes at all.
    Nowhere,
    Cuda(GpuMemory),
    Simt {
        emulator: Arc<Emulator>,
        address: u64,
    },
}

impl<T: Pod> Buffer<T> {
    pub(super) fn new(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        let bytes = bytes_of::<T>(device, name, len)?;
        let place = match &device.backend {
            _ if bytes == 0 => Place::Nowhere,
            Backend::Cuda(gpu) => Place::Cuda(GpuMemory::new(gpu, bytes)?),
            Backend::Simt(emulator) => {
                let address = emulator.memory.allocate(name, bytes).map_err(memory_error)?;
                Place::Simt { emulator: emulator.clone(), address }
            }
        };
        Ok(Buffer::at(device, place, len))
    }

    /// An array for work on a stream that is lent, and on no other.
    pub(super) fn of_stream(
        stream: &Stream,
        name: &str,
        len: usize,
        zeros: bool,
    ) -> Result<Buffer<T>, Error> {
        let device = &stream.device;
        let (Backend::Cuda(gpu), Queue::Cuda(queue)) = (&device.backend, &stream.queue) else {
            return Buffer::new(device, name, len);
        };
        let bytes = bytes_of::<T>(device, name, len)?;
        let place = match bytes {
            0 => Place::Nowhere,
            _ => Place::Cuda(GpuMemory::of_stream(gpu, queue, bytes)?),
        };
        let mut buffer = Buffer::at(device, place, len);
        if zeros {
            buffer.fill_now(0)?;
        }
        Ok(buffer)
    }

    /// An array of zeros that other devices may [reach](Device::reach).
    pub(super) fn for_peers(device: &Device, name: &str, len: usize) -> Result<Buffer<T>, Error> {
        let mut buffer = match &device.backend {
            Backend::Cuda(gpu) if len > 0 => {
                let bytes = bytes_of::<T>(device, name, len)?;
                Buffer::at(device, Place::Cuda(GpuMemory::for_peers(gpu, bytes)?), len)
            }
            _ => Buffer::new(device, name, len)?,
        };
        buffer.fill_now(0)?;
        // Others write there without waiting for anything on this device.
        device.synchronize()?;
        Ok(buffer)
    }

    /// By what another process on this host finds an array that was made
    /// [for peers](Buffer::for_peers), which then stays for as long as this process: that process
    /// may have it open for as long.
    pub(super) fn told(&self) -> Result<[u8; 64], Error> {
        match &self.memory.place {
            Place::Cuda(memory) => {
                let handle = memory.handle()?;
                mem::forget(self.memory.clone());
                Ok(handle)
            }
            _ => Err(Error::device(
                self.device().label(),
                "only a GPU's memory is reached from another process",
            )),
        }
    }

    /// An array of another process on this host, as it was [told](Buffer::told).
    pub(super) fn of_process(
        device: &Device,
        handle: [u8; 64],
        len: usize,
    ) -> Result<Buffer<T>, Error> {
        let Backend::Cuda(gpu) = &device.backend else {
            let why = "only a GPU reaches the memory of another process";
            return Err(Error::device(device.label(), why));
        };
        let bytes = bytes_of::<T>(device, "memory of another process", len)?;
        let place = match bytes {
            0 => Place::Nowhere,
            _ => Place::Cuda(GpuMemory::of_process(gpu, handle, bytes)?),
        };
        Ok(Buffer::at(device, place, len))
    }

    /// An array in memory that somebody else has.
    pub(super) fn lent(device: &Device, address: u64, len: usize) -> Result<Buffer<T>, Error> {
        let refuse = |why: String| Err(Error::device(device.label(), why));
        let Backend::Cuda(gpu) = &device.backend else {
            return refuse(String::from("memory can be lent to a GPU only"));
        };
        let bytes = bytes_of::<T>(device, "what is lent", len)?;
        if bytes == 0 {
            return Ok(Buffer::at(device, Place::Nowhere, len));
        }
        let size = size_of::<T>() as u64;
        if address == 0 || !address.is_multiple_of(size) || address.checked_add(bytes).is_none() {
            return refuse(format!(
                "memory at {address:#x} cannot hold {len} numbers of {size} bytes each: they begin at a \
                 multiple of their size"
            ));
        }
        Ok(Buffer::at(device, Place::Cuda(GpuMemory::lent(gpu, address, bytes)), len))
    }

    fn at(device: &Device, place: Place, len: usize) -> Buffer<T> {
        let memory = Arc::new(Allocation { device: device.clone(), place });
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
        let bytes = bytemuck::cast_slice(values);
        match &self.memory.place {
            Place::Nowhere => Ok(()),
            Place::Cuda(memory) => memory.write(self.start, bytes),
            Place::Simt { emulator, address } => {
                emulator.memory.write(address + self.start, bytes).map_err(memory_error)
            }
        }
    }

    /// Copies the elements to the host, behind all work queued on them.
    ///
    /// Elements that nothing has written are zero on the emulator and anything on a GPU.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] if the host has no room, [`Error::Device`] if the copy fails, or if a
    /// kernel queued before has failed.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        recording::refuse(self.device(), "downloading")?;
        let mut values = Vec::new();
        values.try_reserve_exact(self.len).map_err(|_| Error::OutOfMemory {
            operation: "download",
            bytes: self.len.saturating_mul(size_of::<T>()),
        })?;
        values.resize(self.len, T::zeroed());
        match &self.memory.place {
            Place::Nowhere => Ok(values),
            Place::Cuda(memory) => memory.read(self.start, values),
            Place::Simt { emulator, address } => {
                let bytes = bytemuck::cast_slice_mut(&mut values);
                let read = emulator.memory.read(address + self.start, bytes);
                read.map_err(memory_error).map(|()| values)
            }
        }
    }

    /// Writes 0xFF into every byte, which is NaN in every format: what a kernel forgets to write
    /// then shows.
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

    /// A new array of zeros; while launches are being recorded, too, as no replay depends on when
    /// it was filled.
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
        match &self.memory.place {
            Place::Nowhere => Ok(()),
            Place::Cuda(memory) => memory.fill(self.start, bytes, byte),
            Place::Simt { emulator, address } => {
                emulator.memory.fill(address + self.start, bytes, byte).map_err(memory_error)
            }
        }
    }

    /// The array's bytes, as a handle of its own to the same memory.
    pub(super) fn bytes(&self) -> Buffer<u8> {
        let (memory, start) = (self.memory.clone(), self.start);
        Buffer { memory, start, len: self.len * size_of::<T>(), numbers: PhantomData }
    }

    /// A part of the array, as a handle of its own to the same memory: what is written through one
    /// is seen through the other.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that it lies on.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// Whether the first element's address is a multiple of `bytes`, a power of two up to 256.
    /// Memory that is allocated begins at such an address; a slice may begin anywhere in it, and
    /// what is lent anywhere.
    pub fn is_aligned_to(&self, bytes: u64) -> bool {
        let first = match &self.memory.place {
            Place::Cuda(memory) => memory.address(self.start),
            _ => self.start,
        };
        first.is_multiple_of(bytes)
    }

    pub(super) fn slot(&self, write: bool) -> Slot {
        match self.memory.place {
            Place::Nowhere => Slot::Null,
            _ => Slot::Pointer { memory: self.memory.clone(), start: self.start, write },
        }
    }
}

/// How many bytes so many numbers take.
fn bytes_of<T>(device: &Device, name: &str, len: usize) -> Result<u64, Error> {
    (len as u64).checked_mul(size_of::<T>() as u64).ok_or_else(|| {
        let message = format!("no memory holds `{name}` of {len} elements");
        Error::device(device.label(), message)
    })
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Place::Simt { emulator, address } = self {
            // The address is one that the emulator gave out, and this is the one place that frees
            // it.
            let _ = emulator.memory.free(*address);
        }
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        write!(f, "{number}[{}] on {}", self.len, self.device().label())
    }
}
