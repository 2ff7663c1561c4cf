//! A gateway in the path that needs no far gateway: it splits each TCP connection.
//!
//! One side has the clients or the servers, the other side a bad link. When a SYN arrives at one
//! side, the gateway first opens a connection at the other side, from the same source to the same
//! destination, and then answers the SYN. So both ends see each other's addresses, and each half
//! has its own sender.

mod bypass;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use airtcp_net::{AnyTcpListener, PendingStream, Stack, TcpStream};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::{KeepAlive, TcpConfig};
use airtcp_types::ByteCount;

use crate::carried::{Resets, Totals};
use crate::front::{Clients, InterceptConfig, intercept_config, refuse};
use crate::{Carried, Refusal, Side, splice};

pub use bypass::bypass;

/// The number of SYN retransmissions: an attempt to connect lasts 63 s, about as long as a client
/// keeps trying.
const SYN_RETRIES: u8 = 5;
/// The most bytes of a connection that wait unsent for the link, before its source is held back.
const UNSENT: ByteCount = ByteCount::from_kib(256);

/// Returns the settings of the stack at the side of the clients or servers, on a device with this
/// MTU in bytes.
///
/// They are those of [`intercept_config`], with its buffers of 1 MiB in each direction of a
/// connection, except: an attempt to connect lasts 63 s, an ICMP error ends it, and an idle
/// connection is probed after five minutes.
pub fn local_config(mtu: u16) -> HostConfig {
    let mut config = intercept_config(mtu);
    config.tcp.syn_retries = SYN_RETRIES;
    config.tcp.unreachable_ends_attempt = true;
    config.tcp.keep_alive = Some(KeepAlive {
        idle: Duration::from_secs(300),
        interval: Duration::from_secs(30),
        probes: 5,
    });
    config
}

/// Returns the settings of the stack at the side of the link, on a device with this MTU in bytes.
///
/// As [`local_config`], with the default buffer sizes, which suit long links. A connection starts
/// with the path measurements of earlier connections to the same address.
pub fn link_config(mtu: u16) -> HostConfig {
    let mut config = local_config(mtu);
    let TcpConfig { send_buffer, receive_buffer, .. } = TcpConfig::default();
    config.tcp = TcpConfig {
        send_buffer,
        receive_buffer,
        not_sent_low_water: Some(UNSENT),
        path_memory: true,
        ..config.tcp
    };
    config
}

/// Splits the connections between the two sides. Clones share the state.
#[derive(Clone, Debug)]
pub struct Split {
    local: Arc<Place>,
    link: Arc<Place>,
    totals: Arc<Totals>,
}

/// One of the two sides.
#[derive(Debug)]
struct Place {
    stack: Stack,
    /// The clients that connect from this side.
    clients: Clients,
}

/// The counters of a [`Split`].
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SplitStatus {
    /// Connections that are open or being opened.
    pub open: u32,
    /// Connections that were opened.
    pub opened: u64,
    /// SYNs that were refused, by [reason](Refusal::name).
    pub refused: BTreeMap<&'static str, u64>,
    /// Bytes of data carried to the side of the link.
    pub sent: u64,
    /// Bytes of data carried from the side of the link.
    pub received: u64,
}

impl Split {
    /// Creates a gateway between these stacks, which have no address of their own
    /// ([`local_config`], [`link_config`]), with at most `limit` connections from each side.
    pub fn new(local: Stack, link: Stack, limit: u32) -> Self {
        let place = |stack| Arc::new(Place { stack, clients: Clients::new(limit) });
        Self { local: place(local), link: place(link), totals: Arc::default() }
    }

    /// Carries connections from both sides until a stack ends. When the future is dropped, new
    /// connections are refused, and open ones continue.
    ///
    /// When a destination refuses, the client receives a RST; when it is unreachable, or does not
    /// answer within 63 s, an ICMP error. An address that already has seven eighths of the
    /// connections of its side is refused.
    ///
    /// # Errors
    /// A stack has ended, or already has a listener for every destination.
    pub async fn run(self) -> io::Result<Infallible> {
        let backlog = InterceptConfig::default().backlog;
        let listeners =
            (self.local.stack.listen_any(backlog)?, self.link.stack.listen_any(backlog)?);
        tokio::try_join!(
            self.accept(listeners.0, &self.local, &self.link),
            self.accept(listeners.1, &self.link, &self.local),
        )
        .map(|(never, _)| never)
    }

    /// The current counters.
    pub fn status(&self) -> SplitStatus {
        SplitStatus {
            open: self.local.clients.count() + self.link.clients.count(),
            opened: self.totals.opened.load(Relaxed),
            refused: self.totals.refused(),
            sent: self.totals.sent.load(Relaxed),
            received: self.totals.received.load(Relaxed),
        }
    }

    /// Waits until no connection is open.
    pub async fn drained(&self) {
        tokio::join!(self.local.clients.drained(), self.link.clients.drained());
    }

    /// Resets all connections, and each one that follows.
    pub fn reset(&self) {
        self.local.clients.reset();
        self.link.clients.reset();
    }

    async fn accept(
        &self,
        listener: AnyTcpListener,
        from: &Arc<Place>,
        to: &Arc<Place>,
    ) -> io::Result<Infallible> {
        let is_local = Arc::ptr_eq(from, &self.local);
        loop {
            let pending = listener.next().await?;
            let source = pending.source();
            let Some(slot) = from.clients.enter(source.ip()).await else {
                tracing::info!(%source, "refused: its address has as many connections as it may");
                self.totals.refuse(&Refusal::Busy);
                continue;
            };
            let carried = carry(pending, to.clone(), is_local, self.totals.clone());
            from.clients.serve(slot, carried);
        }
    }
}

/// Opens the other half of a connection, and joins the halves.
async fn carry(pending: PendingStream, to: Arc<Place>, is_local: bool, totals: Arc<Totals>) {
    let (source, destination) = (pending.source(), pending.destination());
    let mut opened = match to.stack.connect_as(source, destination).await {
        Ok(opened) => opened,
        Err(error) => {
            tracing::info!(%source, %destination, %error, "refused");
            let refusal = Refusal::of_dial(&error);
            totals.refuse(&refusal);
            return refuse(pending, &refusal);
        }
    };
    let Ok(accepted) = pending.accept().await else {
        // The client has given up.
        return Side::abort(&mut opened);
    };
    tracing::debug!(%source, %destination, "open");
    let (local, link) = if is_local { (accepted, opened) } else { (opened, accepted) };
    splice(local, counted(link, totals)).await;
}

/// Counts a connection and the data that it carries.
fn counted(link: TcpStream, totals: Arc<Totals>) -> Carried {
    let mut carried = Carried::new(link, totals, Arc::<Resets>::default(), 0);
    carried.count();
    carried
}
