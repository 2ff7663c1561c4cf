//! The settings of a connection.

use std::time::Duration;

use airtcp_recovery::SenderConfig;
use airtcp_types::{ByteCount, FlowId};
use airtcp_wire::options::HackForm;

use super::ecn::{EcnMode, Negotiation};
use super::extensions::Offer;
use super::receive::MarkAware;
use super::timers::KeepAlive;

/// The settings of a connection. The defaults are those of current Linux, except for the sizes of
/// the buffers.
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
    /// The sender: loss detection, congestion control, judges, profile. The profile also says
    /// whether the receiver delays ACKs.
    pub sender: SenderConfig,
    /// The maximum size of IP packets, including headers (bytes). The host's MTU limits it as well.
    pub mtu: u16,
    /// The TTL or hop limit of packets sent. In [`HostConfig::tcp`](crate::HostConfig::tcp) the
    /// host's own setting replaces it.
    pub hop_limit: u8,
    /// The initial receive window (bytes); at most 65,535 on the SYN.
    pub initial_window: ByteCount,
    /// The maximum size of the receive buffer (bytes); it determines the window scale. The buffer
    /// grows with the data that the application reads per round trip. In fast recovery it holds
    /// about two bandwidth-delay products.
    pub receive_buffer: ByteCount,
    /// The maximum size of the send buffer (bytes), which limits the data in flight. The buffer
    /// grows with the congestion window. In fast recovery it holds about two bandwidth-delay
    /// products.
    pub send_buffer: ByteCount,
    /// The limit of written but unsent data (bytes), beyond which a writer has to wait; see
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
    /// When to offer and accept HACK: header checksums, and special ACKs for corrupted segments.
    /// Both ends have to offer it; a receiver that wants to help its peers uses [`Offer::Always`].
    pub hack: Offer,
    /// The encoding of HACK's options in an active open; a passive open uses the peer's.
    pub hack_form: HackForm,
    /// When to offer and accept transmission numbers and their echo.
    pub tx_numbers: Offer,
    /// Whether to withhold duplicate ACKs for losses on a radio link, which the marks of a base
    /// station identify (TCP-ECN). Off by default: without a base station no segment is marked.
    pub mark_aware: Option<MarkAware>,
    /// The user timeout (RFC 5482): the connection ends if sent data is not acknowledged for this
    /// long, or if data waits this long for a closed window to open. `None`: the connection ends
    /// after 15 consecutive time-outs, and a peer that answers window probes may keep its window
    /// closed forever.
    pub user_timeout: Option<Duration>,
    /// Whether to send smaller segments after repeated time-outs of large ones, which suggest that
    /// a router drops them without an ICMP error (RFC 4821 section 7.7).
    pub black_holes: bool,
    /// Whether and how to probe a silent peer (RFC 9293 section 3.8.4). Off by default.
    pub keep_alive: Option<KeepAlive>,
    /// Deferred accept (`TCP_DEFER_ACCEPT`): a connection that a peer opens cannot be accepted
    /// before its first data or FIN arrives, or until this time has passed. Off by default; zero
    /// does not wait. As in Linux, out-of-order data is enough, so that nothing may be readable
    /// yet. Until then the connection is half-open, and counts as such against the backlog and the
    /// quotas. A connection opened by a SYN cookie is accepted at once.
    pub defer_accept: Option<Duration>,
    /// The maximum number of retransmissions of a SYN or SYN-ACK. With 7, the default, the attempt
    /// fails after 247 s (RFC 9293 section 3.8.3 requires 3 minutes).
    pub syn_retries: u8,
    /// Whether an ICMP error that reports the peer's host or network as unreachable ends an attempt
    /// to connect, as in Linux. RFC 9293 section 3.9.2.2 requires to continue, because the path may
    /// come back. A gateway sets it, so that its client gets the error and decides.
    pub unreachable_ends_attempt: bool,
    /// Whether the connection starts with the measurements of the host's other connections to the
    /// same address, and reports its own (RFC 9040): round-trip times, the rate, the share of
    /// random losses. The SYN is then retransmitted after the usual time-out of the path; `bbr3`
    /// starts at its share of the rate; `spike` starts with the known loss share.
    ///
    /// Off by default: one address may be reached by several paths, and the behaviour of a
    /// connection then depends on earlier ones.
    pub path_memory: bool,
    /// The duration of TIME-WAIT (RFC 9293 section 3.4.2: twice the MSL; Linux: 60 s).
    pub time_wait: Duration,
    /// The maximum duration of FIN-WAIT-2 after the application has closed the connection.
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
            // Enough for 100 Mbit/s with a round-trip time of 600 ms and one loss.
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
    /// The MSS to announce for `flow`: the MTU minus the fixed headers (RFC 9293 section 3.7.1).
    pub(super) fn mss(&self, flow: &FlowId) -> u16 {
        self.mtu.saturating_sub(fixed_headers(flow)).max(MIN_MSS)
    }

    /// Whether a SYN offers HACK.
    pub fn offers_hack(&self) -> bool {
        self.hack.stands(self.sender.combination.needs().hack)
    }

    /// The ECN negotiation of a handshake with these settings.
    pub(super) fn ecn(&self) -> Negotiation {
        Negotiation::new(self.ecn, self.sender.combination.needs().ecn)
    }

    /// Whether a SYN offers transmission numbers.
    pub(super) fn offers_tx_numbers(&self) -> bool {
        self.tx_numbers.stands(self.sender.combination.needs().txno_echo)
    }

    /// The smallest window scale with which the maximum receive buffer can be offered (at most 14,
    /// RFC 7323 section 2.3).
    pub(super) fn window_scale(&self) -> u8 {
        (0..14).find(|shift| self.receive_buffer.0 >> shift <= 65_535).unwrap_or(14)
    }
}

/// The minimum MSS, regardless of the peer's option (Linux's `tcp_min_snd_mss`).
pub(super) const MIN_MSS: u16 = 48;

/// The length of the IP and TCP headers without options (bytes).
pub(super) const fn fixed_headers(flow: &FlowId) -> u16 {
    headers(flow.remote.is_ipv4())
}

/// The length of the headers by IP version (bytes).
pub(super) const fn headers(is_ipv4: bool) -> u16 {
    if is_ipv4 { 40 } else { 60 }
}

/// The MSS of a peer that sends no MSS option (RFC 9293 section 3.7.1).
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
