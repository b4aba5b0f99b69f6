//! Locking that ignores panics of other threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. What a panicking thread left behind is valid, because every change under a lock is a
/// single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
