//! Runs a driver until the process is stopped.

use airtcp_device::Device;
use airtcp_net::Driver;
use airtcp_types::Node;
use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives SIGINT, SIGTERM and SIGUSR1 from its creation on.
///
/// Create it before printing `ready`, so that a process that waits for that line can then send
/// signals.
pub(crate) struct Runner {
    interrupt: Signal,
    terminate: Signal,
    report: Signal,
}

impl Runner {
    /// Starts to receive the signals.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            report: signal(SignalKind::user_defined1())?,
        })
    }

    /// Runs `driver` until SIGINT or SIGTERM. On SIGUSR1 it calls `report`.
    ///
    /// The future can be dropped and the method called again: no packet or signal is lost.
    ///
    /// # Errors
    /// A device was removed; those of `report`.
    pub(crate) async fn run<N: Node, D: Device>(
        &mut self,
        driver: &mut Driver<N, D>,
        report: impl Fn(&Driver<N, D>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                Err(gone) = driver.run() => bail!("{gone}; restart to create it again"),
                () = caught(&mut self.interrupt) => return Ok(()),
                () = caught(&mut self.terminate) => return Ok(()),
                () = caught(&mut self.report) => report(driver)?,
            }
        }
    }
}

/// Waits for the signal.
async fn caught(signal: &mut Signal) {
    if signal.recv().await.is_none() {
        // The signal can no longer be received. That must not count as a signal.
        std::future::pending().await
    }
}
