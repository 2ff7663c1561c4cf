//! Counters of a station.

use airtcp_link::Counters as RadioCounters;
use airtcp_link::radio::AirCounters;
use serde::{Serialize, Serializer};

use super::{Policy, Reach};

/// What a station did, in packets unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct StationCounters {
    /// Dropped because they do not begin with a whole IPv4 or IPv6 header.
    pub not_ip: u64,
    /// Given the paper's mark.
    pub marked: u64,
    /// Duplicate ACKs dropped, because the radio, or the cache, had what they asked for.
    pub hidden: u64,
    /// Sent again from the cache.
    pub sent_again: u64,
    /// ACKs of the mobile's whose window was closed.
    pub frozen: u64,
    /// ACKs that the station made, to close windows and to open them.
    pub made: u64,
    /// Held while the mobile was gone.
    pub held: u64,
    /// Of these, dropped because another copy was older.
    pub held_again: u64,
    /// Probes and keepalives that came while the mobile was gone: answered, or too soon after such
    /// an answer.
    pub probes: u64,
    /// Dropped because there was no room to hold them, or the mobile stayed away.
    pub held_dropped: u64,
    /// Flows let go because the mobile stayed away for too long.
    pub let_go: u64,
    /// Segments whose numbers lie outside the window of the end that they are for (RFC 9293 section
    /// 3.10.7.4).
    pub out_of_window_data: u64,
    /// Segments that acknowledge what was not sent, or nothing (RFC 5961 section 5).
    pub out_of_window_acks: u64,
    /// SYNs on a flow that is open (RFC 5961 section 4).
    pub out_of_window_syns: u64,
    /// Resets with another number than the one that their receiver waits for (RFC 5961 section 3).
    pub out_of_window_rsts: u64,
    /// Packets from the wireless side dropped because their source is in none of the mobiles'
    /// networks.
    pub spoofed_sources: u64,
    /// Packets from the wireless side dropped because their source is for one link only: an IPv6
    /// link-local address, or the unspecified address.
    pub link_local_sources: u64,
    /// Events that found no room.
    pub missed_events: u64,
}

impl std::ops::AddAssign for StationCounters {
    fn add_assign(&mut self, other: Self) {
        self.not_ip += other.not_ip;
        self.marked += other.marked;
        self.hidden += other.hidden;
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

/// How a station stands. Of two, the first is towards the mobile.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Status {
    /// What is made of flows.
    pub policy: Policy,
    /// How the mobile is, as far as senders are concerned.
    pub reach: Reach,
    /// Whether the mobile can be heard.
    pub connected: bool,
    /// Whether it soon cannot.
    pub fading: bool,
    /// The power received from it, in watts.
    pub received_power: f64,
    /// Packets that wait for the air or are on it.
    #[serde(serialize_with = "by_way")]
    pub queued: [usize; 2],
    /// Flows that the mobile takes part in.
    pub flows: usize,
    /// Flows that it has not acknowledged anything of.
    pub unproven: usize,
    /// Flows whose senders were told to stop.
    pub frozen: usize,
    /// Flows forgotten to make room.
    pub evicted: u64,
    /// Bytes that the state of flows takes.
    pub memory: usize,
    /// Packets that wait for the mobile to come back.
    pub held: usize,
    /// The bytes that they take.
    pub held_bytes: usize,
    /// Bytes of packets that are cached; `memory` has them too.
    pub cached: usize,
    /// What the station did.
    pub counters: StationCounters,
    /// What became of packets on the radio.
    #[serde(serialize_with = "by_way")]
    pub radio: [RadioCounters; 2],
    /// What the two ends did on the air.
    #[serde(serialize_with = "by_way")]
    pub air: [AirCounters; 2],
}

fn by_way<T: Serialize, S: Serializer>(both: &[T; 2], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(["to_mobile", "from_mobile"].into_iter().zip(both))
}
