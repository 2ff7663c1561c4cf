//! The ports of the far gateway's machine that near gateways listen on.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::carried::lock;
use crate::{Refusal, Rule};

/// The number of programs that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// The ports that near gateways have opened. A port is open for as long as its [`Port`] is held.
#[derive(Debug)]
pub(crate) struct Remotes {
    permitted: Vec<Rule>,
    open: Mutex<HashMap<(IpAddr, SocketAddr), Weak<Port>>>,
}

/// A port that a listen request has opened.
#[derive(Debug)]
pub(crate) struct Port {
    listener: Arc<TcpListener>,
    taken_over: watch::Sender<bool>,
}

impl Remotes {
    pub(crate) fn new(permitted: Vec<Rule>) -> Self {
        Self { permitted, open: Mutex::default() }
    }

    /// Listens at `at` for the near gateway `near`, if that is permitted. Takes over a port that
    /// `near` already has at `at`: the connection of the earlier request may have ended at the near
    /// gateway, and its reset was lost.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], [`Refusal::PortInUse`] or [`Refusal::CannotListen`].
    pub(crate) fn listen(&self, near: IpAddr, at: SocketAddr) -> Result<Arc<Port>, Refusal> {
        if !self.permitted.iter().any(|rule| rule.matches(at)) {
            return Err(Refusal::NotAllowed);
        }
        let mut open = lock(&self.open);
        open.retain(|_, port| port.strong_count() > 0);
        let listener = match open.get(&(near, at)).and_then(Weak::upgrade) {
            Some(port) => {
                port.taken_over.send_replace(true);
                port.listener.clone()
            }
            None => Arc::new(bind(at).map_err(|error| match error.kind() {
                ErrorKind::AddrInUse => Refusal::PortInUse,
                _ => Refusal::CannotListen,
            })?),
        };
        let port = Arc::new(Port { listener, taken_over: watch::Sender::new(false) });
        open.insert((near, at), Arc::downgrade(&port));
        Ok(port)
    }

    /// Returns the port that `near` has opened at `at`.
    pub(crate) fn get(&self, near: IpAddr, at: SocketAddr) -> Option<Arc<Port>> {
        lock(&self.open).get(&(near, at)).and_then(Weak::upgrade)
    }
}

impl Port {
    /// Accepts the next connection of a program.
    pub(crate) async fn accept(&self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((program, _)) => return program,
                // Usually no file descriptors are left: wait until other connections end.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Waits until a later request has taken the port over.
    pub(crate) async fn taken_over(&self) {
        // This cannot fail: `self` keeps the sender.
        let _ = self.taken_over.subscribe().wait_for(|taken_over| *taken_over).await;
    }
}

/// Listens at `at`. `[::]` includes IPv4; without IPv6 support it falls back to `0.0.0.0`.
fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    if at.ip() != Ipv6Addr::UNSPECIFIED {
        return listen(at);
    }
    match listen(at) {
        Err(error) if error.kind() != ErrorKind::AddrInUse => {
            listen((Ipv4Addr::UNSPECIFIED, at.port()).into())
        }
        bound => bound,
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    if at.is_ipv6() {
        // Independent of the sysctl net.ipv6.bindv6only.
        setsockopt(&socket, sockopt::Ipv6V6Only, &false)?;
    }
    socket.bind(at)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_of_every_address_is_open_to_both_versions_and_to_one_near_gateway() {
        let remotes = Remotes::new(vec!["[::]:1-65535".parse().unwrap()]);
        let near = |last| IpAddr::from([10, 77, 0, last]);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), free.port());
        let first = remotes.listen(near(2), at).unwrap();
        assert_eq!(remotes.listen(near(3), at).unwrap_err(), Refusal::PortInUse);
        assert_eq!(remotes.listen(near(2), free).unwrap_err(), Refusal::NotAllowed);
        let second = remotes.listen(near(2), at).unwrap();
        first.taken_over().await;
        let (program, accepted) = tokio::join!(TcpStream::connect(free), second.accept());
        assert_eq!(
            program.unwrap().local_addr().unwrap().port(),
            accepted.peer_addr().unwrap().port()
        );
        drop((first, second));
        assert!(remotes.get(near(2), at).is_none());
        remotes.listen(near(3), at).unwrap();
    }
}
