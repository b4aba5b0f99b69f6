//! Bounds of a whole launch: instructions, bytes of the host, and cancellation by the caller.
//!
//! [`Bounds`] belong to the launch and are shared by the ranges of its blocks, which may run on
//! several cores. Each range has an [`Account`]. It draws instructions from the bounds a few
//! thousand at a time, so that cores do not contend for one counter with every instruction. When
//! the range ends, it gives back the remaining instructions and the bytes of what it allocated.
//! Tested here, and by `tests/suite/bounds.rs`.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::fault::{Fault, Result};
use super::finding::ReportKind;

/// The most instructions that a range draws at once, worth less than a millisecond.
const MOST_AT_ONCE: u64 = 1 << 14;
/// Near the end, a range draws only this fraction of what is left, so that others find some, too.
const SHARES: u64 = 64;

/// The bounds of a launch, and what it has used of them.
#[derive(Debug)]
pub(crate) struct Bounds<'a> {
    instructions: u64,
    undrawn: AtomicU64,
    host_bytes: u64,
    used: AtomicU64,
    cancel: Option<&'a AtomicBool>,
}

impl<'a> Bounds<'a> {
    pub(crate) fn new(
        instructions: u64,
        host_bytes: u64,
        cancel: Option<&'a AtomicBool>,
    ) -> Bounds<'a> {
        let (undrawn, used) = (AtomicU64::new(instructions), AtomicU64::new(0));
        Bounds { instructions, undrawn, host_bytes, used, cancel }
    }

    /// Returns the bounds for a launch that has already executed `executed` instructions.
    pub(crate) fn after(self, executed: u64) -> Bounds<'a> {
        Bounds { undrawn: AtomicU64::new(self.instructions.saturating_sub(executed)), ..self }
    }

    /// Returns a fault if the caller has cancelled the launch.
    pub(crate) fn go_on(&self) -> Result<()> {
        match self.cancel {
            Some(flag) if flag.load(Relaxed) => Err(self.cancelled()),
            _ => Ok(()),
        }
    }

    /// Takes bytes of the host until they are given back; `what` (a plural) is their purpose.
    pub(crate) fn take(&self, bytes: u64, what: &str) -> Result<()> {
        let more = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.host_bytes);
        match self.used.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => Err(self.no_bytes(bytes, used, what)),
        }
    }

    /// Gives bytes of the host back.
    pub(crate) fn give(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    fn draw(&self) -> Result<u64> {
        self.go_on()?;
        let part = |left: u64| (left / SHARES).clamp(1, MOST_AT_ONCE);
        match self.undrawn.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(part(left))) {
            Ok(left) => Ok(part(left)),
            Err(_) => Err(self.no_instructions()),
        }
    }

    #[cold]
    fn cancelled(&self) -> Box<Fault> {
        let drawn = self.instructions - self.undrawn.load(Relaxed);
        let message = format!(
            "is cancelled, after at most {drawn} of the {} instructions that the launch may execute",
            self.instructions
        );
        Fault::new(ReportKind::Cancelled, 0, message)
    }

    #[cold]
    fn no_instructions(&self) -> Box<Fault> {
        let message = format!(
            "is over the launch's bound of {} instructions, all of which are used up",
            self.instructions
        );
        Fault::new(ReportKind::Instructions, 0, message)
    }

    #[cold]
    fn no_bytes(&self, asked: u64, used: u64, what: &str) -> Box<Fault> {
        let message = format!(
            "needs {asked} more bytes of the host for {what}: the launch's bound is {} bytes, of which it uses \
             {used}",
            self.host_bytes
        );
        Fault::new(ReportKind::HostBytes, 0, message)
    }
}

/// The share of a range of blocks in the bounds of its launch.
#[derive(Debug)]
pub(crate) struct Account<'a> {
    pub(crate) bounds: &'a Bounds<'a>,
    /// Instructions that have been drawn but not executed.
    instructions: u64,
    bytes: u64,
}

impl<'a> Account<'a> {
    pub(crate) fn new(bounds: &'a Bounds<'a>) -> Account<'a> {
        Account { bounds, instructions: 0, bytes: 0 }
    }

    /// Takes one instruction, which is about to be executed.
    #[inline(always)]
    pub(crate) fn instruction(&mut self) -> Result<()> {
        if self.instructions == 0 {
            self.instructions = self.bounds.draw()?;
        }
        self.instructions -= 1;
        Ok(())
    }

    /// Takes bytes of the host until the range has run.
    pub(crate) fn take(&mut self, bytes: u64, what: &str) -> Result<()> {
        self.bounds.take(bytes, what)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Makes space for one more element. The old allocation counts on, as during its copy.
    #[inline(always)]
    pub(crate) fn room<T>(&mut self, vec: &mut Vec<T>, what: &str) -> Result<()> {
        if vec.len() < vec.capacity() {
            return Ok(());
        }
        self.room_for(vec, vec.capacity().saturating_mul(2).max(4), what)
    }

    /// Makes space for `count` elements in all.
    #[inline(always)]
    pub(crate) fn room_for<T>(&mut self, vec: &mut Vec<T>, count: usize, what: &str) -> Result<()> {
        if vec.capacity() >= count {
            return Ok(());
        }
        self.take(bytes_of::<T>(count as u64), what)?;
        reserve(vec, count, what)
    }

    /// Makes space for one more entry.
    #[inline(always)]
    pub(crate) fn room_in<K: Eq + Hash, V>(
        &mut self,
        map: &mut HashMap<K, V>,
        what: &str,
    ) -> Result<()> {
        if map.len() < map.capacity() {
            return Ok(());
        }
        self.grow(map, what)
    }

    #[cold]
    fn grow<K: Eq + Hash, V>(&mut self, map: &mut HashMap<K, V>, what: &str) -> Result<()> {
        let more = map.len().max(64);
        let entries = map.len().saturating_add(more) as u64;
        // One place in eight stays empty, the number of places is a power of two, and each place
        // takes one byte of metadata.
        let places = (entries.saturating_mul(8) / 7).checked_next_power_of_two();
        let bytes = bytes_of::<(K, V)>(1) + 1;
        self.take(places.map_or(u64::MAX, |places| places.saturating_mul(bytes)), what)?;
        map.try_reserve(more).map_err(|_| refused(what))
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.bounds.give(self.bytes);
        self.bounds.undrawn.fetch_add(self.instructions, Relaxed);
    }
}

/// Returns the bytes of `length` elements.
pub(crate) fn bytes_of<T>(length: u64) -> u64 {
    length.saturating_mul(size_of::<T>() as u64)
}

/// Fills a vector with `count` copies of a value. The caller has taken the bytes.
pub(crate) fn refill<T: Clone>(vec: &mut Vec<T>, count: usize, value: T, what: &str) -> Result<()> {
    vec.clear();
    reserve(vec, count, what)?;
    vec.resize(count, value);
    Ok(())
}

/// Makes space for `length` elements in all. The caller has taken the bytes.
pub(crate) fn reserve<T>(vec: &mut Vec<T>, length: usize, what: &str) -> Result<()> {
    vec.try_reserve_exact(length.saturating_sub(vec.len())).map_err(|_| refused(what))
}

/// Returns the fault of an allocation that the bounds allow and the host refuses.
#[cold]
fn refused(what: &str) -> Box<Fault> {
    let message = format!("needs more memory for {what} than the host has");
    Fault::new(ReportKind::OutOfMemory, 0, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_has_every_instruction_of_the_bound() {
        for bound in [0, 1, 63, 64, 65, 1000, 5 << 20] {
            let bounds = Bounds::new(bound, 0, None);
            let mut account = Account::new(&bounds);
            let executed = (0..=bound).take_while(|_| account.instruction().is_ok()).count();
            assert_eq!(executed as u64, bound);
        }
    }

    #[test]
    fn several_ranges_have_no_more_than_the_bound_together() {
        let bounds = Bounds::new(1 << 20, 0, None);
        let executed: u64 = std::thread::scope(|scope| {
            let count = || {
                let mut account = Account::new(&bounds);
                (0..1 << 20).take_while(|_| account.instruction().is_ok()).count() as u64
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(executed, 1 << 20);
    }

    #[test]
    fn what_a_range_leaves_the_next_one_has() {
        let bounds = Bounds::new(100, 1000, None);
        for _ in 0..100 {
            let mut account = Account::new(&bounds);
            account.instruction().unwrap();
            account.take(900, "tests").unwrap();
            let fault = account.take(u64::MAX, "tests").unwrap_err();
            let message = format!(
                "needs {} more bytes of the host for tests: the launch's bound is 1000 bytes, of which it uses 900",
                u64::MAX
            );
            assert_eq!((fault.kind, fault.message), (ReportKind::HostBytes, message));
        }
        assert_eq!(Account::new(&bounds).instruction().unwrap_err().kind, ReportKind::Instructions);
    }

    #[test]
    fn growth_takes_at_least_what_it_allocates() {
        let bounds = Bounds::new(0, 100_000, None);
        let mut account = Account::new(&bounds);
        let mut vec: Vec<[u64; 4]> = Vec::new();
        while account.room(&mut vec, "tests").is_ok() {
            vec.push([0; 4]);
        }
        assert!(vec.len() > 1000 && bytes_of::<[u64; 4]>(vec.capacity() as u64) <= account.bytes);
        let before = account.bytes;
        let mut map = HashMap::new();
        while account.room_in(&mut map, "tests").is_ok() {
            map.insert(map.len(), 0_u64);
        }
        assert!(17 * map.capacity() as u64 <= account.bytes - before);
        drop(account);
        assert_eq!(bounds.used.load(Relaxed), 0);
    }
}
