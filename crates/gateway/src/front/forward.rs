//! Local and remote forwards, with the syntax of ssh's `-L` and `-R`.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thiserror::Error;
use tokio::io::Interest;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::Clients;
use crate::carried::lock;
use crate::dial::dial;
use crate::{Carried, Destination, Near, Refusal, Rules, Side, splice};

/// The source address for [`Clients`] of all programs at the far side: they share one address's
/// limit.
const FAR_PROGRAMS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A port, and the destination that its connections are carried to: `[bind:]port:host:hostport`.
/// For a local forward, the port is on this machine and the destination at the far side; for a
/// remote forward, the other way round.
///
/// As in `ssh -L`, IPv6 addresses are in brackets, and a `bind` of `*` or the empty string means
/// every address of the machine. Without a `bind`, or with `localhost`, the port is open only to
/// programs on the same machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    bind: Bind,
    port: u16,
    /// The destination. The far gateway resolves a name.
    pub to: Destination,
}

/// The addresses that a forward listens on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bind {
    Loopback,
    All,
    One(IpAddr),
}

impl Bind {
    /// The address of a remote forward.
    const fn address(self) -> IpAddr {
        match self {
            Self::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Self::All => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            Self::One(address) => address,
        }
    }
}

/// The reason why a text is not a [`Forward`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{0}; a forward is [BIND:]PORT:HOST:HOSTPORT, for example 8080:intranet:80 or 0.0.0.0:2222:[fd00::7]:22"
)]
pub struct InvalidForward(String);

impl FromStr for Forward {
    type Err = InvalidForward;

    fn from_str(text: &str) -> Result<Self, InvalidForward> {
        let parts = split(text);
        let (bind, port, host, host_port) = match parts[..] {
            [port, host, host_port] => (None, port, host, host_port),
            [bind, port, host, host_port] => (Some(bind), port, host, host_port),
            _ => {
                let text = format!("`{text}` does not have 3 or 4 parts between colons");
                return Err(InvalidForward(text));
            }
        };
        let bind = match bind {
            None | Some("localhost") => Bind::Loopback,
            Some("" | "*") => Bind::All,
            Some(address) => Bind::One(bare(address).parse().map_err(|_| {
                InvalidForward(format!("`{address}` is not an IP address of this machine"))
            })?),
        };
        let port = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| InvalidForward(format!("`{port}` is not a port from 1 to 65535")))?;
        let to = format!("{host}:{host_port}");
        let to = to.parse().map_err(|error| InvalidForward(format!("{error}")))?;
        Ok(Self { bind, port, to })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bind {
            Bind::Loopback => {}
            Bind::All => f.write_str("*:")?,
            Bind::One(IpAddr::V4(address)) => write!(f, "{address}:")?,
            Bind::One(IpAddr::V6(address)) => write!(f, "[{address}]:")?,
        }
        write!(f, "{}:{}", self.port, self.to)
    }
}

/// Splits `text` at the colons outside brackets.
fn split(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let between = |c| {
        is_inside = (is_inside || c == '[') && c != ']';
        c == ':' && !is_inside
    };
    text.split(between).collect()
}

fn bare(text: &str) -> &str {
    text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text)
}

impl Forward {
    /// The port that the forward listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether two remote forwards use the same port of a common address.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (self.bind.address(), other.bind.address());
        // `::` includes IPv4.
        let covers =
            |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
        self.port == other.port && (one == two || covers(one, two) || covers(two, one))
    }

    /// The address and port of a remote forward: 127.0.0.1 without a `bind`, and `::` for every
    /// address.
    fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.bind.address(), self.port)
    }

    /// Listens on each of the forward's addresses. Of several, such as both loopback addresses,
    /// those that this machine lacks are skipped.
    ///
    /// # Errors
    /// The forward cannot listen on any of its addresses.
    pub async fn listen(&self) -> io::Result<Vec<TcpListener>> {
        let addresses: &[IpAddr] = match &self.bind {
            Bind::Loopback => &[Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            // `::` includes IPv4 unless a sysctl says otherwise; then `0.0.0.0` fails, and one
            // listener remains.
            Bind::All => &[Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
            Bind::One(address) => std::slice::from_ref(address),
        };
        let mut listeners = Vec::new();
        let mut refused = None;
        for address in addresses {
            match TcpListener::bind(SocketAddr::new(*address, self.port)).await {
                Ok(listener) => listeners.push(listener),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            Some(error) if listeners.is_empty() => Err(error),
            _ => Ok(listeners),
        }
    }
}

/// Carries the connections of `listener` to a destination.
///
/// The kernel accepts a connection before the destination is known to answer, so a refusal resets
/// the connection. As the program cannot see why, the log has a warning for each new reason.
pub async fn serve_forward(
    listener: TcpListener,
    near: Near,
    clients: Clients,
    to: Destination,
) -> Infallible {
    let reason = Arc::new(Mutex::new(None));
    let serve = |mut stream: tokio::net::TcpStream, peer: SocketAddr| {
        let (near, to, reason) = (near.clone(), to.clone(), reason.clone());
        async move {
            match near.connect(&to).await {
                Ok(far) => {
                    tracing::debug!(%peer, %to, "forward");
                    *lock(&reason) = None;
                    splice(stream, far).await;
                }
                Err(refusal) => {
                    let is_new = lock(&reason).replace(refusal.name()) != Some(refusal.name());
                    // Without a far gateway, the near gateway logs that itself.
                    if is_new && !matches!(refusal, Refusal::NoGateway(_)) {
                        tracing::warn!(%peer, %to, "forward: {refusal}");
                    } else {
                        tracing::info!(%peer, %to, "forward: {refusal}");
                    }
                    stream.abort();
                }
            }
        }
    };
    clients.accept(listener, serve).await
}

/// The number of accept requests that wait at a time for a remote forward, and the delay before a
/// failed request is repeated.
const AHEAD: usize = 4;
const AGAIN: Duration = Duration::from_secs(2);
/// The time limit for dialling the destination of a remote forward.
const DIAL: Duration = Duration::from_secs(10);

/// Makes the far gateway listen on the port of `forward`, and connects each program that connects
/// there to the forward's destination, which this machine dials with the firewall mark `mark`. The
/// log has a warning for each new reason why the far gateway does not listen.
pub async fn serve_remote(
    forward: Forward,
    near: Near,
    clients: Clients,
    mark: Option<u32>,
) -> Infallible {
    let at = forward.remote();
    let mut warned = None;
    loop {
        match near.listen(at).await {
            Ok(port) => {
                warned = None;
                tracing::info!(%at, "the far gateway listens");
                let mut waiting: JoinSet<_> = (0..AHEAD).map(|_| next(near.clone(), at)).collect();
                loop {
                    tokio::select! {
                        // The far gateway sends nothing here; readable means that it closed the
                        // connection.
                        _ = port.ready(Interest::READABLE) => break,
                        Some(accepted) = waiting.join_next() => {
                            waiting.spawn(next(near.clone(), at));
                            if let (Ok(Some(carried)), Some(slot)) =
                                (accepted, clients.enter(FAR_PROGRAMS).await)
                            {
                                let served = serve_program(carried, forward.to.clone(), mark);
                                clients.serve(slot, served);
                            }
                        }
                    }
                }
            }
            // Without a far gateway, the near gateway logs that itself.
            Err(refusal) if near.status().connected && warned.as_ref() != Some(&refusal) => {
                tracing::warn!("-R {forward}: {}", not_listening(&refusal, at));
                warned = Some(refusal);
            }
            Err(_) => {}
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Describes why the far gateway does not listen at `at`.
fn not_listening(refusal: &Refusal, at: SocketAddr) -> String {
    match refusal {
        Refusal::NotAllowed => {
            format!("the far gateway does not permit this: start it with --permit-listen {at}")
        }
        Refusal::NoGateway(why) => why.clone(),
        refusal => refusal.to_string(),
    }
}

/// Waits for the next connection to a port of the far gateway's machine; returns `None`, after a
/// pause, if that fails.
async fn next(near: Near, at: SocketAddr) -> Option<Carried> {
    match near.accept(at).await {
        Ok(carried) => Some(carried),
        Err(refusal) => {
            tracing::debug!(%at, "remote forward: {refusal}");
            tokio::time::sleep(AGAIN).await;
            None
        }
    }
}

async fn serve_program(mut carried: Carried, to: Destination, mark: Option<u32>) {
    let everything = Rules { allow: Vec::new(), deny: Vec::new() };
    let dialled = tokio::time::timeout(DIAL, dial(&to, &everything, mark)).await;
    match dialled.unwrap_or(Err(Refusal::TimedOut)) {
        Ok(stream) => {
            tracing::debug!(%to, "remote forward");
            splice(carried, stream).await;
        }
        Err(refusal) => {
            tracing::warn!(%to, "remote forward: {}", not_dialled(&refusal));
            carried.abort();
        }
    }
}

/// Describes why this machine could not dial: the text of a [`Refusal`] speaks of the far gateway.
fn not_dialled(refusal: &Refusal) -> String {
    let text = match refusal {
        Refusal::HostUnreachable => "the destination is unreachable from this machine",
        Refusal::NetworkUnreachable => "this machine has no route to the destination",
        Refusal::TimedOut => "the destination did not answer this machine in time",
        Refusal::NoSuchName => "this machine cannot resolve the name",
        Refusal::Busy => "this machine has no port, descriptor or memory left",
        refusal => return refusal.to_string(),
    };
    text.to_owned()
}
