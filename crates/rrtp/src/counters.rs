//! Counters of an endpoint.

/// Counters of an endpoint: datagrams, and the reasons for refusing them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Datagrams received.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Refused: wrong CRC.
    pub bad_checksum: u64,
    /// Refused: correct CRC, but too short, of unknown type, or with invalid values.
    pub malformed: u64,
    /// Refused: another version.
    pub bad_version: u64,
    /// SYNs received.
    pub syns: u64,
    /// Responses dropped because the queue was full.
    pub replies_dropped: u64,
    /// STARTs refused: this endpoint did not make the cookie for this address and connection.
    pub bad_cookie: u64,
    /// STARTs refused: the cookie has expired.
    pub expired_cookie: u64,
    /// STARTs refused: their connection has ended.
    pub replayed_start: u64,
    /// Repeated STARTs: their connection exists, and the START-ECHO is sent again.
    pub repeated_start: u64,
    /// STARTs refused: the limit of connections is reached, in total or for this address.
    pub too_many: u64,
    /// STARTs refused: the backlog is full.
    pub backlog_full: u64,
    /// Refused: SYNs and STARTs without a listener.
    pub not_listening: u64,
    /// Refused: the connection is unknown.
    pub unknown_connection: u64,
    /// Refused: the connection exists, but the packet is not from its peer's address.
    pub wrong_address: u64,
    /// Refused: the connection does not expect the packet in its state.
    pub unexpected: u64,
    /// Reports refused: they are about packets that were never sent, take back an earlier report,
    /// or name a lost packet twice or too many lost packets.
    pub implausible: u64,
    /// Connections aborted because the peer acknowledged data that it had not received.
    pub optimistic_acks: u64,
    /// Profiles of peers whose send rate was limited.
    pub rate_capped: u64,
    /// Data refused: beyond the announced window, or larger than the announced packet size.
    pub over_window: u64,
    /// Data refused: the memory limit is reached.
    pub no_memory: u64,
    /// Data received again.
    pub duplicates: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened by this endpoint and established.
    pub opened: u64,
}
