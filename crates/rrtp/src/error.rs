//! Errors of connections and endpoints.

/// The reason why a connection ended other than gracefully.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The handshake was not completed in time.
    #[error("no answer: the handshake was not completed in time")]
    HandshakeTimeout,
    /// The peer uses another version of RRTP.
    #[error("the peer speaks version {theirs} of RRTP, not {}", crate::wire::VERSION)]
    Version {
        /// The peer's version.
        theirs: u8,
    },
    /// The peer accepts no more connections.
    #[error("the peer accepts no more connections")]
    Refused,
    /// No packet arrived from the peer for the idle time-out.
    #[error("no packets from the peer")]
    TimedOut,
    /// The peer responds, but received nothing new for the progress time-out.
    #[error("no data was delivered any more")]
    Stalled,
    /// The peer acknowledged data that it had not received.
    #[error("the peer acknowledged data that it had not received")]
    FalseAck,
    /// The peer does not know the connection: it has ended it, or was restarted.
    #[error("the peer no longer knows the connection")]
    Unknown,
    /// The peer aborted the connection.
    #[error("the peer aborted the connection")]
    Aborted,
    /// The application aborted the connection, or released it before all received data was read.
    #[error("the connection was aborted locally")]
    AbortedHere,
}

/// The error of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The connection no longer exists, and there is no other error: it ended gracefully or was
    /// released.
    #[error("no such connection")]
    NoConnection,
    /// The connection has ended.
    #[error(transparent)]
    Ended(#[from] ConnectionError),
    /// This end has finished the stream.
    #[error("the stream is finished")]
    Finished,
    /// The endpoint has reached its limit of connections.
    #[error("too many connections")]
    TooMany,
}
