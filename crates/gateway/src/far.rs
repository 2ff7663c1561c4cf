//! The far gateway: dials the destinations.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_net::Stack;

use crate::Rules;

/// The settings of a far gateway.
#[derive(Clone, Debug)]
pub struct FarConfig {
    /// The carrier address and port to listen on.
    pub listen: SocketAddr,
    /// Which destinations it dials.
    pub rules: Rules,
    /// How long it may take to resolve and dial a destination.
    pub dial: Duration,
}

impl FarConfig {
    /// The defaults.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, rules: Rules::default(), dial: Duration::from_secs(10) }
    }
}

/// A far gateway.
#[derive(Debug)]
pub struct Far {
    stack: Stack,
    config: FarConfig,
}

impl Far {
    /// Creates a far gateway on `stack`.
    ///
    /// # Errors
    /// As [`Stack::listen`].
    pub fn new(stack: Stack, config: FarConfig) -> io::Result<Self> {
        Ok(Self { stack, config })
    }

    /// Serves until the stack ends.
    ///
    /// # Errors
    /// Why the stack ended.
    pub async fn run(self) -> io::Result<Infallible> {
        let _ = self.config;
        Err(self.stack.closed().await)
    }
}
