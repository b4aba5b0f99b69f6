//! What is sent: some words, or a file piece by piece, so that a large one costs no memory.

use std::fs::File;
use std::io::{self, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::files;

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 * 1024;

/// The body of an answer.
pub(super) struct Content {
    words: Bytes,
    file: Option<File>,
    /// Bytes of the file that are still to be read.
    left: u64,
}

impl Content {
    /// These words.
    pub(super) fn text(words: &'static str) -> Self {
        Self { words: Bytes::from_static(words.as_bytes()), file: None, left: 0 }
    }

    /// A file, as long as it was when it was opened.
    pub(super) fn of(file: files::Regular) -> Self {
        Self { words: Bytes::new(), file: Some(file.file), left: file.length }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(words))));
        }
        let wanted = usize::try_from(self.left).map_or(PIECE, |left| left.min(PIECE));
        let mut piece = vec![0; wanted];
        // A regular file: this waits for a disk at most.
        let read = self.file.as_mut().map_or(Ok(0), |file| file.read(&mut piece));
        Poll::Ready(Some(match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                piece.truncate(read);
                self.left -= read as u64;
                Ok(Frame::data(piece.into()))
            }
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.words.is_empty() && self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.words.len() as u64 + self.left)
    }
}
