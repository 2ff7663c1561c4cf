//! Counters of a station.

use airtcp_link::Counters as RadioCounters;
use airtcp_link::radio::AirCounters;
use serde::{Serialize, Serializer};

use super::{Policy, Reach};

/// Counters of a station, in packets unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct StationCounters {
    /// Packets dropped because they do not start with a complete IPv4 or IPv6 header.
    pub not_ip: u64,
    /// Segments marked with the paper's mark.
    pub marked: u64,
    /// Duplicate ACKs dropped because the radio or the cache has the missing segment, or the mobile
    /// has acknowledged it while they were delayed.
    pub hidden: u64,
    /// Duplicate ACKs that were delayed. Those that are neither hidden nor still waiting were
    /// forwarded late.
    pub delayed: u64,
    /// Segments retransmitted from the cache.
    pub sent_again: u64,
    /// ACKs of the mobile whose window was set to zero.
    pub frozen: u64,
    /// ACKs that the station generated, to close and to open windows.
    pub made: u64,
    /// Packets held while the mobile was out of reach.
    pub held: u64,
    /// Held packets dropped because an older copy was held.
    pub held_again: u64,
    /// Window probes and keepalives that arrived while the mobile was out of reach. They were
    /// answered, or dropped because they came too soon after an answer.
    pub probes: u64,
    /// Packets dropped because there was no room to hold them, or the mobile did not return in
    /// time.
    pub held_dropped: u64,
    /// Flows released because the mobile did not return in time.
    pub let_go: u64,
    /// Segments outside the receiver's window (RFC 9293 section 3.10.7.4).
    pub out_of_window_data: u64,
    /// Segments that acknowledge data that was not sent, or have no ACK (RFC 5961 section 5).
    pub out_of_window_acks: u64,
    /// SYNs in an open flow (RFC 5961 section 4).
    pub out_of_window_syns: u64,
    /// Resets whose sequence number is not the next expected one (RFC 5961 section 3).
    pub out_of_window_rsts: u64,
    /// Packets from the wireless side dropped because their source is not in the mobiles' networks.
    pub spoofed_sources: u64,
    /// Packets from the wireless side dropped because their source is not valid beyond the link: an
    /// IPv6 link-local address, or the unspecified address.
    pub link_local_sources: u64,
    /// Events discarded because the queue was full.
    pub missed_events: u64,
}

impl std::ops::AddAssign for StationCounters {
    fn add_assign(&mut self, other: Self) {
        self.not_ip += other.not_ip;
        self.marked += other.marked;
        self.hidden += other.hidden;
        self.delayed += other.delayed;
        self.sent_again += other.sent_again;
        self.frozen += other.frozen;
        self.made += other.made;
        self.held += other.held;
        self.held_again += other.held_again;
        self.probes += other.probes;
        self.held_dropped += other.held_dropped;
        self.let_go += other.let_go;
        self.out_of_window_data += other.out_of_window_data;
        self.out_of_window_acks += other.out_of_window_acks;
        self.out_of_window_syns += other.out_of_window_syns;
        self.out_of_window_rsts += other.out_of_window_rsts;
        self.spoofed_sources += other.spoofed_sources;
        self.link_local_sources += other.link_local_sources;
        self.missed_events += other.missed_events;
    }
}

/// The status of a station. In pairs, the first value is for the direction to the mobile.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Status {
    /// The policy.
    pub policy: Policy,
    /// The mobile's state as far as senders are concerned: that of the mobiles that are not known.
    pub reach: Reach,
    /// Whether the mobile can be reached now.
    pub connected: bool,
    /// Whether the connection is about to break.
    pub fading: bool,
    /// The power received from the mobile, in watts.
    pub received_power: f64,
    /// Packets queued for the radio or in transmission.
    #[serde(serialize_with = "by_way")]
    pub queued: [usize; 2],
    /// Flows in which the mobile takes part.
    pub flows: usize,
    /// Flows in which the mobile has not acknowledged anything.
    pub unproven: usize,
    /// Frozen flows.
    pub frozen: usize,
    /// Flows removed to make room for others.
    pub evicted: u64,
    /// Memory of the flows' state, in bytes.
    pub memory: usize,
    /// Packets held until the mobile returns.
    pub held: usize,
    /// Memory of the held packets, in bytes.
    pub held_bytes: usize,
    /// Bytes of cached packets, or of delayed ACKs; `memory` includes them.
    pub cached: usize,
    /// Packets from an address that found no place among the heard mobiles.
    pub mobile_full: u64,
    /// The station's counters.
    pub counters: StationCounters,
    /// The packet counters of the radio.
    #[serde(serialize_with = "by_way")]
    pub radio: [RadioCounters; 2],
    /// The frame counters of the radio's two ends.
    #[serde(serialize_with = "by_way")]
    pub air: [AirCounters; 2],
}

pub(super) fn by_way<T: Serialize, S: Serializer>(
    both: &[T; 2],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(["to_mobile", "from_mobile"].into_iter().zip(both))
}
