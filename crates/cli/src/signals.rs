//! Waits for the signals that end a process.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

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

/// Receives SIGINT, SIGTERM and SIGHUP from its creation on.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Starts to receive the signals.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn wait(&mut self) -> Interrupted {
        Interrupted(tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        })
    }
}
