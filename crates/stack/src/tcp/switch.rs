//! Replacement of the strategies of an open connection.

use airtcp_recovery::{Combination, CombinationError};
use airtcp_types::Instant;

use super::{Connection, TcpError};

/// The reason why the strategies of a connection cannot be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SwitchError {
    /// The combination needs a TCP option that the two ends did not negotiate, or, during the
    /// handshake, that this end did not offer.
    #[error(
        "the combination needs {0}, which this connection did not negotiate: choose it when you open the connection"
    )]
    NotNegotiated(&'static str),
    /// No more data can be sent.
    #[error(transparent)]
    Ended(#[from] TcpError),
}

impl Connection {
    /// The strategies of the sender.
    ///
    /// # Errors
    ///
    /// [`TcpError::Shutdown`], or the reason why the connection ended, once no more data can be
    /// sent.
    pub fn combination(&self) -> Result<&Combination, TcpError> {
        let sender = self.send.sender().map(|sender| sender.combination());
        sender
            .or_else(|| self.handshake.as_ref().map(|handshake| handshake.combination()))
            .ok_or_else(|| self.error().unwrap_or(TcpError::Shutdown))
    }

    /// Replaces the sender's strategies. Sent data and the known round-trip times are kept; the new
    /// strategies start from the current congestion window.
    ///
    /// During the handshake this sets the strategies with which the sender will start.
    ///
    /// # Errors
    ///
    /// See [`SwitchError`]. The old strategies then stay in use.
    pub fn set_combination(
        &mut self,
        now: Instant,
        combination: &Combination,
    ) -> Result<(), SwitchError> {
        if let Some(error) = self.closing.error() {
            return Err(error.into());
        }
        if let Some(handshake) = &mut self.handshake {
            let set = handshake.set_combination(combination, self.timestamps.is_some());
            return set.map_err(SwitchError::NotNegotiated);
        }
        let set = self.send.set_combination(now, combination).ok_or(TcpError::Shutdown)?;
        if let Err(CombinationError::NotGranted { missing, .. }) = set {
            return Err(SwitchError::NotNegotiated(missing));
        }
        self.collect_events();
        Ok(())
    }
}
