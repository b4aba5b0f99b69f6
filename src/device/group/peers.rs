//! Arrays that ranks in different processes of a host reach in each other's GPU.

use std::fs;
use std::time::Instant;

use super::exchange::Post;
use super::rank::label;
use crate::Error;
use crate::device::Buffer;

const HANDLE_BYTES: usize = 64;

/// Returns the arrays of all ranks. All ranks pass one of the same length. If a rank cannot reach
/// another, all of them get an error with both ranks and the reason.
///
/// An array that a rank has published stays until its process ends, because the others may have it
/// open until then.
pub(super) fn of_processes(
    (number, size): (usize, usize),
    post: &dyn Post,
    mine: Buffer<u8>,
    until: Instant,
) -> Result<Vec<Buffer<u8>>, Error> {
    let refused = |why: String| Error::Unsupported {
        engine: label(number, size),
        what: format!("mailboxes between these processes: {why}; take another way, or one process"),
    };
    let host = host();
    let handle = mine.publish();
    let letter = match &handle {
        Ok(handle) => [&handle[..], host.as_bytes()].concat(),
        // Shorter than a handle: so the others see that this rank has no mailbox to open.
        Err(_) => Vec::new(),
    };
    let letters = post.gather("publishing mailboxes", letter, until)?;
    let open = |(rank, letter): (usize, &[u8])| {
        if rank == number {
            return mine.slice(..).map_err(|error| error.to_string());
        }
        let Some((handle, there)) = letter.split_first_chunk::<HANDLE_BYTES>() else {
            return Err(format!(
                "{} has no mailbox that other processes can open",
                label(rank, size)
            ));
        };
        if host.is_empty() || there != host.as_bytes() {
            return Err(format!("{} is not known to be on this host", label(rank, size)));
        }
        let opened = Buffer::of_process(mine.device(), *handle, mine.len());
        opened.map_err(|error| {
            format!("the mailbox of {} cannot be opened: {error}", label(rank, size))
        })
    };
    let letters = letters.iter().map(|letter| &**letter).enumerate();
    let outcome = match handle {
        Ok(_) => letters.map(open).collect::<Result<Vec<_>, _>>(),
        Err(error) => Err(error.to_string()),
    };
    // All or none, so that no rank waits for mail that does not come.
    let why = outcome.as_ref().err().cloned().unwrap_or_default();
    let whys = post.gather("opening mailboxes", why.into_bytes(), until)?;
    let failed = whys.iter().enumerate().find(|(_, why)| !why.is_empty());
    match (outcome, failed) {
        (Ok(all), None) => Ok(all),
        (Err(why), _) => Err(refused(why)),
        (_, Some((rank, why))) => {
            let why = String::from_utf8_lossy(why);
            Err(refused(format!("{} reports: {why}", label(rank, size))))
        }
    }
}

/// Returns what identifies this host until it is started again; empty if nothing does.
fn host() -> String {
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.unwrap_or_default().trim().to_owned()
}
