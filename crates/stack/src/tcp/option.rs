//! Socket options of an open connection, as set by setsockopt(2).

use std::time::Duration;

use airtcp_recovery::Combination;
use airtcp_types::{ByteCount, Instant};

use super::{Connection, KeepAlive, SwitchError};

/// A socket option, for [`Host::tcp_set`](crate::Host::tcp_set).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SocketOption {
    /// Disables Nagle's algorithm (`TCP_NODELAY`); see [`Connection::set_nodelay`].
    NoDelay(bool),
    /// Sends only full segments (`TCP_CORK`); see [`Connection::set_cork`].
    Cork(bool),
    /// Enables or disables quick ACKs (`TCP_QUICKACK`); see [`Connection::set_quick_ack`].
    QuickAck(bool),
    /// The limit of unsent data (`TCP_NOTSENT_LOWAT`); see [`Connection::set_not_sent_low_water`].
    NotSentLowWater(Option<ByteCount>),
    /// The size of the send buffer (`SO_SNDBUF`); see [`Connection::set_send_buffer`].
    SendBuffer(ByteCount),
    /// The maximum size of the receive buffer (`SO_RCVBUF`); see
    /// [`Connection::set_receive_buffer`].
    ReceiveBuffer(ByteCount),
    /// The TTL or hop limit of packets sent (`IP_TTL`, `IPV6_UNICAST_HOPS`).
    HopLimit(u8),
    /// Keep-alive (`SO_KEEPALIVE`); `None` disables it.
    KeepAlive(Option<KeepAlive>),
    /// The user timeout (`TCP_USER_TIMEOUT`, RFC 5482): how long sent data or a keep-alive may stay
    /// unanswered, and how long data may wait for a closed window to open. With `None`, the
    /// default, the usual number of time-outs applies.
    UserTimeout(Option<Duration>),
    /// The linger time (`SO_LINGER`); see [`Connection::set_linger`].
    Linger(Option<Duration>),
    /// The strategies of the sender; see [`Connection::set_combination`].
    Combination(Combination),
}

impl SocketOption {
    /// Sets the option. Returns whether a packet may become due because of it.
    pub(crate) fn apply(
        self,
        now: Instant,
        connection: &mut Connection,
    ) -> Result<bool, SwitchError> {
        match self {
            Self::NoDelay(on) => return Ok(connection.set_nodelay(on)),
            Self::Cork(on) => connection.set_cork(on),
            Self::QuickAck(on) => connection.set_quick_ack(on),
            Self::NotSentLowWater(mark) => connection.set_not_sent_low_water(mark),
            Self::SendBuffer(size) => connection.set_send_buffer(size),
            Self::ReceiveBuffer(most) => connection.set_receive_buffer(most),
            Self::HopLimit(hop_limit) => {
                connection.set_hop_limit(hop_limit);
                return Ok(false);
            }
            Self::KeepAlive(settings) => connection.set_keep_alive(now, settings),
            Self::UserTimeout(limit) => connection.set_user_timeout(limit),
            Self::Linger(limit) => {
                connection.set_linger(limit);
                return Ok(false);
            }
            Self::Combination(combination) => connection.set_combination(now, &combination)?,
        }
        Ok(true)
    }
}
