//! The settings of a connection.

use std::time::Duration;

use airtcp_recovery::SenderConfig;
use airtcp_types::{ByteCount, FlowId};
use airtcp_wire::options::HackForm;

use super::ecn::{EcnMode, Negotiation};
use super::extensions::Offer;
use super::receive::MarkAware;
use super::timers::KeepAlive;

/// The settings of a connection. The defaults are those of current Linux, except for the sizes of the buffers.
///
/// ```
/// use std::time::Duration;
///
/// use airtcp_stack::tcp::{EcnMode, TcpConfig};
///
/// let mut config = TcpConfig {
///     nodelay: true,
///     ecn: EcnMode::Active,
///     user_timeout: Some(Duration::from_secs(30)),
///     ..TcpConfig::default()
/// };
/// config.sender.combination = "le/westwood".parse()?;
/// # Ok::<(), airtcp_recovery::CombinationError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// The sender: detection, control, judges, profile. Whether ACKs are delayed is in the profile
    /// too, though it is the receiver that obeys it.
    pub sender: SenderConfig,
    /// The largest IP packet, headers included (bytes). The host's MTU limits it: the smaller one counts.
    pub mtu: u16,
    /// TTL or hop limit of the packets sent. In [`HostConfig::tcp`](crate::HostConfig::tcp) the host's own
    /// replaces it.
    pub hop_limit: u8,
    /// The initial receive window (bytes); on the SYN at most 65,535.
    pub initial_window: ByteCount,
    /// The maximum size of the receive buffer (bytes); it determines the window scale. The buffer grows with what the
    /// application reads in a round trip. In fast recovery it holds about two bandwidth-delay products.
    pub receive_buffer: ByteCount,
    /// The maximum size of the send buffer (bytes), which limits the data in flight. The buffer grows with the congestion
    /// window. In fast recovery it holds about two bandwidth-delay products.
    pub send_buffer: ByteCount,
    /// How much may have been written and not be sent yet (bytes), before a writer is kept waiting; see
    /// [`Connection::set_not_sent_low_water`](super::Connection::set_not_sent_low_water).
    pub not_sent_low_water: Option<ByteCount>,
    /// Disables Nagle's algorithm (RFC 9293 section 3.7.4): small segments are sent at once.
    pub nodelay: bool,
    /// Whether to offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether to offer SACK (RFC 2018), including DSACK (RFC 2883).
    pub sack: bool,
    /// Whether to offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// When to use ECN, and with which feedback: classic (RFC 3168) or AccECN (RFC 9768).
    pub ecn: EcnMode,
    /// HACK is offered, and granted: header checksums, and special ACKs for corrupted segments. Both
    /// ends have to be willing; a receiver that is to help its peers says [`Offer::Always`].
    pub hack: Offer,
    /// The encoding of HACK's options in an active open; a passive open uses the peer's.
    pub hack_form: HackForm,
    /// When to offer and accept transmission numbers and their echo.
    pub tx_numbers: Offer,
    /// Duplicate ACKs for losses on the radio are withheld, by the marks of a base station (TCP-ECN); never unless asked
    /// for, since elsewhere there is no mark on anything.
    pub mark_aware: Option<MarkAware>,
    /// The user timeout (RFC 5482): the connection ends if sent data is not acknowledged for so long, or if data waits so
    /// long for a closed window to open. `None`: it ends after 15 timeouts in a row, and a peer that answers probes may
    /// keep its window closed for ever.
    pub user_timeout: Option<Duration>,
    /// Segments become smaller where large ones time out again and again, as if a router dropped them and
    /// said nothing (RFC 4821 section 7.7).
    pub black_holes: bool,
    /// A silent peer is asked whether it is still there (RFC 9293 section 3.8.4); never unless asked for.
    pub keep_alive: Option<KeepAlive>,
    /// A connection that a peer opens is not there to be accepted before it brings data or a FIN, or so long has passed
    /// (`TCP_DEFER_ACCEPT`); never unless asked for, and zero is not to wait. Data out of order is enough, as with Linux:
    /// there need not be anything to read yet. Until then it is half-open, and counts as that against the backlog and
    /// quotas; one that begins with a cookie is accepted at once.
    pub defer_accept: Option<Duration>,
    /// How often a SYN or SYN-ACK is sent again before the peer counts as gone: after 247 s where it is 7, the default
    /// (RFC 9293 section 3.8.3 asks for 3 minutes).
    pub syn_retries: u8,
    /// Whether an ICMP error that reports the peer's host or network as unreachable ends an attempt to connect, as in Linux.
    /// RFC 9293 section 3.9.2.2 asks for patience instead, for a path that may come back. For a gateway, whose client is to
    /// learn of the error and decides what to do.
    pub unreachable_ends_attempt: bool,
    /// Whether it starts with what the host's other connections to the same address have measured, and hands on what it
    /// measures (RFC 9040): round-trip times, the rate, the share of random losses. Its SYN is then sent again after the
    /// usual time-out of the path, and `bbr3` starts at its part of the rate; `spike` starts with the known share.
    ///
    /// Never unless asked for: behind one address there may be several paths, and the figures of a connection depend on
    /// what came before it.
    pub path_memory: bool,
    /// The duration of TIME-WAIT (twice the MSL of RFC 9293 section 3.4.2; 60 s in Linux).
    pub time_wait: Duration,
    /// How long FIN-WAIT-2 lasts once the application let go.
    pub fin_wait_2: Duration,
    /// Whether to emit events.
    pub events: bool,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            sender: SenderConfig::default(),
            mtu: 1500,
            hop_limit: 64,
            initial_window: ByteCount(65_535),
            // 100 Mbit/s over a round trip of 600 ms, with a loss.
            receive_buffer: ByteCount::from_mib(16),
            send_buffer: ByteCount::from_mib(16),
            not_sent_low_water: None,
            nodelay: false,
            timestamps: true,
            sack: true,
            window_scaling: true,
            ecn: EcnMode::default(),
            hack: Offer::default(),
            hack_form: HackForm::default(),
            tx_numbers: Offer::default(),
            mark_aware: None,
            user_timeout: None,
            black_holes: true,
            keep_alive: None,
            defer_accept: None,
            // RFC 9293 section 3.8.3: 1 + 2 + 4 + ... + 64 s, and 120 s for the last one.
            syn_retries: 7,
            unreachable_ends_attempt: false,
            path_memory: false,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            events: false,
        }
    }
}

impl TcpConfig {
    /// The MSS to announce for `flow`: the MTU without fixed headers (RFC 9293 section 3.7.1).
    pub(super) fn mss(&self, flow: &FlowId) -> u16 {
        self.mtu.saturating_sub(fixed_headers(flow)).max(MIN_MSS)
    }

    /// Whether a SYN offers HACK.
    pub fn offers_hack(&self) -> bool {
        self.hack.stands(self.sender.combination.needs().hack)
    }

    /// What a handshake with these settings offers of ECN.
    pub(super) fn ecn(&self) -> Negotiation {
        Negotiation::new(self.ecn, self.sender.combination.needs().ecn)
    }

    /// Whether a SYN offers transmission numbers.
    pub(super) fn offers_tx_numbers(&self) -> bool {
        self.tx_numbers.stands(self.sender.combination.needs().txno_echo)
    }

    /// The smallest shift with which the largest receive buffer can be offered (RFC 7323 section
    /// 2.3: at most 14).
    pub(super) fn window_scale(&self) -> u8 {
        (0..14).find(|shift| self.receive_buffer.0 >> shift <= 65_535).unwrap_or(14)
    }
}

/// The smallest MSS that is used, whatever a peer says; Linux's `tcp_min_snd_mss`.
pub(super) const MIN_MSS: u16 = 48;

/// The headers of IP and TCP without options (bytes).
pub(super) const fn fixed_headers(flow: &FlowId) -> u16 {
    headers(flow.remote.is_ipv4())
}

/// The same by the version of IP.
pub(super) const fn headers(is_ipv4: bool) -> u16 {
    if is_ipv4 { 40 } else { 60 }
}

/// What a peer that names no MSS can take (RFC 9293 section 3.7.1).
pub(super) const fn default_mss(flow: &FlowId) -> u16 {
    if flow.remote.is_ipv4() { 536 } else { 1220 }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Shows: RFC7323-2.3-4
    #[test]
    fn the_scale_is_the_smallest_that_offers_the_whole_buffer() {
        let scale = |bytes| {
            TcpConfig { receive_buffer: ByteCount(bytes), ..Default::default() }.window_scale()
        };
        assert_eq!(scale(65_535), 0);
        assert_eq!(scale(65_536), 1);
        assert_eq!(scale(6 << 20), 7);
        assert_eq!(scale(16 << 20), 9);
        assert_eq!(scale(u64::MAX), 14);
    }
}
