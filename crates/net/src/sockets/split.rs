//! The halves of a split stream.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use airtcp_stack::tcp::{Chunk, Info};
use airtcp_types::SharedBytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::ready::{both, reads, writes};
use super::stream::{Inner, TcpStream};

/// The read half of a borrowed stream; from [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a Inner);

/// The write half of a borrowed stream; from [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a Inner);

/// The owned read half of a stream; from [`TcpStream::into_split`].
///
/// The connection is closed when both halves have been dropped.
#[derive(Debug)]
pub struct OwnedReadHalf(Arc<Inner>);

/// The owned write half of a stream; from [`TcpStream::into_split`].
///
/// Dropping it sends a FIN after the data already written; [`forget`](Self::forget) drops it
/// without.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    inner: Arc<Inner>,
    fin_on_drop: bool,
}

/// The error of reuniting halves of different streams. It returns both halves.
#[derive(Debug, thiserror::Error)]
#[error("the halves do not belong to the same stream")]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

pub(super) fn borrowed(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf(&stream.0), WriteHalf(&stream.0))
}

pub(super) fn owned(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let inner = stream.0;
    (OwnedReadHalf(inner.clone()), OwnedWriteHalf { inner, fin_on_drop: true })
}

impl OwnedReadHalf {
    /// Reunites the halves of a stream.
    ///
    /// # Errors
    /// The halves belong to different streams; the error returns both.
    pub fn reunite(self, mut other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if Arc::ptr_eq(&self.0, &other.inner) {
            other.fin_on_drop = false;
            Ok(TcpStream(self.0))
        } else {
            Err(ReuniteError(self, other))
        }
    }
}

impl OwnedWriteHalf {
    /// Drops the half without sending a FIN. The FIN is sent when the other half is dropped.
    pub fn forget(mut self) {
        self.fin_on_drop = false;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.fin_on_drop {
            // Fails if the connection has already ended.
            let _ = self.inner.shutdown();
        }
    }
}

/// Implements the methods and traits of a half.
macro_rules! half {
    ($half:ident $(<$life:lifetime>)?, $this:ident => $inner:expr, read) => {
        both!($half $(<$life>)?, $this => $inner);
        reads!($half $(<$life>)?, $this => $inner);

        impl AsyncRead for $half $(<$life>)? {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let $this = &*self;
                $inner.poll_read(context, buf)
            }
        }
    };
    ($half:ident $(<$life:lifetime>)?, $this:ident => $inner:expr, write) => {
        both!($half $(<$life>)?, $this => $inner);
        writes!($half $(<$life>)?, $this => $inner);

        impl AsyncWrite for $half $(<$life>)? {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $inner.poll_write(context, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $inner.poll_write(context, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                let $this = &*self;
                Poll::Ready($inner.shutdown())
            }
        }
    };
}

half!(ReadHalf<'_>, half => half.0, read);
half!(OwnedReadHalf, half => half.0, read);
half!(WriteHalf<'_>, half => half.0, write);
half!(OwnedWriteHalf, half => half.inner, write);
