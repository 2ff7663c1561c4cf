//! The signals of all commands: SIGINT, SIGTERM and SIGHUP end a command; SIGUSR1 prints the
//! counters of a command that runs a driver.

use std::error::Error;
use std::fmt;
use std::fs;
use std::future;
use std::process::ExitCode;

use airtcp_device::Device;
use airtcp_net::Driver;
use airtcp_types::Node;
use anyhow::bail;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ended a command before its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interrupted(SignalKind);

impl Interrupted {
    /// Returns 128 plus the number of the signal, which is also the status that a shell reports for
    /// a process killed by the signal.
    pub(crate) fn exit_code(self) -> ExitCode {
        u8::try_from(128 + self.0.as_raw_value()).map_or(ExitCode::FAILURE, ExitCode::from)
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl Error for Interrupted {}

/// Receives SIGINT, SIGTERM and SIGHUP from its creation on. SIGHUP stays ignored if it was ignored
/// at the start of the process, as by `nohup`.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    /// Starts to receive the signals.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let hangup = SignalKind::hangup();
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!is_ignored(&status, hangup)).then(|| signal(hangup)).transpose()?,
        })
    }

    /// Waits for the next signal. The future can be dropped and the method called again: no signal
    /// is lost.
    pub(crate) async fn wait(&mut self) -> Interrupted {
        Interrupted(tokio::select! {
            () = caught(Some(&mut self.interrupt)) => SignalKind::interrupt(),
            () = caught(Some(&mut self.terminate)) => SignalKind::terminate(),
            () = caught(self.hangup.as_mut()) => SignalKind::hangup(),
        })
    }
}

/// Runs a driver until a signal ends the process. Receives the signals from its creation on.
///
/// Create it before printing `ready`, so that a process that waits for that line can then send
/// signals.
pub(crate) struct Runner {
    signals: Signals,
    report: Signal,
}

impl Runner {
    /// Starts to receive the signals.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { signals: Signals::new()?, report: signal(SignalKind::user_defined1())? })
    }

    /// Runs `driver` until a signal ends the process. On SIGUSR1 it calls `report`.
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
                _ = self.signals.wait() => return Ok(()),
                () = caught(Some(&mut self.report)) => report(driver)?,
            }
        }
    }
}

/// Waits for the signal, forever if it is not received.
async fn caught(signal: Option<&mut Signal>) {
    let Some(signal) = signal else { return future::pending().await };
    if signal.recv().await.is_none() {
        // The signal can no longer be received. That must not count as a signal.
        future::pending().await
    }
}

/// Returns whether the process ignores a signal, by its `/proc/PID/status`.
fn is_ignored(status: &str, signal: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    mask.is_some_and(|mask| mask & (1 << (signal.as_raw_value() - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status =
            |mask: &str| format!("Name:\tairtcp\nSigBlk:\t01\nSigIgn:\t{mask}\nSigCgt:\t01\n");
        let is_ignored = |mask| is_ignored(&status(mask), SignalKind::hangup());
        assert!(is_ignored("0000000000000001") && is_ignored("0000000000001003"));
        assert!(!is_ignored("0000000000001000") && !is_ignored("0000000000000002"));
        assert!(!is_ignored("") && !super::is_ignored("", SignalKind::hangup()));
    }
}
