//! The views that strategies read.

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SeqRange, TxNo};

use crate::board::Board;
use crate::deferred::Deferred;
use crate::rate::RateSample;
use crate::rtt::RttEstimator;
use crate::transmission::Delivered;

/// The response to congestion that is in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing, or nothing that stops the window from growing.
    Open,
    /// The window was reduced because a packet was marked (RFC 3168), and does not grow: nothing is
    /// missing.
    Cwr,
    /// A recovery is on: one reduction was made, and the window does not grow.
    Recovery,
    /// The retransmission timer ran out, and what was sent before is being repaired.
    Loss,
}

/// A snapshot of the sender for detectors and judges.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The moment.
    pub now: Instant,
    /// What was sent and what became of it.
    pub board: &'a Board,
    /// The phase of the sender.
    pub phase: Phase,
    /// Whether the window was reduced so lately that another loss does not reduce it again.
    pub in_recovery: bool,
    /// The sender's maximum segment size: payload bytes of a full segment.
    pub smss: ByteCount,
    /// The congestion window.
    pub cwnd: ByteCount,
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// Whether the control is in slow start.
    pub slow_start: bool,
    /// Whether the detection goes by SACK.
    pub sack: bool,
    /// DupThresh of RFC 5681 and RFC 6675.
    pub dup_thresh: u32,
    /// Round-trip time estimates.
    pub rtt: &'a RttEstimator,
    /// How long until the retransmission timer runs out, if it runs.
    pub rto_left: Option<Duration>,
    pub(crate) deferred: &'a Deferred,
}

impl View<'_> {
    /// Whether a judge has deferred the response to the loss of `tx`.
    pub fn is_deferred(&self, tx: TxNo) -> bool {
        self.deferred.contains(tx)
    }
}

/// An ACK and the information in it, after the board was updated.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckView<'a> {
    /// When it arrived.
    pub now: Instant,
    /// What it acknowledges cumulatively.
    pub ack: ExtSeq,
    /// By how much SND.UNA advanced.
    pub acked: ByteCount,
    /// Bytes newly known to have arrived, cumulatively or selectively.
    pub delivered: ByteCount,
    /// The same, in the order in which the ACK reports them. Segments sent together may be one
    /// entry: see [`Delivered::transmissions`].
    pub newly: &'a [Delivered],
    /// Its SACK blocks above the cumulative ACK.
    pub sack: &'a [SeqRange],
    /// Its report of a duplicate (RFC 2883).
    pub dsack: Option<SeqRange>,
    /// Whether it is a duplicate ACK as RFC 5681 section 2 defines it.
    pub duplicate: bool,
    /// The instant, in whole milliseconds, at which the time stamp it echoes was made.
    pub echo: Option<Instant>,
    /// Whether it reports a congestion mark: ECE (RFC 3168), or marked bytes (RFC 9768).
    pub ece: bool,
    /// Bytes newly known to have arrived with a mark. ECE reports only that there was one: then all
    /// of `delivered`.
    pub marked: ByteCount,
    /// The transmission whose number it echoes, where the wire has such numbers (LE 2.2.2).
    pub echoed_tx: Option<TxNo>,
    /// A round-trip time, from the newest acknowledged transmission that was sent once.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time after it; zero before the first sample.
    pub srtt: Duration,
    /// The delivery-rate sample; `None` if the ACK reports no delivery.
    pub rate: Option<RateSample>,
    /// Bytes delivered since the connection began (C.delivered of draft-ietf-ccwg-bbr).
    pub delivered_total: ByteCount,
    /// Bytes judged lost on this ACK, whatever the cause; zero before detection.
    pub lost: ByteCount,
    /// Bytes in flight. After detection, what it found lost is no longer counted.
    pub pipe: ByteCount,
    /// The share of transmissions that the link loses at random, from 0 to 1, as a judge measures
    /// it; zero before detection.
    pub random_share: f64,
    /// Whether a judge would measure that share if less were in flight for a while; false before
    /// detection.
    pub low_load_wanted: bool,
    /// Whether it begins a new round trip.
    pub round_start: bool,
    /// Bytes held to be in the network before it.
    pub prior_pipe: ByteCount,
    /// Whether what it acknowledges was sent while the congestion window was the limit.
    pub cwnd_limited: bool,
    /// The most that was outstanding in this round trip (maxFS of
    /// draft-ietf-ccwg-ratelimited-increase, which counts from the last reduction).
    pub max_flight: ByteCount,
    /// Whether an ACK that does not advance SND.UNA lets the window grow, too: while a judge waits
    /// (DCR 2.2), and in congestion avoidance where the detection knows no recovery (LE 2.2.3).
    pub grows_with_hole: bool,
    /// What the sender was doing about losses when it arrived; after detection, what it does since,
    /// where this ACK started a reduction.
    pub phase: Phase,
}
