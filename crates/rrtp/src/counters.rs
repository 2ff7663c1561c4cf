//! Counters of an endpoint.

/// Datagrams of an endpoint, and why those were refused that were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that left.
    pub sent: u64,
    /// Refused: the CRC is not that of the bytes.
    pub bad_checksum: u64,
    /// Refused: sound, but too short, of no known type or with values that there cannot be.
    pub malformed: u64,
    /// Refused: of another version.
    pub bad_version: u64,
    /// SYNs that came.
    pub syns: u64,
    /// Replies dropped because too many waited to leave.
    pub replies_dropped: u64,
    /// STARTs refused: the cookie was not made here for this address and this connection.
    pub bad_cookie: u64,
    /// STARTs refused: the cookie has expired.
    pub expired_cookie: u64,
    /// STARTs refused: they are of a connection that has ended.
    pub replayed_start: u64,
    /// STARTs answered again: their connection is there.
    pub repeated_start: u64,
    /// STARTs refused: there are as many connections as there may be, in all or from this address.
    pub too_many: u64,
    /// STARTs refused: as many connections wait for the application as may.
    pub backlog_full: u64,
    /// Refused: SYNs and STARTs where nobody listens.
    pub not_listening: u64,
    /// Refused: of no connection.
    pub unknown_connection: u64,
    /// Refused: of a connection, but not from its peer.
    pub wrong_address: u64,
    /// Refused: what a connection in its state does not expect.
    pub unexpected: u64,
    /// Reports refused: they tell of what was never sent, take back what they said, or name a lost
    /// packet twice or too many of them.
    pub implausible: u64,
    /// Connections ended: the peer acknowledged data that it had not received.
    pub optimistic_acks: u64,
    /// Profiles of peers that asked for a higher send rate than they may.
    pub rate_capped: u64,
    /// Data refused: beyond the room that the peer was told of, or larger than it said its packets
    /// are.
    pub over_window: u64,
    /// Data refused: there was no memory left.
    pub no_memory: u64,
    /// Data that had come before.
    pub duplicates: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened from here that came to be.
    pub opened: u64,
}
