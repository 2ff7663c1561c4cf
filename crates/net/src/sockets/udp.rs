//! A UDP socket.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use airtcp_stack::host::{HostError, SocketId};
use airtcp_types::FlowId;
use tokio::io::{Interest, ReadBuf, Ready};
use tokio::sync::Notify;
use tokio::task::coop;

use super::core::Core;
use super::ready::{asked_for, in_turn, or_would_block};
use super::socket::hop_limit;
use super::stack::Handle;
use crate::wakers::Direction;

/// A UDP socket; created by [`Stack::udp_bind`](super::Stack::udp_bind).
///
/// Dropping it discards the received datagrams that were not read; sent datagrams still leave.
#[derive(Debug)]
pub struct UdpSocket {
    handle: Handle,
    id: SocketId,
    notify: Arc<Notify>,
    /// Notified when there may be room to send.
    drained: Arc<Notify>,
}

impl UdpSocket {
    pub(super) fn new(handle: Handle, id: SocketId, notify: Arc<Notify>) -> Self {
        let drained = handle.shared().look(|core, _| core.drained.clone());
        Self { handle, id, notify, drained }
    }

    /// Sets the peer: [`send`](Self::send) sends to it, and datagrams from other sources are
    /// dropped from now on. Datagrams already received stay. If the peer has no socket at that
    /// port, sending or receiving returns `ConnectionRefused` once.
    ///
    /// # Errors
    /// `NetworkUnreachable`: the address cannot be that of a peer; `NotConnected` or `NetworkDown`
    /// once
    /// the stack has ended.
    pub async fn connect(&self, peer: SocketAddr) -> io::Result<()> {
        self.handle.shared().with(|core, _| {
            core.alive()?;
            core.host.udp_connect(self.id, peer).map_err(io::Error::from)
        })
    }

    /// The peer.
    ///
    /// # Errors
    /// `NotConnected`: the socket has no peer, or the stack has ended.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.udp_peer(self.id).map_err(io::Error::from))
    }

    /// Sends one datagram, and waits if the queue is full; returns its length in bytes.
    ///
    /// Cancel-safe: the datagram is sent whole or not at all.
    ///
    /// # Errors
    /// `InvalidInput`: longer than the MTU allows; `NetworkUnreachable`; `NotConnected` or
    /// `NetworkDown` once the stack has ended.
    pub async fn send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.once_there_is_room(|| self.try_send_to(data, to)).await
    }

    /// Like [`send_to`](Self::send_to), to the peer.
    ///
    /// # Errors
    /// `NotConnected`: the socket has no peer; otherwise as [`send_to`](Self::send_to).
    pub async fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.once_there_is_room(|| self.try_send(data)).await
    }

    /// Like [`send_to`](Self::send_to), without waiting.
    ///
    /// # Errors
    /// `WouldBlock`: the queue is full; otherwise as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, data: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.handle.shared().with(|core, _| {
            core.alive()?;
            sent(core.host.udp_send_to(self.id, data, to), data)
        })
    }

    /// Like [`send`](Self::send), without waiting.
    ///
    /// # Errors
    /// `WouldBlock`: the queue is full; otherwise as [`send`](Self::send).
    pub fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.handle.shared().with(|core, _| {
            core.alive()?;
            sent(core.host.udp_send(self.id, data), data)
        })
    }

    /// Waits for a datagram; returns its length in bytes and its source. Bytes that do not fit into
    /// `buf` are lost.
    ///
    /// Cancel-safe; several tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended or is about to end.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.once_there_is_one(|| self.try_recv_from(&mut *buf)).await
    }

    /// Like [`recv_from`](Self::recv_from), but returns only the length.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv_from(buf).await?.0)
    }

    /// Like [`recv_from`](Self::recv_from), without waiting.
    ///
    /// # Errors
    /// `WouldBlock`: no datagram has arrived; otherwise as [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.handle.shared().with(|core, _| {
            let received = core.host.udp_recv_from(self.id, buf);
            self.or_would_block(core, received)
        })
    }

    pub(super) fn try_recv_flow(&self, buf: &mut [u8]) -> io::Result<(usize, FlowId)> {
        self.handle.shared().with(|core, _| {
            let received = core.host.udp_recv_flow(self.id, buf);
            self.or_would_block(core, received)
        })
    }

    pub(super) fn try_send_from(&self, data: &[u8], flow: &FlowId) -> io::Result<usize> {
        self.handle.shared().with(|core, _| {
            core.alive()?;
            sent(core.host.udp_send_from(self.id, data, flow), data)
        })
    }

    pub(super) fn refuse(&self, flow: &FlowId) -> io::Result<()> {
        self.handle.shared().with(|core, now| {
            core.alive()?;
            core.host.udp_refuse(now, self.id, flow).map_err(io::Error::from)
        })
    }

    /// Like [`recv`](Self::recv), without waiting.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.try_recv_from(buf)?.0)
    }

    /// Like [`recv_from`](Self::recv_from), but leaves the datagram in the queue.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.once_there_is_one(|| self.try_peek_from(&mut *buf)).await
    }

    /// Like [`peek_from`](Self::peek_from), without waiting.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from).
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.handle.shared().with(|core, _| {
            let seen = core.host.udp_peek_from(self.id, buf);
            self.or_would_block(core, seen)
        })
    }

    /// Polls [`recv_from`](Self::recv_from). Only the last polling task is woken.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let unfilled = buf.initialize_unfilled();
        let received = in_turn(context, |context| {
            self.handle.shared().with(|core, _| match core.host.udp_recv_from(self.id, unfilled) {
                Ok(Some(received)) => Poll::Ready(Ok(received)),
                Ok(None) => core.wait(self.id, Direction::Read, context),
                Err(error) => Poll::Ready(Err(self.why(core, error))),
            })
        });
        received.map_ok(|(len, from)| {
            buf.advance(len);
            from
        })
    }

    /// Waits until the socket is ready in one of the requested ways; returns its readiness.
    ///
    /// Cancel-safe; any number of tasks may wait at once.
    ///
    /// # Errors
    /// `NotConnected` or `NetworkDown`: the stack has ended or is about to end.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        coop::consume_budget().await;
        loop {
            // Registered before the check, so that a change between check and wait is not missed.
            let (arrived, drained) = (self.notify.notified(), self.drained.notified());
            let ready = self.handle.shared().look(|core, _| {
                let known = core.host.readiness(self.id).map_err(|error| self.why(core, error))?;
                core.alive()?;
                let mut ready = Ready::EMPTY;
                if known.readable {
                    ready |= Ready::READABLE;
                }
                if core.host.udp_has_room() {
                    ready |= Ready::WRITABLE;
                }
                Ok::<_, io::Error>(ready & asked_for(interest))
            })?;
            if !ready.is_empty() {
                return Ok(ready);
            }
            tokio::select! {
                () = arrived => {}
                () = drained => {}
            }
        }
    }

    /// Waits until a datagram can be received.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Waits until a datagram can be sent.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    pub(super) async fn once_there_is_room<T>(
        &self,
        attempt: impl Fn() -> io::Result<T>,
    ) -> io::Result<T> {
        coop::consume_budget().await;
        loop {
            // Registered before the attempt, so that a turn of the driver in between is not missed.
            let drained = self.drained.notified();
            match attempt() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => drained.await,
                done => return done,
            }
        }
    }

    pub(super) async fn once_there_is_one<T>(
        &self,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        coop::consume_budget().await;
        loop {
            // Registered before the attempt, so that a datagram in between is not missed.
            let arrived = self.notify.notified();
            match attempt() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => arrived.await,
                done => return done,
            }
        }
    }

    fn or_would_block<T>(&self, core: &Core, done: Result<Option<T>, HostError>) -> io::Result<T> {
        or_would_block(core, done.map_err(|error| self.why(core, error))?)
    }

    /// Reports the shutdown of the stack rather than the stale socket.
    fn why(&self, core: &Core, error: HostError) -> io::Error {
        core.open().err().unwrap_or_else(|| error.into())
    }

    /// Sets the TTL or hop limit, 1 to 255.
    ///
    /// # Errors
    /// `InvalidInput`: `ttl` is out of range; `NotConnected`: the stack has ended.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hop_limit = hop_limit(ttl)?;
        self.handle
            .shared()
            .with(|core, _| core.host.udp_set_hop_limit(self.id, hop_limit))
            .map_err(io::Error::from)
    }

    /// The TTL or hop limit.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn ttl(&self) -> io::Result<u32> {
        let ttl = self.handle.shared().look(|core, _| core.host.udp_hop_limit(self.id));
        ttl.map(u32::from).map_err(io::Error::from)
    }

    /// Takes the last ICMP error about a datagram to the peer since the previous call, unless
    /// sending or receiving has returned it.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.handle.shared().with(|core, _| {
            core.host.udp_take_error(self.id).map_err(|error| self.why(core, error))
        })?;
        Ok(error.map(|error| error.into()))
    }

    /// The local address.
    ///
    /// # Errors
    /// `NotConnected`: the stack has ended.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.shared().look(|core, _| core.host.local_addr(self.id).map_err(io::Error::from))
    }
}

fn sent(result: Result<(), HostError>, data: &[u8]) -> io::Result<usize> {
    match result {
        Ok(()) => Ok(data.len()),
        Err(HostError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.handle.shared().with(|core, _| {
            core.remove(self.id);
            // Fails if a shutdown has already closed the socket.
            let _ = core.host.udp_close(self.id);
        });
    }
}
