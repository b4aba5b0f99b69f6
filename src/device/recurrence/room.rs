//! Arrays for what a call computes on its way.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use bytemuck::Pod;

use crate::Error;
use crate::device::lock::lock;
use crate::device::{Buffer, Device, Stream};

/// Arrays that are given back and taken again, so that calls of one shape allocate once.
///
/// An array is given back as soon as its last kernel is queued. Whoever takes it next queues behind
/// that: on one stream by itself, on several because devices keep the order of work on a buffer.
#[derive(Debug)]
pub(in crate::device) struct Pool<A>(Mutex<Vec<Buffer<A>>>);

/// What an array is for, and how it begins.
#[derive(Debug, Clone, Copy)]
pub(in crate::device) struct Contents {
    /// As the emulator's reports call it.
    pub(in crate::device) name: &'static str,
    /// Whether it is zero when it is new, or anything.
    pub(in crate::device) zeros: bool,
}

impl Contents {
    /// What a call with logarithms computes on its way.
    pub(in crate::device) const LOGARITHMS: Contents =
        Contents { name: "room for logarithms", zeros: false };

    fn allocate<A: Pod>(self, device: &Device, len: usize) -> Result<Buffer<A>, Error> {
        match self.zeros {
            true => Buffer::new_zeros(device, self.name, len),
            false => device.allocate_named(self.name, len),
        }
    }
}

/// An array of a call's own.
#[derive(Debug)]
pub(in crate::device) struct Room<'a, A> {
    /// As many elements as were asked for.
    part: Buffer<A>,
    /// All of it, and where it is given back; a graph keeps its arrays for itself, and a stream
    /// that is lent has its own.
    whole: Option<(Buffer<A>, &'a Pool<A>)>,
}

impl<A> Default for Pool<A> {
    fn default() -> Self {
        Pool(Mutex::default())
    }
}

impl<A: Pod> Pool<A> {
    /// An array of `len` elements: a new one, or as the last call left it. If all that were given
    /// back are shorter, they are freed.
    pub(in crate::device) fn take(
        &self,
        device: &Device,
        contents: Contents,
        len: usize,
    ) -> Result<Room<'_, A>, Error> {
        let whole = match self.given_back(len) {
            Some(whole) => whole,
            None => contents.allocate(device, len)?,
        };
        Ok(Room { part: whole.slice(..len)?, whole: Some((whole, self)) })
    }

    /// An array of a call's own on this stream. Where it is a recording's, nobody else ever uses
    /// the array, as replays may run between the kernels of any call. Where it is lent, the array
    /// is had and given back in the stream's order, in a capture of its owner as well.
    pub(in crate::device) fn room(
        &self,
        device: &Device,
        stream: Option<&Stream>,
        contents: Contents,
        len: usize,
    ) -> Result<Room<'_, A>, Error> {
        let part = match stream {
            Some(stream) if stream.is_recording() => contents.allocate(device, len)?,
            Some(stream) if stream.is_lent() => {
                Buffer::of_stream(stream, contents.name, len, contents.zeros)?
            }
            _ => return self.take(device, contents, len),
        };
        Ok(Room { part, whole: None })
    }

    fn given_back(&self, len: usize) -> Option<Buffer<A>> {
        let mut free = lock(&self.0);
        // The shortest that will do, so that a longer one is there for who needs it.
        let enough = free.iter().enumerate().filter(|(_, buffer)| buffer.len() >= len);
        let found = enough.min_by_key(|(_, buffer)| buffer.len()).map(|(index, _)| index);
        let shorter = if found.is_none() { mem::take(&mut *free) } else { Vec::new() };
        let found = found.map(|index| free.swap_remove(index));
        drop(free);
        drop(shorter); // with nothing locked
        found
    }

    /// How many elements each of the arrays has that were given back.
    #[cfg(test)]
    pub(in crate::device) fn lengths(&self) -> Vec<usize> {
        lock(&self.0).iter().map(Buffer::len).collect()
    }
}

impl<A> Deref for Room<'_, A> {
    type Target = Buffer<A>;

    fn deref(&self) -> &Buffer<A> {
        &self.part
    }
}

impl<A> DerefMut for Room<'_, A> {
    fn deref_mut(&mut self) -> &mut Buffer<A> {
        &mut self.part
    }
}

impl<A> Drop for Room<'_, A> {
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
            let kept = pool.room(&device, Some(stream), Contents::LOGARITHMS, 300)?;
            assert_eq!((kept.len(), pool.lengths()), (300, vec![200]));
            Ok(())
        })?;
        assert_eq!(pool.lengths(), [200]);
        Ok(())
    }
}
