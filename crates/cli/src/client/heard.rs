//! A connection that reports a reset only after all data received before it was read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that hides resets from the writer; the reader gets the error after the data that
/// arrived before it. A server may answer before it has read all of a request and then reset the
/// connection; the response says why.
pub(super) struct Heard<S>(pub(super) S);

/// Leaves the writer pending after a reset. The reset also wakes the reader, which returns the
/// error.
fn unless_reset<T>(polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
    match polled {
        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => Poll::Pending,
        other => other,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        unless_reset(Pin::new(&mut self.0).poll_write(context, data))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        unless_reset(Pin::new(&mut self.0).poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
