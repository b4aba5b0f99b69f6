//! The threads that compute, also in a forked process.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Computes with the threads of this process. These are rayon's, except in a process that `fork`
/// made after they were started (such as a worker of a data loader): it has none of them, and gets
/// new ones.
pub fn within<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    static FIRST: OnceLock<u32> = OnceLock::new();
    static FORKED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

    let this = process::id();
    if *FIRST.get_or_init(|| this) == this {
        return work();
    }
    let pool = {
        let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
        match *forked {
            Some((process, pool)) if process == this => Some(pool),
            _ => {
                // Never dropped: a drop waits for the threads, and in a further fork for threads
                // that do not exist.
                let made = ThreadPoolBuilder::new().build().ok();
                let pool: Option<&'static ThreadPool> =
                    made.map(|pool| &*Box::leak(Box::new(pool)));
                *forked = pool.map(|pool| (this, pool));
                pool
            }
        }
    };
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
