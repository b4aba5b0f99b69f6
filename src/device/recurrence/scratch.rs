//! Scratch arrays, for the intermediate results of a call.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use bytemuck::Pod;

use crate::Error;
use crate::device::lock::lock;
use crate::device::{Buffer, Device, Stream};

/// Scratch arrays that are returned and taken again, so that calls of one shape allocate once.
///
/// An array is returned as soon as its last kernel is queued. The next call queues its work after
/// that kernel: one stream does this by itself, and for several streams the device keeps the order
/// of work on a buffer.
#[derive(Debug)]
pub(in crate::device) struct Pool<A>(Mutex<Vec<Buffer<A>>>);

/// The purpose of an array, and its contents at first.
#[derive(Debug, Clone, Copy)]
pub(in crate::device) struct Contents {
    /// The name of the array in the emulator's reports.
    pub(in crate::device) name: &'static str,
    /// True if a new array is filled with zeros.
    pub(in crate::device) zeros: bool,
}

impl Contents {
    /// Intermediate results of a call with logarithms.
    pub(in crate::device) const LOGARITHMS: Contents =
        Contents { name: "scratch for logarithms", zeros: false };

    fn allocate<A: Pod>(self, device: &Device, len: usize) -> Result<Buffer<A>, Error> {
        match self.zeros {
            true => Buffer::new_zeros(device, self.name, len),
            false => device.allocate_named(self.name, len),
        }
    }
}

/// A scratch array of one call.
#[derive(Debug)]
pub(in crate::device) struct Scratch<'a, A> {
    /// The elements that the call uses.
    part: Buffer<A>,
    /// The whole array and the pool that it is returned to. `None` for an array that belongs to a
    /// graph or to a lent stream.
    whole: Option<(Buffer<A>, &'a Pool<A>)>,
}

impl<A> Default for Pool<A> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<A: Pod> Pool<A> {
    /// Takes an array of `len` elements: a new one, or one with the contents that the last call
    /// left. If all returned arrays are shorter, they are freed.
    pub(in crate::device) fn take(
        &self,
        device: &Device,
        contents: Contents,
        len: usize,
    ) -> Result<Scratch<'_, A>, Error> {
        let whole = match self.returned(len) {
            Some(whole) => whole,
            None => contents.allocate(device, len)?,
        };
        Ok(Scratch { part: whole.slice(..len)?, whole: Some((whole, self)) })
    }

    /// Takes an array for a call on this stream. If the stream is a recording, no other call ever
    /// uses the array, since replays may run between the kernels of any call. If the stream is
    /// lent, the array is allocated and freed in the stream's order, in a capture of its owner as
    /// well.
    pub(in crate::device) fn scratch(
        &self,
        device: &Device,
        stream: Option<&Stream>,
        contents: Contents,
        len: usize,
    ) -> Result<Scratch<'_, A>, Error> {
        let part = match stream {
            Some(stream) if stream.is_recording() => contents.allocate(device, len)?,
            Some(stream) if stream.is_lent() => {
                Buffer::of_stream(stream, contents.name, len, contents.zeros)?
            }
            _ => return self.take(device, contents, len),
        };
        Ok(Scratch { part, whole: None })
    }

    fn returned(&self, len: usize) -> Option<Buffer<A>> {
        let mut free = lock(&self.0);
        // The shortest array that is long enough, so that longer ones stay free.
        let enough = free.iter().enumerate().filter(|(_, buffer)| buffer.len() >= len);
        let found = enough.min_by_key(|(_, buffer)| buffer.len()).map(|(index, _)| index);
        let shorter = if found.is_none() { mem::take(&mut *free) } else { Vec::new() };
        let found = found.map(|index| free.swap_remove(index));
        drop(free);
        drop(shorter); // with nothing locked
        found
    }

    /// The lengths of the returned arrays.
    #[cfg(test)]
    pub(in crate::device) fn lengths(&self) -> Vec<usize> {
        lock(&self.0).iter().map(Buffer::len).collect()
    }
}

impl<A> Deref for Scratch<'_, A> {
    type Target = Buffer<A>;

    fn deref(&self) -> &Buffer<A> {
        &self.part
    }
}

impl<A> DerefMut for Scratch<'_, A> {
    fn deref_mut(&mut self) -> &mut Buffer<A> {
        &mut self.part
    }
}

impl<A> Drop for Scratch<'_, A> {
    fn drop(&mut self) {
        if let Some((whole, pool)) = self.whole.take() {
            lock(&pool.0).push(whole);
        }
    }
}

#[cfg(all(test, feature = "simt"))]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_allocated_once_and_replaced_by_larger_ones() -> Result<(), Error> {
        let (device, pool) = (Device::simt(), Pool::<f32>::default());
        let (one, other) = (
            pool.take(&device, Contents::LOGARITHMS, 100)?,
            pool.take(&device, Contents::LOGARITHMS, 80)?,
        );
        assert_eq!((one.len(), other.len(), pool.lengths()), (100, 80, vec![]));
        drop((one, other));
        assert_eq!(pool.lengths(), [100, 80]);

        drop(pool.take(&device, Contents::LOGARITHMS, 100)?);
        let enough = pool.take(&device, Contents::LOGARITHMS, 70)?;
        assert_eq!((enough.len(), pool.lengths()), (70, vec![100]));
        drop(enough);
        let shorter = pool.take(&device, Contents::LOGARITHMS, 90)?;
        assert_eq!((shorter.len(), pool.lengths()), (90, vec![80]));
        drop(shorter);
        let longer = pool.take(&device, Contents::LOGARITHMS, 200)?;
        assert_eq!((longer.len(), pool.lengths()), (200, vec![]));
        drop(longer);
        device.record(|stream| {
            let kept = pool.scratch(&device, Some(stream), Contents::LOGARITHMS, 300)?;
            assert_eq!((kept.len(), pool.lengths()), (300, vec![200]));
            Ok(())
        })?;
        assert_eq!(pool.lengths(), [200]);
        Ok(())
    }
}
