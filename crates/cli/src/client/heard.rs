//! A connection that a reset ends only once all that came before it was read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose writer never hears of a reset: the reader does, behind what arrived before it. A
/// server that has heard enough of a request answers and resets the connection, and the answer says
/// why.
pub(super) struct Heard<S>(pub(super) S);

/// A reset leaves the writer waiting. The reader, whom it woke, tells.
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
