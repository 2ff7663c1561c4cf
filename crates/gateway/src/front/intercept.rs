//! Interception: carries connections and datagrams to every destination, from a stack whose device
//! the kernel routes them into.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airtcp_net::{AnyTcpListener, AnyUdpSocket, PendingStream, Stack};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::Unreachable;
use airtcp_types::{ByteCount, FlowId};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Clients;
use crate::datagram::{Answer, Association, NearDatagrams};
use crate::{Near, Refusal, Side, splice};

/// The longest UDP datagram.
const LONGEST: usize = 65_535;

/// The buffer size of a connection in each direction. It is small because the device is local, and
/// back-pressure holds the program back.
const BUFFER: ByteCount = ByteCount::from_mib(1);

/// The idle time before the association of a ping, or of a socket whose first datagram went to
/// DNS, ends (RFC 4787 REQ-5 b). A resolver sends each query from another port: with the usual idle
/// time, a few queries per second would use up all associations.
pub(super) const SHORT: Duration = Duration::from_secs(10);
const DNS_PORT: u16 = 53;

/// The settings of interception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct InterceptConfig {
    /// The most connections with an unanswered SYN. Further SYNs are dropped; clients retransmit
    /// them.
    pub backlog: usize,
    /// Whether to answer each SYN at once. A program can then send its first data a round trip
    /// earlier, but is connected before its destination is, and sees a reset instead of a refusal.
    pub answer_early: bool,
}

impl Default for InterceptConfig {
    /// A backlog of 1024; a SYN is answered once the destination is connected.
    fn default() -> Self {
        Self { backlog: 1024, answer_early: false }
    }
}

/// Returns the settings of a stack for [`intercept`], on a device with this MTU in bytes.
///
/// The stack has no address, and answers for all addresses. One source may have half of the
/// half-open connections; its other limits are those of
/// [`Quota::PEER`](airtcp_stack::host::Quota::PEER). Datagrams to programs that are longer than the
/// MTU are lost.
pub fn intercept_config(mtu: u16) -> HostConfig {
    let mut config = HostConfig::new([]);
    (config.mtu, config.tcp.mtu) = (ByteCount::from(usize::from(mtu)), mtu);
    config.tcp.nodelay = true;
    (config.tcp.send_buffer, config.tcp.receive_buffer) = (BUFFER, BUFFER);
    config.backlog = InterceptConfig::default().backlog;
    config.peer_quota.half_open = config.backlog / 2;
    config
}

/// Carries every TCP connection, and with `datagrams` every UDP datagram, that arrives at `stack`,
/// until the stack ends.
///
/// A SYN is answered when the far gateway has connected to its destination. A refusal is answered
/// as the network would answer it: with a RST if the destination refused, otherwise with an ICMP
/// error (host or network unreachable, or prohibited). A datagram that the destination refuses is
/// answered with Port Unreachable. Without `datagrams`, all UDP is answered with Port Unreachable.
/// Pings are not answered here: see [`without_pings`](super::without_pings).
///
/// At most `clients` connections are carried at a time; above that, SYNs wait in the backlog. SYNs
/// from an address that has reached its limit are refused.
///
/// # Errors
/// The stack intercepts already, or has ended.
pub async fn intercept(
    stack: Stack,
    near: Near,
    datagrams: Option<NearDatagrams>,
    clients: Clients,
    config: InterceptConfig,
) -> io::Result<Infallible> {
    let listener = stack.listen_any(config.backlog)?;
    let connections = carry_connections(listener, near, clients, config.answer_early);
    match datagrams {
        Some(datagrams) => {
            let datagrams = carry_datagrams(stack.udp_bind_any()?, datagrams);
            tokio::try_join!(connections, datagrams).map(|(never, _)| never)
        }
        None => connections.await,
    }
}

async fn carry_connections(
    listener: AnyTcpListener,
    near: Near,
    clients: Clients,
    early: bool,
) -> io::Result<Infallible> {
    loop {
        let pending = listener.next().await?;
        // The slot is taken after the SYN arrived: a slot that waits for a SYN would be missing to
        // the clients of a proxy.
        let source = pending.source();
        let Some(slot) = clients.enter(source.ip()).await else {
            tracing::info!(%source, "refused: its address has as many connections as it may");
            continue;
        };
        let near = near.clone();
        tokio::spawn(async move {
            carry_connection(pending, near, early).await;
            drop(slot);
        });
    }
}

async fn carry_connection(pending: PendingStream, near: Near, early: bool) {
    let (source, to) = (pending.source(), pending.destination().into());
    let (program, carried) = if early {
        let (program, carried) = tokio::join!(pending.accept(), near.connect(&to));
        (program, carried.inspect_err(|refusal| log_refusal(source, &to, refusal)))
    } else {
        match near.connect(&to).await {
            Ok(carried) => (pending.accept().await, Ok(carried)),
            Err(refusal) => {
                log_refusal(source, &to, &refusal);
                return refuse(pending, &refusal);
            }
        }
    };
    match (program, carried) {
        (Ok(program), Ok(carried)) => {
            tracing::debug!(%source, %to, "intercepted");
            splice(program, carried).await;
        }
        (Ok(mut program), Err(_)) => Side::abort(&mut program),
        // The program has given up.
        (Err(_), Ok(mut carried)) => carried.abort(),
        (Err(_), Err(_)) => {}
    }
}

fn log_refusal(source: SocketAddr, to: &crate::Destination, refusal: &Refusal) {
    tracing::info!(%source, %to, %refusal, "intercepted");
}

/// Answers a SYN with the RST or ICMP error that the network would send.
pub(crate) fn refuse(pending: PendingStream, refusal: &Refusal) {
    match refusal {
        Refusal::Refused | Refusal::Busy | Refusal::PortInUse | Refusal::CannotListen => {
            pending.refuse();
        }
        Refusal::HostUnreachable | Refusal::TimedOut | Refusal::NoSuchName => {
            pending.refuse_with(Unreachable::Host);
        }
        Refusal::NetworkUnreachable | Refusal::NoGateway(_) => {
            pending.refuse_with(Unreachable::Network);
        }
        Refusal::NotAllowed => pending.refuse_with(Unreachable::Prohibited),
    }
}

async fn carry_datagrams(socket: AnyUdpSocket, near: NearDatagrams) -> io::Result<Infallible> {
    let socket = Arc::new(socket);
    let mut associations = Associations::new(near);
    let mut buf = vec![0; LONGEST];
    loop {
        let (len, flow) = tokio::select! {
            () = associations.ended() => continue,
            received = socket.recv(&mut buf) => received?,
        };
        let source = flow.remote;
        let patience = if flow.local.port() == DNS_PORT { SHORT } else { Duration::MAX };
        let answers = |association| carry_answers(socket.clone(), association, source, patience);
        let Some(association) = associations.of(source, answers)? else { continue };
        match association.send_to(&buf[..len], &flow.local.into()).await {
            Err(error) if error.kind() != ErrorKind::InvalidInput => return Err(error),
            _ => {}
        }
    }
}

/// Passes answers on to one source, until the association is idle for too long.
async fn carry_answers(
    socket: Arc<AnyUdpSocket>,
    association: Arc<Association>,
    source: SocketAddr,
    patience: Duration,
) {
    while let Ok(Ok((answer, from))) = timeout(patience, association.answer()).await {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let flow = FlowId { local: from, remote: source };
        // An answer that cannot be sent is lost; the association continues.
        let _ = match answer {
            Answer::Datagram(data) => socket.send(&data, flow).await.map(drop),
            Answer::Refused => socket.refuse(flow),
        };
    }
}

/// The associations of intercepted sources.
pub(super) struct Associations {
    near: NearDatagrams,
    open: HashMap<SocketAddr, Arc<Association>>,
    /// The tasks that carry their answers.
    answers: JoinSet<SocketAddr>,
}

impl Associations {
    pub(super) fn new(near: NearDatagrams) -> Self {
        Self { near, open: HashMap::new(), answers: JoinSet::new() }
    }

    /// Returns the association of a source. A new association lasts until its `answers` future
    /// completes. `None`: the limit is reached, and the datagram is lost, as in a router whose
    /// table is full.
    ///
    /// # Errors
    /// The stack has ended.
    pub(super) fn of<F>(
        &mut self,
        source: SocketAddr,
        answers: impl FnOnce(Arc<Association>) -> F,
    ) -> io::Result<Option<Arc<Association>>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some(association) = self.open.get(&source) {
            return Ok(Some(association.clone()));
        }
        let association = match self.near.associate(source) {
            Ok(association) => Arc::new(association),
            Err(error) if error.kind() == ErrorKind::QuotaExceeded => {
                tracing::debug!(%source, %error, "a datagram was dropped");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.open.insert(source, association.clone());
        let answers = answers(association.clone());
        self.answers.spawn(async move {
            answers.await;
            source
        });
        Ok(Some(association))
    }

    /// Waits until an association has ended, and removes it.
    pub(super) async fn ended(&mut self) {
        match self.answers.join_next().await {
            Some(Ok(source)) => drop(self.open.remove(&source)),
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }
}
