//! The ports of the far gateway's machine that near gateways listen on.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};

use tokio::net::TcpListener;

use crate::carried::lock;
use crate::{Refusal, Rule};

/// The listeners of near gateways. Each is open for as long as somebody holds it.
#[derive(Debug)]
pub(crate) struct Remotes {
    permitted: Vec<Rule>,
    open: Mutex<HashMap<(IpAddr, SocketAddr), Weak<TcpListener>>>,
}

impl Remotes {
    pub(crate) fn new(permitted: Vec<Rule>) -> Self {
        Self { permitted, open: Mutex::default() }
    }

    /// Listens at `at` for the near gateway `near`, if that is permitted.
    ///
    /// # Errors
    /// [`Refusal::NotAllowed`], or [`Refusal::CannotListen`].
    pub(crate) fn listen(&self, near: IpAddr, at: SocketAddr) -> Result<Arc<TcpListener>, Refusal> {
        if !self.permitted.iter().any(|rule| rule.matches(at)) {
            return Err(Refusal::NotAllowed);
        }
        let mut open = lock(&self.open);
        open.retain(|_, listener| listener.strong_count() > 0);
        // The connection that holds it may have ended at the near gateway.
        if let Some(listener) = open.get(&(near, at)).and_then(Weak::upgrade) {
            return Ok(listener);
        }
        let listener = Arc::new(bind(at).map_err(|_| Refusal::CannotListen)?);
        open.insert((near, at), Arc::downgrade(&listener));
        Ok(listener)
    }

    /// The listener that `near` has at `at`.
    pub(crate) fn get(&self, near: IpAddr, at: SocketAddr) -> Option<Arc<TcpListener>> {
        lock(&self.open).get(&(near, at)).and_then(Weak::upgrade)
    }
}

fn bind(at: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
