//! The loop of all drivers: take a turn, then wait for the next event.

use std::convert::Infallible;
use std::io;

use airtcp_device::Alarm;
use airtcp_types::Instant;

/// What the loop does after a turn.
pub(crate) enum Next {
    /// Take another turn at once: there is more to receive or to transmit.
    Turn,
    /// Wait for an event, or until this time if there is one.
    Wait(Option<Instant>),
}

/// A state machine with its devices or sockets.
pub(crate) trait Work {
    /// The reason why the loop ends.
    type End: From<io::Error>;

    /// Receives a batch, runs the timers that are due, and transmits a batch. Yields to other tasks
    /// where needed.
    async fn turn(&mut self) -> Result<Next, Self::End>;

    /// Waits for an event other than the deadline: packets, room to send, or a wake-up by a socket
    /// call. Cancel-safe.
    async fn ready(&mut self) -> Result<(), Self::End>;
}

/// Takes turns until one fails. `alarm` wakes the loop at the deadline that a turn returns.
///
/// Cancel-safe: the future can be dropped while it waits, and the function called again.
pub(crate) async fn run<W: Work>(work: &mut W, alarm: &mut Alarm) -> Result<Infallible, W::End> {
    loop {
        let Next::Wait(deadline) = work.turn().await? else { continue };
        alarm.set(deadline)?;
        tokio::select! {
            // A turn handles every event, whichever woke it, so the order is fixed.
            biased;
            ready = work.ready() => ready?,
            rang = alarm.ring() => rang?,
        }
    }
}
