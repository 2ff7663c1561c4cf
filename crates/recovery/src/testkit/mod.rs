//! For tests of strategies, without a connection, a socket or a clock.
//!
//! - A **control** hears an [`ack_view`] and [notices](crate::Notice), and shows its window.
//! - A **detector** and a **judge** are tested on a [`Scene`]: segments leave and are acknowledged,
//!   and the scene gives the views.
//! - A whole [`Sender`] runs over a [`Net`]: a pipe that loses and delays what it is told to.
//! - [`laws`] hold for all strategies: call them with a combination of your own.
//!
//! Segments are counted from zero and have [`SMSS`] bytes each. A rule that is broken panics.
//!
//! ```
//! use airtcp_recovery::testkit::{SMSS, ack_view, ms};
//! use airtcp_recovery::{
//!     Cause, CongestionControl, ControlParams, Notice, NoticeKind, control::Reno,
//! };
//! use airtcp_types::ByteCount;
//!
//! let mut reno = Reno::new(&ControlParams::new(ByteCount(SMSS), ByteCount(10 * SMSS)));
//! reno.on_ack(&ack_view(ms(100), ByteCount(SMSS)));
//! assert_eq!(reno.window(), ByteCount(11 * SMSS));
//!
//! let flight_size = ByteCount(10 * SMSS);
//! let reduce = NoticeKind::Reduce { flight_size, cause: Cause::Congestion };
//! reno.on_notice(&Notice::new(ms(100), flight_size, reduce));
//! assert_eq!(reno.window(), ByteCount(5 * SMSS));
//! ```

pub mod laws;
mod net;
mod scene;

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SendRule, SeqRange};

use crate::{
    Ack, AckView, Combination, Decision, Limit, Phase, Profile, RateSample, Sender, SenderConfig,
    Start, Supply, Transmit, WireNeeds,
};

pub use net::{Bottleneck, Net};
pub use scene::Scene;

/// Bytes of a full segment in all tests.
pub const SMSS: u64 = 1000;
/// The first sequence number in all tests.
pub const FIRST: ExtSeq = ExtSeq(1);
/// The round-trip time in all tests.
pub const RTT: Duration = Duration::from_millis(100);

/// So many milliseconds after the begin.
pub const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Where segment `index` starts.
pub fn seq(index: u64) -> ExtSeq {
    FIRST + index * SMSS
}

/// Segments `from..to`.
pub fn segments(from: u64, to: u64) -> SeqRange {
    SeqRange::new(seq(from), seq(to))
}

/// The number of the segment that starts at `seq`.
pub fn index(seq: ExtSeq) -> u64 {
    seq.since(FIRST).0 / SMSS
}

/// A sender of `combination` at a peer that grants everything.
pub fn sender_of(combination: Combination, profile: Profile) -> Sender {
    let config = SenderConfig { combination, profile, ..SenderConfig::default() };
    sender_with(&config)
}

/// A sender at a peer that grants everything.
pub(crate) fn sender_with(config: &SenderConfig) -> Sender {
    let start = Start {
        now: Instant::ZERO,
        first: FIRST,
        smss: ByteCount(SMSS),
        granted: WireNeeds::ALL,
        handshake_rtt: Some(RTT),
        syn_retransmitted: false,
        seed: 0,
    };
    Sender::new(config, &start)
}

/// As [`sender_of`], by name, in the modern profile.
pub fn sender(combination: &str) -> Sender {
    sender_of(combination.parse().expect("a known combination"), Profile::modern())
}

/// Everything to `index` is there to be sent, and the peer's window takes it.
pub fn supply(index: u64) -> Supply {
    Supply { end: seq(index), fin: false, window_edge: seq(index), nodelay: false }
}

/// A pure ACK of everything below segment `index`, with SACK blocks.
pub fn ack(index: u64, sack: &[SeqRange]) -> Ack<'_> {
    Ack {
        ack: seq(index),
        window_changed: false,
        window_opened: false,
        has_payload: false,
        sack,
        dsack: None,
        echo: None,
        ece: false,
        ce: ByteCount::ZERO,
        echoed: None,
    }
}

/// Sends all that may leave.
pub fn pump(sender: &mut Sender, now: Instant, supply: &Supply) -> (Vec<Transmit>, Limit) {
    let mut sent = Vec::new();
    loop {
        match sender.next_transmission(now, supply) {
            Decision::Send(transmit) => sent.push(transmit),
            Decision::Blocked(limit) => return (sent, limit),
        }
        assert!(sent.len() < 100_000, "the sender does not stop");
    }
}

/// What left, as segment number and rule.
pub fn named(sent: &[Transmit]) -> Vec<(u64, SendRule)> {
    sent.iter().map(|transmit| (index(transmit.range.start), transmit.rule)).collect()
}

/// A valid sample of `delivered` bytes over [`RTT`].
pub fn rate_sample(delivered: ByteCount, prior_delivered: ByteCount) -> RateSample {
    RateSample::new(delivered, Some(RTT), prior_delivered)
}

/// An ACK that acknowledges `bytes` of a flow whose window is its limit.
pub fn ack_view(now: Instant, bytes: ByteCount) -> AckView<'static> {
    AckView {
        now,
        ack: FIRST,
        acked: bytes,
        delivered: bytes,
        newly: &[],
        sack: &[],
        dsack: None,
        duplicate: false,
        echo: None,
        ece: false,
        marked: ByteCount::ZERO,
        echoed_tx: None,
        rtt: Some(RTT),
        srtt: RTT,
        rate: None,
        delivered_total: bytes,
        lost: ByteCount::ZERO,
        pipe: ByteCount::ZERO,
        random_share: 0.0,
        low_load_wanted: false,
        round_start: false,
        prior_pipe: ByteCount::ZERO,
        cwnd_limited: true,
        max_flight: ByteCount::MAX,
        grows_with_hole: false,
        phase: Phase::Open,
    }
}
