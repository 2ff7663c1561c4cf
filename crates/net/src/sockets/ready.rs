//! Readiness of streams, and non-blocking calls.

use std::io::{self, IoSlice, IoSliceMut};
use std::task::{Context, Poll, ready};

use airtcp_stack::host::{HostError, SocketId};
use airtcp_stack::tcp::State;
use tokio::io::{Interest, ReadBuf, Ready};
use tokio::task::coop;

use super::core::Core;
use super::stream::{Inner, TcpStream, found};
use crate::wakers::Direction;

impl Inner {
    /// Waits until the stream is ready in one of the requested ways. Any number of tasks may wait.
    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        coop::consume_budget().await;
        let watchers = self.shared().with(|core, _| core.watchers(self.id))?;
        loop {
            // Registered before the check, so that a change between check and wait is not missed.
            let changed = watchers.notified();
            let ready = self.shared().look(|core, _| {
                let ready = readiness(core, self.id)? & asked_for(interest);
                if ready.is_empty() {
                    core.alive()?
                }
                Ok::<_, io::Error>(ready)
            })?;
            if !ready.is_empty() {
                return Ok(ready);
            }
            changed.await;
        }
    }

    pub(super) fn poll_ready(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<()>> {
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        in_turn(context, |context| {
            self.shared().with(|core, _| {
                let ready = readiness(core, self.id)? & asked_for(interest);
                if ready.is_empty() {
                    core.wait(self.id, direction, context)
                } else {
                    Poll::Ready(Ok(()))
                }
            })
        })
    }

    pub(super) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.shared().with(|core, now| {
            let read = self.receive(core, now, buf)?;
            or_would_block(core, read)
        })
    }

    pub(super) fn try_read_vectored(&self, parts: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.shared().with(|core, now| {
            let mut read = None;
            for part in parts.iter_mut().filter(|part| !part.is_empty()) {
                match self.receive(core, now, part) {
                    Ok(Some(more)) => {
                        read = Some(read.unwrap_or(0) + more);
                        if more < part.len() {
                            break;
                        }
                    }
                    Ok(None) => break,
                    // If this call has read data, the next call returns the error.
                    Err(_) if read.is_some() => break,
                    Err(error) => return Err(error),
                }
            }
            or_would_block(core, read)
        })
    }

    pub(super) fn try_write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.shared().with(|core, now| {
            let written = self.send(core, now, parts)?;
            or_would_block(core, written)
        })
    }

    pub(super) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(Interest::READABLE).await?;
            // Another task may have read the data meanwhile.
            if let Some(seen) = self.shared().look(|core, _| self.look_at(core, buf))? {
                return Ok(seen);
            }
        }
    }

    pub(super) fn poll_peek(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let unfilled = buf.initialize_unfilled();
        let seen = in_turn(context, |context| {
            self.shared().with(|core, _| match self.look_at(core, unfilled)? {
                Some(seen) => Poll::Ready(Ok(seen)),
                None => core.wait(self.id, Direction::Read, context),
            })
        });
        seen.map_ok(|seen| {
            buf.advance(seen);
            seen
        })
    }

    /// Copies the available data without removing it; `None` if there is none.
    fn look_at(&self, core: &Core, buf: &mut [u8]) -> io::Result<Option<usize>> {
        found(core, core.host.tcp(self.id).and_then(|tcp| Ok(tcp.peek(buf)?)))
    }
}

impl TcpStream {
    /// Polls [`readable`](Self::readable). Only the last task that polls to read or to peek is
    /// woken.
    ///
    /// # Errors
    /// As [`readable`](Self::readable).
    pub fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(context, Direction::Read)
    }

    /// Polls [`writable`](Self::writable). Only the last task that polls to write is woken.
    ///
    /// # Errors
    /// As [`writable`](Self::writable).
    pub fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(context, Direction::Write)
    }
}

/// Polls within the task's cooperative budget, as tokio's sockets do: a task whose calls are always
/// ready yields now and then to other tasks, above all to the driver.
pub(super) fn in_turn<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let budget = ready!(coop::poll_proceed(context));
    let polled = poll(context);
    if polled.is_ready() {
        budget.made_progress();
    }
    polled
}

/// Returns the full readiness of a stream, as epoll would report it.
fn readiness(core: &Core, id: SocketId) -> io::Result<Ready> {
    let gone = |error: HostError| core.alive().err().unwrap_or_else(|| error.into());
    let known = core.host.readiness(id).map_err(gone)?;
    let tcp = core.host.tcp(id).map_err(gone)?;
    let (heard_fin, sent_fin) = match tcp.state() {
        State::CloseWait => (true, false),
        State::Closing | State::LastAck | State::TimeWait | State::Closed => (true, true),
        _ => (false, false),
    };
    let mut ready = Ready::EMPTY;
    for (is_so, what) in [
        (known.readable, Ready::READABLE),
        (known.writable, Ready::WRITABLE),
        (heard_fin, Ready::READ_CLOSED),
        (heard_fin && sent_fin, Ready::WRITE_CLOSED),
        (tcp.error().is_some(), Ready::ERROR),
    ] {
        if is_so {
            ready |= what;
        }
    }
    Ok(ready)
}

/// Returns the readiness that satisfies an interest.
pub(super) fn asked_for(interest: Interest) -> Ready {
    let mut mask = Ready::EMPTY;
    for (asked, what) in [
        (interest.is_readable(), Ready::READABLE | Ready::READ_CLOSED),
        (interest.is_writable(), Ready::WRITABLE | Ready::WRITE_CLOSED),
        (interest.is_error(), Ready::ERROR),
    ] {
        if asked {
            mask |= what;
        }
    }
    mask
}

/// Returns `WouldBlock` for an operation that has to wait, or the reason why waiting is useless.
pub(super) fn or_would_block<T>(core: &Core, done: Option<T>) -> io::Result<T> {
    match done {
        Some(done) => Ok(done),
        None => Err(core.alive().err().unwrap_or_else(|| io::ErrorKind::WouldBlock.into())),
    }
}

/// The methods of types that read.
macro_rules! reads {
    ($type:ident $(<$life:lifetime>)?, $this:ident => $inner:expr) => {
        impl $type $(<$life>)? {
            /// Waits until the stream is readable: it has data, its end was reached, or a read
            /// returns an error.
            ///
            /// Cancel-safe; any number of tasks may wait at once, also while another one reads.
            ///
            /// # Errors
            /// `NotConnected` or `NetworkDown`: the stack has ended.
            pub async fn readable(&self) -> io::Result<()> {
                let $this = self;
                $inner.ready(tokio::io::Interest::READABLE).await.map(drop)
            }

            /// Waits for data and moves at most 64 KiB of it into `chunk`, without a copy; returns
            /// the number of bytes, 0 after the peer's FIN.
            ///
            /// `chunk` keeps its content until more data or the FIN arrives. Its memory is reused,
            /// so use one chunk for all reads of a loop. Cancel-safe.
            ///
            /// ```
            /// # async fn count(mut stream: airtcp_net::TcpStream) -> std::io::Result<usize> {
            /// let mut chunk = airtcp_stack::Chunk::default();
            /// let mut lines = 0;
            /// while stream.read_chunk(&mut chunk).await? > 0 {
            ///     lines += chunk.iter().filter(|&&byte| byte == b'\n').count();
            /// }
            /// # Ok(lines)
            /// # }
            /// ```
            ///
            /// # Errors
            /// As with reading.
            pub async fn read_chunk(&mut self, chunk: &mut Chunk) -> io::Result<usize> {
                std::future::poll_fn(|context| self.poll_read_chunk(context, chunk)).await
            }

            /// Polls [`read_chunk`](Self::read_chunk). Only the last task that polls to read or to
            /// peek is woken.
            ///
            /// # Errors
            /// As [`read_chunk`](Self::read_chunk).
            pub fn poll_read_chunk(
                &mut self,
                context: &mut Context<'_>,
                chunk: &mut Chunk,
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $inner.poll_read_chunk(context, chunk)
            }

            /// Reads the available data into `buf`, without waiting; returns the number of bytes, 0
            /// after the peer's FIN.
            ///
            /// # Errors
            /// `WouldBlock`: no data is available; otherwise as with reading.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                let $this = self;
                $inner.try_read(buf)
            }

            /// Like [`try_read`](Self::try_read), into several buffers.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_vectored(
                &self,
                bufs: &mut [std::io::IoSliceMut<'_>],
            ) -> io::Result<usize> {
                let $this = self;
                $inner.try_read_vectored(bufs)
            }

            /// Waits for data and copies it into `buf`, without removing it; returns the number of
            /// bytes, 0 after the peer's FIN.
            ///
            /// Cancel-safe.
            ///
            /// # Errors
            /// As with reading.
            pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
                let $this = self;
                $inner.peek(buf).await
            }

            /// Polls [`peek`](Self::peek). Only the last task that polls to read or to peek is
            /// woken.
            ///
            /// # Errors
            /// As [`peek`](Self::peek).
            pub fn poll_peek(
                &self,
                context: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                let $this = self;
                $inner.poll_peek(context, buf)
            }
        }
    };
}

/// The methods of types that write.
macro_rules! writes {
    ($type:ident $(<$life:lifetime>)?, $this:ident => $inner:expr) => {
        impl $type $(<$life>)? {
            /// Waits until the stream is writable: it accepts data, or a write returns an error.
            ///
            /// Cancel-safe; any number of tasks may wait at once, also while another one writes.
            ///
            /// # Errors
            /// `NotConnected` or `NetworkDown`: the stack has ended.
            pub async fn writable(&self) -> io::Result<()> {
                let $this = self;
                $inner.ready(tokio::io::Interest::WRITABLE).await.map(drop)
            }

            /// Waits for room and moves as much of `chunk` as fits into the send buffer, without a
            /// copy; removes these bytes from `chunk` and returns their number.
            ///
            /// The memory behind `chunk` is kept until the peer has acknowledged the data; memory
            /// limits count only the bytes written. Chunks below 4 KiB are copied, and a device
            /// without offload copies each packet. Cancel-safe.
            ///
            /// ```
            /// # async fn send(mut stream: airtcp_net::TcpStream) -> std::io::Result<()> {
            /// let page = std::sync::Arc::new(vec![0; 100_000]);
            /// let mut chunk = airtcp_types::SharedBytes::new(&page, 0..page.len());
            /// while !chunk.is_empty() {
            ///     stream.write_chunk(&mut chunk).await?;
            /// }
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// # Errors
            /// As with writing.
            pub async fn write_chunk(&mut self, chunk: &mut SharedBytes) -> io::Result<usize> {
                std::future::poll_fn(|context| self.poll_write_chunk(context, chunk)).await
            }

            /// Polls [`write_chunk`](Self::write_chunk). Only the last task that polls to write is
            /// woken.
            ///
            /// # Errors
            /// As [`write_chunk`](Self::write_chunk).
            pub fn poll_write_chunk(
                &mut self,
                context: &mut Context<'_>,
                chunk: &mut SharedBytes,
            ) -> Poll<io::Result<usize>> {
                let $this = &*self;
                $inner.poll_write_chunk(context, chunk)
            }

            /// Writes as much of `buf` as fits without waiting; returns the number of bytes.
            ///
            /// # Errors
            /// `WouldBlock`: there is no room; otherwise as with writing.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                let $this = self;
                $inner.try_write(&[IoSlice::new(buf)])
            }

            /// Like [`try_write`](Self::try_write), from several buffers.
            ///
            /// # Errors
            /// As [`try_write`](Self::try_write).
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                let $this = self;
                $inner.try_write(bufs)
            }
        }
    };
}

/// The methods of types in either direction.
macro_rules! both {
    ($type:ident $(<$life:lifetime>)?, $this:ident => $inner:expr) => {
        impl $type $(<$life>)? {
            /// Waits until the stream is ready in one of the requested ways; returns its readiness.
            ///
            /// The readiness is never false, unless another task reads or writes first.
            /// Cancel-safe.
            ///
            /// # Errors
            /// `NotConnected` or `NetworkDown`: the stack has ended.
            pub async fn ready(
                &self,
                interest: tokio::io::Interest,
            ) -> io::Result<tokio::io::Ready> {
                let $this = self;
                $inner.ready(interest).await
            }

            /// The local address.
            ///
            /// # Errors
            /// `NotConnected`: the stack has ended.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                let $this = self;
                $inner.local_addr()
            }

            /// The peer's address.
            ///
            /// # Errors
            /// `NotConnected`: the stack has ended.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                let $this = self;
                $inner.peer_addr()
            }

            /// A snapshot of the connection, with the fields of `ss -ti`.
            ///
            /// # Errors
            /// `NotConnected`: the stack has ended.
            pub fn info(&self) -> io::Result<Info> {
                let $this = self;
                $inner.info()
            }
        }
    };
}

pub(super) use {both, reads, writes};
