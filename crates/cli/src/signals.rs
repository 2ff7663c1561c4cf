//! Waits for the signals that end a process.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ended a command before its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interrupted(SignalKind);

impl Interrupted {
    /// 128 and the number of the signal, as a shell has it of a process that the signal ended.
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

/// Ctrl-C, SIGTERM, and a terminal that goes away (SIGHUP), from when it is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next.
    pub(crate) async fn wait(&mut self) -> Interrupted {
        Interrupted(tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        })
    }
}
