//! Local forwards, in the words of ssh's `-L`.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use thiserror::Error;
use tokio::net::TcpListener;

use super::Clients;
use crate::carried::lock;
use crate::{Destination, Near, Refusal, Side, splice};

/// A port of this machine, and the destination that its connections are carried to: `[bind:]port:host:hostport`.
///
/// As in `ssh -L`, addresses of IPv6 are in brackets, a `bind` of `*` or nothing means every address of this machine, and
/// without one (or with `localhost`) the port is open to programs of this machine alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    bind: Bind,
    port: u16,
    /// Where connections go. A name is resolved by the far end.
    pub to: Destination,
}

/// The addresses that a forward listens on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bind {
    Loopback,
    All,
    One(IpAddr),
}

/// Why a text is no [`Forward`].
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
                let text = format!("`{text}` has {} parts instead of 3 or 4", parts.len());
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
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            InvalidForward(format!("the port `{port}` is not a number from 1 to 65535"))
        })?;
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

/// The parts between colons that are not in brackets.
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
    /// Listens on each of its addresses. Of several, such as both loopback addresses, those that this machine lacks are left out.
    ///
    /// # Errors
    /// It cannot listen on any of them.
    pub async fn listen(&self) -> io::Result<Vec<TcpListener>> {
        let addresses: &[IpAddr] = match &self.bind {
            Bind::Loopback => &[Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            // The second takes IPv4 too, unless a sysctl says otherwise, and then the first is alone.
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
/// The kernel accepts before the destination is known to answer: a refusal resets the connection. As the program cannot
/// tell why, the log has a warning for each new reason.
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
                    // Without a far gateway the near one says so itself.
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
