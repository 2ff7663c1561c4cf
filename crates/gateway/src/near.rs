//! The near gateway: carries connections to the far one.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use airtcp_net::{Stack, TcpStream};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

use crate::splice::Side;
use crate::{Destination, Refusal};

/// The settings of a near gateway.
#[derive(Clone, Debug)]
pub struct NearConfig {
    /// The carrier address and port of the far gateway.
    pub far: SocketAddr,
    /// The number of carrier connections that are opened ahead.
    pub spare: usize,
    /// How long a connection may take, from the request to the far gateway's reply.
    pub dial: Duration,
    /// How long established connections outlive a far gateway that does not answer.
    pub hold: Duration,
}

impl NearConfig {
    /// The defaults: 8 spare connections, 15 s for a dial, a hold of 120 s.
    pub const fn new(far: SocketAddr) -> Self {
        Self {
            far,
            spare: 8,
            dial: Duration::from_secs(15),
            hold: Duration::from_secs(120),
        }
    }
}

/// A near gateway: a handle, cheap to clone. It ends when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Near(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stack: Stack,
    config: NearConfig,
}

/// What a near gateway is doing.
#[derive(Clone, Debug, Serialize)]
pub struct NearStatus {
    /// The address of the far gateway.
    pub far: SocketAddr,
    /// Whether the far gateway answers.
    pub connected: bool,
    /// How long that has been so.
    pub since: Duration,
    /// The round-trip time of the last heartbeat, with the far gateway's own delay.
    pub rtt: Option<Duration>,
    /// Spare carrier connections.
    pub spare: usize,
    /// Connections carried now.
    pub open: usize,
    /// Connections carried so far.
    pub opened: u64,
    /// Connections refused so far, by [`Refusal::name`].
    pub refused: BTreeMap<&'static str, u64>,
    /// Bytes sent to the far gateway.
    pub sent: u64,
    /// Bytes received from it.
    pub received: u64,
}

impl Near {
    /// Starts a near gateway on the current tokio runtime.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(stack: Stack, config: NearConfig) -> Self {
        Self(Arc::new(Inner { stack, config }))
    }

    /// Connects to `to` through the far gateway; ready once the far gateway has connected.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn connect(&self, to: &Destination) -> Result<Carried, Refusal> {
        self.connect_with(to, &[]).await
    }

    /// As [`connect`](Self::connect), with data that the program has already sent, which rides with the
    /// request and so costs no round trip of its own. The destination gets it as soon as it is connected.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(&self, to: &Destination, early: &[u8]) -> Result<Carried, Refusal> {
        let _ = (to, early);
        Err(Refusal::NoGateway("not yet".to_owned()))
    }

    /// The stack that carries.
    pub fn stack(&self) -> &Stack {
        &self.0.stack
    }

    /// The settings.
    pub fn config(&self) -> &NearConfig {
        &self.0.config
    }

    /// What the gateway is doing.
    pub fn status(&self) -> NearStatus {
        NearStatus {
            far: self.0.config.far,
            connected: false,
            since: Duration::ZERO,
            rtt: None,
            spare: 0,
            open: 0,
            opened: 0,
            refused: BTreeMap::new(),
            sent: 0,
            received: 0,
        }
    }
}

/// A connection to a destination through the far gateway.
///
/// Dropping it closes it as dropping a `TcpStream` does.
#[derive(Debug)]
pub struct Carried {
    stream: TcpStream,
}

impl Side for Carried {
    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        self.stream.ready(interest).await
    }

    fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(buf)
    }

    fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.stream.try_write(buf)
    }

    fn shutdown(&mut self) -> io::Result<()> {
        Side::shutdown(&mut self.stream)
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
        Pin::new(&mut self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Carried {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, &[IoSlice::new(buf)])
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Side::shutdown(&mut *self))
    }
}
