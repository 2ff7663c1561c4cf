//! Path MTU discovery (RFC 1191, RFC 8201), and what is done where routers say nothing (RFC 4821 section 7.7).

use airtcp_recovery::Phase;
use airtcp_types::{ByteCount, Instant};
use tracing::debug;

use crate::counters::Counters;

use super::config::{MIN_MSS, fixed_headers};
use super::{Connection, TIMESTAMPS_LEN};

/// With IPv4 no message makes packets smaller than this (Linux's `min_pmtu`).
const LEAST_V4: u16 = 552;
/// With IPv6 every link takes this (RFC 8200 section 5).
const LEAST_V6: u16 = 1280;
/// What is tried first with IPv4 where nothing gets through: an MSS of 1024 (Linux's `tcp_base_mss`).
const BASE_V4: u16 = 1064;
/// Time-outs in a row of segments that may be too large, after which smaller ones are tried (Linux's
/// `tcp_retries1`), and after which the smallest are.
const RETRIES: u32 = 3;
const MORE_RETRIES: u32 = 7;

impl Connection {
    /// Takes the news that the path takes packets of no more than `mtu` bytes; gives whether less was
    /// not known already.
    ///
    /// Packets never grow by it, and no message makes them smaller than 552 bytes with IPv4 and 1280
    /// with IPv6. What is outstanding and too large is sent again at once, with the window as it is
    /// (RFC 1191 section 6.5).
    pub fn on_path_mtu(&mut self, now: Instant, mtu: u16) -> bool {
        let mtu = mtu.max(self.least_mtu());
        self.send.former_mtu = self.send.former_mtu.min(mtu);
        if mtu >= self.send.path_mtu {
            return false;
        }
        self.send.path_mtu = mtu;
        let size = ByteCount(u64::from(self.segment_size()));
        if let Some(sender) = &mut self.send.sender {
            sender.shrink_segments(now, size);
            self.collect_events();
        }
        true
    }

    /// The longest packet that it sends (bytes): what the path, the device and the peer take.
    pub const fn path_mtu(&self) -> u16 {
        self.send.path_mtu
    }

    /// Payload bytes of the longest packet.
    pub(super) fn segment_size(&self) -> u16 {
        let mss = self.send.path_mtu.saturating_sub(fixed_headers(&self.flow)).max(MIN_MSS);
        mss.saturating_sub(self.option_bytes()).max(1)
    }

    /// What options take from every segment with data (bytes).
    pub(super) fn option_bytes(&self) -> u16 {
        let timestamps = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        timestamps + self.extensions.as_ref().map_or(0, |e| e.overhead() as u16)
    }

    /// After a time-out: a router may drop what is too large and say nothing.
    pub(super) fn check_black_hole(&mut self, now: Instant, counters: &mut Counters) {
        let Some(sender) = self.send.sender.as_ref().filter(|_| self.black_holes) else {
            return;
        };
        let small = match (self.flow.remote.is_ipv4(), self.send.silence()) {
            (_, ..=RETRIES) => return,
            (true, ..=MORE_RETRIES) => BASE_V4,
            (true, _) => LEAST_V4,
            (false, _) => LEAST_V6,
        };
        let headers = u64::from(fixed_headers(&self.flow) + self.option_bytes());
        let first = sender.board().first().map_or(0, |first| first.range.len().0);
        // Where they got through before, nothing may get through now.
        let former =
            if sender.full_segment_arrived() { self.send.path_mtu } else { self.send.former_mtu };
        if first + headers > u64::from(small) && self.on_path_mtu(now, small) {
            debug!(remote = %self.flow.remote, mtu = small, "a black hole for large packets?");
            counters.tcp_ext_pmtu_black_holes += 1;
            self.send.former_mtu = former;
        }
    }

    /// After an ACK: what an outage has left is repaired, and packets are what they were. Should they
    /// vanish once more before one has got through, it was no outage.
    pub(super) fn end_black_hole(&mut self, now: Instant, counters: &mut Counters) {
        if self.send.former_mtu == 0 {
            return;
        }
        if let Some(sender) = &self.send.sender
            && sender.backoff() == 0
            && sender.phase() == Phase::Open
        {
            self.send.path_mtu = self.send.path_mtu.max(std::mem::take(&mut self.send.former_mtu));
            let mtu = self.send.path_mtu;
            debug!(remote = %self.flow.remote, mtu, "packets are what they were: it was an outage");
            counters.tcp_ext_pmtu_restored += 1;
            let size = self.segment_size();
            if let Some(sender) = &mut self.send.sender {
                sender.grow_segments(now, ByteCount(u64::from(size)));
            }
        }
    }

    const fn least_mtu(&self) -> u16 {
        if self.flow.remote.is_ipv4() { LEAST_V4 } else { LEAST_V6 }
    }
}
