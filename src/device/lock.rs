//! Locking.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; what a panicking thread left behind is as good as any, as every change here is of one
/// step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
