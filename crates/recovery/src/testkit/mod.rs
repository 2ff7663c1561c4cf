//! Test tools for strategies, without a connection, a socket or a clock.
//!
//! - A **control** is tested with an [`ack_view`] and [notices](crate::Notice).
//! - A **detection** or a **judge** is tested on a [`Scene`]: the test sends and acknowledges
//!   segments, and the scene provides the views.
//! - A whole [`Sender`] runs over a [`Net`], which loses and delays selected segments.
//! - [`laws`] are properties of all strategies: call them with a combination of your own.
//!
//! Segments are numbered from zero and have [`SMSS`] bytes each. A violated property causes a
//! panic.
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

/// The bytes of a full segment in all tests.
pub const SMSS: u64 = 1000;
/// The first sequence number in all tests.
pub const FIRST: ExtSeq = ExtSeq(1);
/// The RTT in all tests.
pub const RTT: Duration = Duration::from_millis(100);

/// Returns the instant `millis` milliseconds after the start.
pub const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Returns the sequence number at which segment `index` starts.
pub fn seq(index: u64) -> ExtSeq {
    FIRST + index * SMSS
}

/// Returns the byte range of segments `from..to`.
pub fn segments(from: u64, to: u64) -> SeqRange {
    SeqRange::new(seq(from), seq(to))
}

/// Returns the number of the segment that starts at `seq`.
pub fn index(seq: ExtSeq) -> u64 {
    seq.since(FIRST).0 / SMSS
}

/// Returns a sender with `combination` whose peer grants all options.
pub fn sender_of(combination: Combination, profile: Profile) -> Sender {
    let config = SenderConfig { combination, profile, ..SenderConfig::default() };
    sender_with(&config)
}

/// Returns a sender whose peer grants all options.
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

/// Returns a sender with the named combination and the modern profile, whose peer grants all
/// options.
pub fn sender(combination: &str) -> Sender {
    sender_of(combination.parse().expect("a known combination"), Profile::modern())
}

/// Returns a supply of all segments below `index`; the peer's window ends there, too.
pub fn supply(index: u64) -> Supply {
    Supply { end: seq(index), fin: false, window_edge: seq(index), nodelay: false }
}

/// Returns a pure ACK of all segments below `index`, with SACK blocks.
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

/// Sends all that the windows permit; returns the transmissions and the limit that stopped them.
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

/// Returns the transmissions as segment numbers and rules.
pub fn named(sent: &[Transmit]) -> Vec<(u64, SendRule)> {
    sent.iter().map(|transmit| (index(transmit.range.start), transmit.rule)).collect()
}

/// Returns a valid sample of `delivered` bytes over [`RTT`].
pub fn rate_sample(delivered: ByteCount, prior_delivered: ByteCount) -> RateSample {
    RateSample::new(delivered, Some(RTT), prior_delivered)
}

/// Returns an ACK of `bytes` of a sender that is limited by its window.
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
