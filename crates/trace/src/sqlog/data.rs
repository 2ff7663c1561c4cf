//! The `data` of a record, for each event.
//!
//! A field with different names in the draft and in TCP is written with both; the one with TCP's
//! name is read.

use airtcp_types::{ByteCount, Checksum, Packet, Rate, SendRule};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::numbers::Millis;

/// An event. `node` and `group_id` (the flow) are additions to the draft's three fields.
#[derive(Serialize, Deserialize)]
pub(super) struct Record<'a, D> {
    pub(super) time: Millis,
    #[serde(borrow)]
    pub(super) name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub(super) node: std::borrow::Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) group_id: Option<std::borrow::Cow<'a, str>>,
    pub(super) data: D,
}

/// A record in which `data` is parsed later, when the name is known.
pub(super) type RawRecord<'a> = Record<'a, &'a RawValue>;

pub(super) const STATE: &str = "connectivity:connection_state_updated";
pub(super) const SENT: &str = "transport:packet_sent";
pub(super) const RECEIVED: &str = "transport:packet_received";
pub(super) const LOST: &str = "recovery:packet_lost";
pub(super) const METRICS: &str = "recovery:metrics_updated";
pub(super) const TIMER: &str = "recovery:loss_timer_updated";
pub(super) const CONGESTION_STATE: &str = "recovery:congestion_state_updated";
/// The frame type of acknowledgements.
pub(super) const ACK: &str = "ack";
/// The congestion states.
pub(super) const REDUCED: &str = "reduced";
pub(super) const UNDONE: &str = "undone";
pub(super) const DROPPED: &str = "transport:packet_dropped";
pub(super) const CORRUPTED: &str = "link:packet_corrupted";
pub(super) const MARKED: &str = "link:packet_marked";
pub(super) const DUPLICATED: &str = "link:packet_duplicated";
pub(super) const RETRIED: &str = "link:packet_retried";
pub(super) const HELD: &str = "link:packet_held";
pub(super) const FROZEN: &str = "link:window_closed";
pub(super) const MADE: &str = "link:packet_made";

#[derive(Serialize, Deserialize)]
pub(super) struct State {
    pub(super) old: String,
    pub(super) new: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PacketHeader {
    pub(super) packet_number: u64,
}

/// The draft's RawInfo of a segment: the sequence space that it occupies.
#[derive(Serialize)]
pub(super) struct Length {
    pub(super) length: u64,
}

/// The event of a sent segment. `seq` does not wrap; its low 32 bits are those on the wire.
#[derive(Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) header: PacketHeader,
    #[serde(skip_deserializing)]
    pub(super) raw: Option<Length>,
    pub(super) seq: u64,
    pub(super) len: u64,
    pub(super) rule: SendRule,
    #[serde(skip_deserializing)]
    pub(super) bytes_in_flight: ByteCount,
    pub(super) pipe: ByteCount,
    #[serde(skip_deserializing)]
    pub(super) congestion_window: ByteCount,
    pub(super) cwnd: ByteCount,
    pub(super) rwnd: ByteCount,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Received {
    /// Empty, because qvis requires it and the peer's packets have no numbers.
    #[serde(skip_deserializing)]
    pub(super) header: Unnumbered,
    #[serde(skip_deserializing)]
    pub(super) raw: Option<Length>,
    pub(super) seq: u64,
    pub(super) len: u64,
    pub(super) ack: u64,
    pub(super) wnd: ByteCount,
    /// The transmissions that it acknowledges for the first time, as QUIC's ACK frame.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) frames: Vec<AckFrame>,
}

#[derive(Serialize, Default)]
pub(super) struct Unnumbered {}

#[derive(Serialize, Deserialize)]
pub(super) struct AckFrame {
    pub(super) frame_type: String,
    /// The first and the last `packet_number` of each run.
    pub(super) acked_ranges: Vec<[u64; 2]>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Lost {
    pub(super) header: PacketHeader,
    pub(super) seq: u64,
    pub(super) len: u64,
    pub(super) trigger: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Window {
    #[serde(skip_deserializing)]
    pub(super) congestion_window: ByteCount,
    pub(super) cwnd: ByteCount,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ssthresh: Option<ByteCount>,
    #[serde(skip_deserializing)]
    pub(super) bytes_in_flight: ByteCount,
    pub(super) pipe: ByteCount,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pacing_rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bandwidth_estimate: Option<Rate>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Rtt {
    pub(super) latest_rtt: Millis,
    #[serde(skip_deserializing)]
    pub(super) smoothed_rtt: Option<Millis>,
    pub(super) srtt: Millis,
    pub(super) min_rtt: Millis,
}

/// Distinguishes the two events with the name `METRICS`.
#[derive(Deserialize)]
pub(super) struct Metrics<'a> {
    #[serde(borrow)]
    pub(super) srtt: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Timer {
    pub(super) timer_type: String,
    pub(super) event_type: String,
    pub(super) backoff: u32,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CongestionState {
    pub(super) new: String,
    pub(super) trigger: String,
}

/// The event of a packet whose fate has at most a cause.
#[derive(Serialize, Deserialize)]
pub(super) struct Handled {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trigger: Option<String>,
    pub(super) raw: Raw,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Retried {
    pub(super) pass: u32,
    pub(super) raw: Raw,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Corrupted {
    pub(super) bits: u32,
    pub(super) header_hit: bool,
    pub(super) unnoticed: bool,
    pub(super) raw: Raw,
}

/// The draft's RawInfo: a packet in hexadecimal.
#[derive(Serialize, Deserialize)]
pub(super) struct Raw {
    #[serde(skip_deserializing)]
    pub(super) length: usize,
    pub(super) data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) segment_size: Option<u16>,
    /// Omitted if the packet has its checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
}

impl Raw {
    pub(super) fn new(packet: &Packet) -> Self {
        let mut data = String::with_capacity(2 * packet.len());
        for byte in &packet.data {
            data.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
        let checksum = match packet.checksum {
            Checksum::Full => None,
            Checksum::Partial => Some("partial".to_owned()),
            Checksum::Verified => Some("verified".to_owned()),
        };
        Self { length: packet.len(), data, segment_size: packet.segment_size, checksum }
    }

    pub(super) fn packet(&self) -> Result<Packet, String> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = self.data.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?));
        let data = bytes.collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty());
        let checksum = match self.checksum.as_deref() {
            None => Checksum::Full,
            Some("partial") => Checksum::Partial,
            Some("verified") => Checksum::Verified,
            Some(other) => return Err(format!("no such checksum: {other:?}")),
        };
        let data = data.ok_or("raw.data is not in hexadecimal")?;
        Ok(Packet { data, segment_size: self.segment_size, checksum, ..Packet::default() })
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
