//! The body of a response: text, or a part of a file that is read as the peer accepts it.

use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

use super::CHUNK;

/// The body of a response. A file's body holds one chunk and reads the next ahead.
#[derive(Debug)]
pub(crate) struct Body {
    /// The number of bytes that remain.
    left: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Bytes(Bytes),
    File { file: Arc<std::fs::File>, next: u64, end: u64, reading: JoinHandle<io::Result<Bytes>> },
}

impl Body {
    /// Sends `length` bytes of `file` from the position `start`. Needs a tokio runtime.
    pub(crate) fn from_file(file: std::fs::File, start: u64, length: u64) -> Self {
        let file = Arc::new(file);
        let end = start.saturating_add(length);
        let (reading, next) = read_at(&file, start, end);
        Self { left: length, source: Source::File { file, next, end, reading } }
    }

    /// Removes the content.
    pub(super) fn clear(&mut self) {
        *self = Self::from(String::new());
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self { left: text.len() as u64, source: Source::Bytes(text.into()) }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        if this.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = match &mut this.source {
            Source::Bytes(bytes) => std::mem::take(bytes),
            Source::File { file, next, end, reading } => {
                let chunk =
                    ready!(Pin::new(&mut *reading).poll(cx)).map_err(io::Error::other)??;
                if *next < *end {
                    (*reading, *next) = read_at(file, *next, *end);
                }
                chunk
            }
        };
        this.left = this.left.saturating_sub(chunk.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Starts to read the next chunk before `end` in the background, and returns the position after it.
fn read_at(file: &Arc<std::fs::File>, from: u64, end: u64) -> (JoinHandle<io::Result<Bytes>>, u64) {
    let length = usize::try_from(end - from).unwrap_or(CHUNK).min(CHUNK);
    let file = Arc::clone(file);
    let reading = spawn_blocking(move || {
        let mut chunk = vec![0; length];
        // If the file has become shorter, the connection is aborted: Content-Length was already
        // sent.
        file.read_exact_at(&mut chunk, from)?;
        Ok(chunk.into())
    });
    (reading, from + length as u64)
}
