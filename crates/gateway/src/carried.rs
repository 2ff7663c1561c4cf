//! A carrier connection in use, and the counters of all of them.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use airtcp_net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::sync::Notify;

use crate::{Refusal, Side};

/// A connection between a program and its destination, as the near gateway sees it.
///
/// It is reset when the far gateway is replaced by another instance, or has not answered for the
/// hold. Dropping it closes it as dropping a `TcpStream` does.
#[derive(Debug)]
pub struct Carried {
    stream: TcpStream,
    totals: Arc<Totals>,
    resets: Arc<Resets>,
    /// The number of resets when it was opened.
    since: u64,
    /// Whether it is counted as an open connection.
    counted: bool,
}

/// Sums over all connections of a gateway.
#[derive(Default, Debug)]
pub(crate) struct Totals {
    pub(crate) opened: AtomicU64,
    closed: AtomicU64,
    /// Bytes that the gateway wrote to its carrier connections.
    pub(crate) sent: AtomicU64,
    /// Bytes that the gateway read from its carrier connections.
    pub(crate) received: AtomicU64,
    refused: Mutex<BTreeMap<&'static str, u64>>,
}

impl Totals {
    pub(crate) fn open(&self) -> usize {
        // `closed` is loaded first, so that the difference is never negative.
        let closed = self.closed.load(Relaxed);
        self.opened.load(Relaxed).saturating_sub(closed) as usize
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        *lock(&self.refused).entry(refusal.name()).or_default() += 1;
    }

    pub(crate) fn refused(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.refused).clone()
    }
}

/// Resets all carried connections of one peer.
#[derive(Default, Debug)]
pub(crate) struct Resets {
    count: AtomicU64,
    changed: Notify,
}

impl Resets {
    pub(crate) fn reset(&self) {
        self.count.fetch_add(1, Relaxed);
        self.changed.notify_waiters();
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Waits until the number of resets differs from `since`.
    pub(crate) async fn after(&self, since: u64) {
        loop {
            // Registered before the check, so that a reset in between is not missed.
            let changed = self.changed.notified();
            if self.count() != since {
                return;
            }
            changed.await;
        }
    }
}

impl Carried {
    pub(crate) fn new(
        stream: TcpStream,
        totals: Arc<Totals>,
        resets: Arc<Resets>,
        since: u64,
    ) -> Self {
        Self { stream, totals, resets, since, counted: false }
    }

    /// Counts the connection as open.
    pub(crate) fn count(&mut self) {
        self.totals.opened.fetch_add(1, Relaxed);
        self.counted = true;
    }

    /// Keeps the connection alive despite earlier resets.
    pub(crate) fn renew(&mut self) {
        self.since = self.resets.count();
    }

    fn check(&self) -> io::Result<()> {
        if self.resets.count() == self.since {
            return Ok(());
        }
        let why = "the other gateway was restarted or has not answered for too long";
        Err(io::Error::new(io::ErrorKind::ConnectionReset, why))
    }

    fn on_read(&self, bytes: usize) {
        self.totals.received.fetch_add(bytes as u64, Relaxed);
    }

    fn on_written(&self, bytes: usize) {
        self.totals.sent.fetch_add(bytes as u64, Relaxed);
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.check().is_err() {
            Side::abort(&mut self.stream);
        }
        self.totals.closed.fetch_add(u64::from(self.counted), Relaxed);
    }
}

impl Side for Carried {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        tokio::select! {
            biased;
            ready = self.stream.ready(interest) => ready,
            () = self.resets.after(self.since) => Ok(Ready::ERROR),
        }
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.try_read(buf).inspect(|&read| self.on_read(read))
    }

    fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.stream.try_write(buf).inspect(|&written| self.on_written(written))
    }

    fn send_fin(&mut self) -> io::Result<()> {
        self.stream.send_fin()
    }

    fn abort(&mut self) {
        Side::abort(&mut self.stream);
    }
}

impl AsyncRead for Carried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buf))?;
        self.on_read(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Carried {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, buf))?;
        self.on_written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.send_fin())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can leave the data half changed: a poisoned lock is safe to use.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
