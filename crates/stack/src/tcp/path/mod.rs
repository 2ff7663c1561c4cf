//! Path MTU discovery (RFC 1191, RFC 8201), and black-hole detection (RFC 4821 section 7.7).

mod mtu;

use airtcp_recovery::Phase;
use airtcp_types::{ByteCount, Instant};
use tracing::debug;

use crate::counters::Counters;

use super::{Connection, TIMESTAMPS_LEN};

pub(super) use mtu::{PathMtu, Stall};

impl Connection {
    /// Applies a report that the path carries packets of at most `mtu` bytes; returns whether this
    /// reduces the packet size.
    ///
    /// A report never increases the packet size, and does not reduce it below 552 bytes with IPv4
    /// and 1280 with IPv6. Outstanding segments that are too large are retransmitted at once,
    /// without a reduction of the congestion window (RFC 1191 section 6.5).
    pub fn on_path_mtu(&mut self, now: Instant, mtu: u16) -> bool {
        let is_smaller = self.path.on_limit(mtu);
        if is_smaller {
            self.shrink_segments(now);
        }
        is_smaller
    }

    /// The maximum size of packets sent (bytes): the minimum of path, device and peer.
    pub const fn path_mtu(&self) -> u16 {
        self.path.get()
    }

    /// The payload of the largest packet (bytes).
    pub(super) fn segment_size(&self) -> u16 {
        self.path.payload(self.option_bytes())
    }

    /// The length of the options in every segment with data (bytes).
    pub(super) fn option_bytes(&self) -> u16 {
        let timestamps = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.extensions.as_ref().map_or(0, |e| e.overhead() as u16)
    }

    fn shrink_segments(&mut self, now: Instant) {
        let size = ByteCount(u64::from(self.segment_size()));
        self.send.shrink_segments(now, size);
        self.collect_events();
    }

    /// Checks for a black hole after a time-out: a router may drop large packets without an ICMP
    /// error.
    pub(super) fn check_black_hole(&mut self, now: Instant, counters: &mut Counters) {
        let Some(sender) = self.send.sender() else { return };
        let stall = Stall {
            silence: self.send.silence(),
            first: sender.board().first().map_or(ByteCount::ZERO, |first| first.range.len()),
            option_bytes: self.option_bytes(),
            full_segment_arrived: sender.full_segment_arrived(),
        };
        if self.path.on_timeout(&stall) {
            self.shrink_segments(now);
            let mtu = self.path.get();
            debug!(remote = %self.flow.remote, mtu, "black hole suspected: packet size reduced");
            counters.tcp_ext_pmtu_black_holes += 1;
        }
    }

    /// Restores the packet size after an ACK, once the losses of an outage are repaired.
    pub(super) fn end_black_hole(&mut self, now: Instant, counters: &mut Counters) {
        if !self.path.is_shrunk() {
            return;
        }
        let option_bytes = self.option_bytes();
        if let Some(sender) = self.send.sender()
            && sender.backoff() == 0
            && sender.phase() == Phase::Open
            && self.path.on_recovered()
        {
            let mtu = self.path.get();
            debug!(remote = %self.flow.remote, mtu, "packet size restored: outage, no black hole");
            counters.tcp_ext_pmtu_restored += 1;
            self.send.grow_segments(now, ByteCount(u64::from(self.path.payload(option_bytes))));
        }
    }
}
