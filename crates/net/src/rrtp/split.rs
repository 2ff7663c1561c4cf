//! The halves of a split stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stream::Inner;

/// The owned read half of a stream; from [`RrtpStream::into_split`](super::RrtpStream::into_split).
///
/// The connection is released when both halves have been dropped.
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<Inner>);

/// The owned write half of a stream; from
/// [`RrtpStream::into_split`](super::RrtpStream::into_split).
///
/// Dropping it finishes the sending direction after the data already written.
#[derive(Debug)]
pub struct OwnedWriteHalf(Arc<Inner>);

impl OwnedReadHalf {
    pub(super) const fn new(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

impl OwnedWriteHalf {
    pub(super) const fn new(inner: Arc<Inner>) -> Self {
        Self(inner)
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        // Fails if the connection has already ended.
        let _ = self.0.shutdown();
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(context, buf)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, data)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.shutdown())
    }
}
