//! The threads that compute: as many as the caller wants, also in a forked process.

use std::collections::HashMap;
use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Computes with `threads` threads, or with all of them if `threads` is 0.
///
/// All of them are rayon's, except in a process that `fork` made after they were started (such as a
/// worker of a data loader). It has none of the threads, and gets new ones.
pub fn within<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    static FIRST: OnceLock<u32> = OnceLock::new();

    let this = process::id();
    let is_first = *FIRST.get_or_init(|| this) == this;
    if is_first && threads == 0 {
        return work();
    }
    match pool(this, threads) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Returns the pool of a process with this number of threads, which is made once.
///
/// A pool is never dropped: a drop waits for the threads, and in a forked process for threads that
/// do not exist.
fn pool(process: u32, threads: usize) -> Option<&'static ThreadPool> {
    type Pools = HashMap<(u32, usize), &'static ThreadPool>;
    static POOLS: Mutex<Option<Pools>> = Mutex::new(None);

    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let pools = pools.get_or_insert_default();
    if let Some(pool) = pools.get(&(process, threads)) {
        return Some(pool);
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build().ok()?;
    let pool: &'static ThreadPool = Box::leak(Box::new(pool));
    pools.insert((process, threads), pool);
    Some(pool)
}
