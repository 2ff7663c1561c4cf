//! Errors of connections and endpoints.

/// Why a connection ended other than gracefully.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// Nobody completed the handshake in time.
    #[error("no answer: the handshake was not completed in time")]
    HandshakeTimeout,
    /// The peer speaks another version.
    #[error("the peer speaks version {theirs} of RRTP, not {}", crate::wire::VERSION)]
    Version {
        /// The peer's.
        theirs: u8,
    },
    /// The peer takes no more connections.
    #[error("the peer accepts no more connections")]
    Refused,
    /// The peer was not heard for the idle time-out.
    #[error("no packets from the peer")]
    TimedOut,
    /// The peer is heard, but got nothing new for the progress time-out.
    #[error("no data was delivered any more")]
    Stalled,
    /// The peer acknowledged data that it had not received.
    #[error("the peer acknowledged data that it had not received")]
    FalseAck,
    /// The peer does not know the connection: it has ended it, or was started anew.
    #[error("the peer no longer knows the connection")]
    Unknown,
    /// The peer aborted.
    #[error("the peer aborted the connection")]
    Aborted,
    /// Data came that nobody will read, as the stream was let go of; or the application aborted.
    #[error("the connection was aborted locally")]
    AbortedHere,
}

/// A call that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// There is no such connection any more, and no error to tell: it ended gracefully or was let
    /// go of.
    #[error("no such connection")]
    NoConnection,
    /// The connection has ended.
    #[error(transparent)]
    Ended(#[from] ConnectionError),
    /// The stream was finished by this end.
    #[error("the stream is finished")]
    Finished,
    /// The endpoint has as many connections as it may.
    #[error("too many connections")]
    TooMany,
}
