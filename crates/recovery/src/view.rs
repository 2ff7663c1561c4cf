//! The views that strategies read.

use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, SeqRange, TxNo};

use crate::board::Board;
use crate::deferred::Deferred;
use crate::rate::RateSample;
use crate::rtt::RttEstimator;
use crate::transmission::Delivered;

/// The sender's response to congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No response, or one during which the window may grow.
    Open,
    /// The window was reduced because a packet carried a congestion mark (RFC 3168). It does not
    /// grow until the reduction ends. No data is missing.
    Cwr,
    /// Recovery: the window was reduced once for losses, and does not grow.
    Recovery,
    /// The retransmission timer expired; the data sent before is being retransmitted.
    Loss,
}

/// A snapshot of the sender for detections and judges.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The current time.
    pub now: Instant,
    /// All outstanding transmissions and their states.
    pub board: &'a Board,
    /// The sender's response to congestion.
    pub phase: Phase,
    /// Whether a recovery is in progress: another loss does not reduce the window again.
    pub in_recovery: bool,
    /// The sender's maximum segment size: payload bytes of a full segment.
    pub smss: ByteCount,
    /// The congestion window.
    pub cwnd: ByteCount,
    /// The slow-start threshold; `None` while it is not set.
    pub ssthresh: Option<ByteCount>,
    /// Whether the control is in slow start.
    pub slow_start: bool,
    /// Whether the detection uses SACK.
    pub sack: bool,
    /// DupThresh of RFC 5681 and RFC 6675: the number of duplicate ACKs or segments above a hole
    /// that indicate a loss.
    pub dup_thresh: u32,
    /// Round-trip time estimates.
    pub rtt: &'a RttEstimator,
    /// The time until the retransmission timer expires; `None` if the timer is not running.
    pub rto_left: Option<Duration>,
    pub(crate) deferred: &'a Deferred,
}

impl View<'_> {
    /// Whether a judge has deferred the response to the loss of `tx`.
    pub fn is_deferred(&self, tx: TxNo) -> bool {
        self.deferred.contains(tx)
    }
}

/// An ACK and the information derived from it, after the board was updated.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckView<'a> {
    /// When the ACK arrived.
    pub now: Instant,
    /// The cumulative acknowledgement number.
    pub ack: ExtSeq,
    /// The bytes by which the ACK advanced SND.UNA.
    pub acked: ByteCount,
    /// Bytes that the ACK newly acknowledges, cumulatively or selectively.
    pub delivered: ByteCount,
    /// The segments that these bytes belong to, in the order in which the ACK reports them. One
    /// entry can stand for several segments that were sent together: see
    /// [`Delivered::transmissions`].
    pub newly: &'a [Delivered],
    /// The ACK's SACK blocks above the cumulative acknowledgement.
    pub sack: &'a [SeqRange],
    /// The ACK's DSACK, which reports a duplicate (RFC 2883).
    pub dsack: Option<SeqRange>,
    /// Whether the ACK is a duplicate ACK as defined in RFC 5681 section 2.
    pub duplicate: bool,
    /// The time of the echoed time stamp (TSecr), in whole milliseconds.
    pub echo: Option<Instant>,
    /// Whether the ACK reports a congestion mark: ECE (RFC 3168) or marked bytes (RFC 9768).
    pub ece: bool,
    /// Newly delivered bytes that carried a congestion mark. ECE does not count marked bytes: with
    /// ECE alone this is all of `delivered`.
    pub marked: ByteCount,
    /// The transmission whose number the ACK echoes, if the connection uses transmission numbers
    /// (LE 2.2.2).
    pub echoed_tx: Option<TxNo>,
    /// The RTT sample: of the newest transmission that the ACK newly covers and that was sent once,
    /// or of the retransmission whose number it echoes.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time after the ACK; zero before the first sample.
    pub srtt: Duration,
    /// The delivery-rate sample; `None` if the ACK delivers nothing.
    pub rate: Option<RateSample>,
    /// Bytes delivered since the connection started (C.delivered of draft-ietf-ccwg-bbr).
    pub delivered_total: ByteCount,
    /// Bytes that this ACK marked lost, whatever the cause; zero before detection.
    pub lost: ByteCount,
    /// Bytes in flight. After detection, without the losses that it found.
    pub pipe: ByteCount,
    /// The share of transmissions that the link loses at random, from 0 to 1, as measured by a
    /// judge; zero before detection.
    pub random_share: f64,
    /// Whether a judge asks for less data in flight for a while, so that it can measure that share;
    /// false before detection.
    pub low_load_wanted: bool,
    /// Whether the ACK starts a new round trip.
    pub round_start: bool,
    /// Bytes in flight before the ACK.
    pub prior_pipe: ByteCount,
    /// Whether the acknowledged data was sent while the congestion window was the limit.
    pub cwnd_limited: bool,
    /// The most bytes outstanding in this round trip (maxFS of
    /// draft-ietf-ccwg-ratelimited-increase, which counts from the last reduction).
    pub max_flight: ByteCount,
    /// Whether the window may also grow on an ACK that does not advance SND.UNA: while a judge
    /// defers a response (DCR 2.2), and in congestion avoidance with a detection whose recovery
    /// ends by time (LE 2.2.3).
    pub grows_with_hole: bool,
    /// The sender's response to congestion when the ACK arrived. After detection, the response that
    /// this ACK started, if it started one.
    pub phase: Phase,
}
