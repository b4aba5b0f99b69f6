//! Arrays that ranks in different processes of a host reach in each other's GPU.

use std::fs;
use std::time::Instant;

use super::link::{Link, label};
use crate::Error;
use crate::device::Buffer;

const HANDLE_BYTES: usize = 64;

/// Returns the arrays of all ranks. All ranks pass one of the same length. If a rank cannot reach
/// another, all of them get an error with both ranks and the reason.
///
/// An array that a rank has published stays until its process ends, because the others may have it
/// open until then.
pub(super) fn of_processes(
    link: &Link,
    mine: &Buffer<u8>,
    until: Instant,
) -> Result<Vec<Buffer<u8>>, Error> {
    let host = host();
    let handle = mine.publish();
    let letter = match &handle {
        Ok(handle) => [&handle[..], host.as_bytes()].concat(),
        // Shorter than a handle: so the others see that this rank has no mailbox to open.
        Err(_) => Vec::new(),
    };
    let letters = link.post.gather("publishing mailboxes", &letter, until)?;
    let open = |(rank, letter): (usize, &[u8])| {
        if rank == link.number {
            return mine.slice(..).map_err(|error| error.to_string());
        }
        let other = label(rank, link.size);
        let Some((handle, there)) = letter.split_first_chunk::<HANDLE_BYTES>() else {
            return Err(format!("{other} has no mailbox that other processes can open"));
        };
        if host.is_empty() || there != host.as_bytes() {
            return Err(format!("{other} is not known to be on this host"));
        }
        Buffer::of_process(mine.device(), *handle, mine.len())
            .map_err(|error| format!("the mailbox of {other} cannot be opened: {error}"))
    };
    let outcome = match handle {
        Ok(_) => letters.iter().map(|letter| &**letter).enumerate().map(open).collect(),
        Err(error) => Err(error.to_string()),
    };
    link.all_have("opening mailboxes", outcome, until)?.map_err(|why| Error::Unsupported {
        engine: link.label(),
        what: format!("mailboxes between these processes: {why}; take another way, or one process"),
    })
}

/// Returns what identifies this host until it is started again; empty if nothing does.
fn host() -> String {
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.unwrap_or_default().trim().to_owned()
}
