//! The loop of all drivers: run, then wait for the next event.

use std::convert::Infallible;
use std::io;

use airtcp_device::Alarm;
use airtcp_types::Instant;

/// What follows a turn.
pub(crate) enum Next {
    /// Another turn: there is more to receive or to transmit.
    Turn,
    /// A wait, until something happens or until this time.
    Wait(Option<Instant>),
}

/// A state machine with its devices or sockets, as the loop sees it.
pub(crate) trait Work {
    /// Why the loop ends.
    type End: From<io::Error>;

    /// Receives a batch, runs the timers that are due, transmits a batch. Yields to other tasks
    /// where it should.
    async fn turn(&mut self) -> Result<Next, Self::End>;

    /// Waits for anything but the time: packets, room to send them, a request for a turn.
    /// Cancel-safe.
    async fn ready(&mut self) -> Result<(), Self::End>;
}

/// Takes turns until one fails. `alarm` wakes the loop for the deadline that a turn gives.
///
/// Cancel-safe: dropped while it waits, it can be called again.
pub(crate) async fn run<W: Work>(work: &mut W, alarm: &mut Alarm) -> Result<Infallible, W::End> {
    loop {
        let Next::Wait(deadline) = work.turn().await? else { continue };
        alarm.set(deadline)?;
        tokio::select! {
            // In this order: a turn sees to all of them, whatever woke it.
            biased;
            ready = work.ready() => ready?,
            rang = alarm.ring() => rang?,
        }
    }
}
