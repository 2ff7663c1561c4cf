//! Resolves and dials a destination with the kernel's sockets.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};

use crate::{Destination, HostAddress, Refusal, Rules};

/// The delay before the next address is tried in parallel (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// The idle time before TCP keep-alive probes a server, in seconds: a vanished server ends its
/// connection.
const KEEP_IDLE: u32 = 300;

/// The number of addresses of a name that are tried.
const MOST: usize = 8;

/// Limits the number of concurrent lookups: tokio has at most 512 blocking threads by default.
static RESOLVER: Semaphore = Semaphore::const_new(64);

/// Connects to `to`. Tries the addresses that the rules allow, alternating between the families,
/// until one answers. The packets have the firewall mark `mark`.
///
/// # Errors
/// Why there is no connection. There is no time limit other than the kernel's.
pub(crate) async fn dial(
    to: &Destination,
    rules: &Rules,
    mark: Option<u32>,
) -> Result<TcpStream, Refusal> {
    let addresses = resolve(to).await.map_err(|_| Refusal::NoSuchName)?;
    if addresses.is_empty() {
        return Err(Refusal::NoSuchName);
    }
    let allowed: Vec<_> =
        addresses.into_iter().filter(|&address| rules.allow(address)).take(MOST).collect();
    if allowed.is_empty() {
        return Err(Refusal::NotAllowed);
    }
    let stream = race(in_turn(allowed), mark).await.map_err(|error| Refusal::of_dial(&error))?;
    prepare(&stream);
    Ok(stream)
}

/// Disables Nagle's algorithm and enables keep-alive, so that a vanished end is noticed.
pub(crate) fn prepare(stream: &TcpStream) {
    // These only fail if the connection has ended, which the splice will find.
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &KEEP_IDLE);
}

async fn resolve(to: &Destination) -> io::Result<Vec<SocketAddr>> {
    match &to.host {
        HostAddress::Ip(ip) => Ok(vec![SocketAddr::new(*ip, to.port)]),
        HostAddress::Name(name) => look_up(name.clone(), to.port).await,
    }
}

/// Resolves a name. A lookup cannot be stopped once it has started, and keeps its permit until it
/// ends, even if the caller no longer waits.
pub(crate) async fn look_up(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    let permit = RESOLVER.acquire().await.map_err(io::Error::other)?;
    let lookup = spawn_blocking(move || {
        let addresses = (name.as_str(), port).to_socket_addrs();
        drop(permit);
        addresses
    });
    Ok(lookup.await??.collect())
}

/// Orders the addresses so that the families alternate, starting with that of the first address
/// (RFC 8305 section 4).
fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut these, mut others): (Vec<_>, Vec<_>) =
        addresses.into_iter().rev().partition(|address| address.is_ipv6() == first);
    let mut ordered = Vec::new();
    while let Some(address) = these.pop() {
        ordered.push(address);
        std::mem::swap(&mut these, &mut others);
        if these.is_empty() {
            std::mem::swap(&mut these, &mut others);
        }
    }
    ordered
}

/// Starts the attempts one after the other, and returns the first connection.
async fn race(addresses: Vec<SocketAddr>, mark: Option<u32>) -> io::Result<TcpStream> {
    let mut addresses = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut why = None;
    loop {
        if let Some(address) = addresses.next() {
            attempts.spawn(connect(address, mark));
        } else if attempts.is_empty() {
            return Err(why.unwrap_or_else(|| io::ErrorKind::HostUnreachable.into()));
        }
        let more = addresses.len() > 0;
        tokio::select! {
            Some(attempt) = attempts.join_next() => {
                match attempt.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
                    Ok(stream) => return Ok(stream),
                    // A missing route for one family is a weaker reason than what another address
                    // answered.
                    Err(error) if error.kind() == io::ErrorKind::NetworkUnreachable && why.is_some() => {}
                    Err(error) => why = Some(error),
                }
            }
            () = tokio::time::sleep(STAGGER), if more => {}
        }
    }
}

async fn connect(to: SocketAddr, mark: Option<u32>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(mark) = mark {
        setsockopt(&socket, sockopt::Mark, &mark)?;
    }
    socket.connect(to).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_families_take_turns() {
        let order = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
            in_turn(addresses).into_iter().map(|address| address.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            order(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]),
            ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]
        );
        assert_eq!(
            order(&["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"]),
            ["1.1.1.1:1", "[::1]:1", "2.2.2.2:1"]
        );
    }
}
