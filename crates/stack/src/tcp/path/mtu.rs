//! The known path MTU.

use airtcp_types::ByteCount;

use crate::tcp::config::{MIN_MSS, headers};

/// The size below which no report reduces packets with IPv4 (Linux's `min_pmtu`).
const LEAST_V4: u16 = 552;
/// The minimum MTU of every link with IPv6 (RFC 8200 section 5).
const LEAST_V6: u16 = 1280;
/// The first reduced size with IPv4 if nothing gets through: an MSS of 1024 (Linux's
/// `tcp_base_mss`).
const BASE_V4: u16 = 1064;
/// The number of consecutive time-outs of possibly too large segments after which smaller ones are
/// tried (Linux's `tcp_retries1`), and the number after which the minimum size is used.
const RETRIES: u32 = 3;
const MORE_RETRIES: u32 = 7;

/// The path MTU of one connection: the minimum of path, device and peer.
///
/// `former` is zero or at least `mtu`: it is the size to restore if a suspected black hole was an
/// outage.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct PathMtu {
    /// The maximum packet size (bytes).
    mtu: u16,
    /// The size before a black hole that may have been an outage; otherwise zero.
    former: u16,
    is_ipv4: bool,
    /// Whether time-outs may make packets smaller.
    finds_black_holes: bool,
}

/// The state of a connection at a time-out.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Stall {
    /// The number of consecutive time-outs.
    pub(in crate::tcp) silence: u32,
    /// The payload of the first outstanding segment (bytes).
    pub(in crate::tcp) first: ByteCount,
    /// The length of the options in every segment with data (bytes).
    pub(in crate::tcp) option_bytes: u16,
    /// Whether a full segment was acknowledged before.
    pub(in crate::tcp) full_segment_arrived: bool,
}

impl PathMtu {
    /// Creates the state before anything is known of the path: the device accepts packets of `mtu`
    /// bytes.
    pub(in crate::tcp) const fn new(mtu: u16, is_ipv4: bool, finds_black_holes: bool) -> Self {
        Self { mtu, former: 0, is_ipv4, finds_black_holes }
    }

    /// The maximum packet size (bytes).
    pub(in crate::tcp) const fn get(&self) -> u16 {
        self.mtu
    }

    /// The payload of the largest packet, whose options have `option_bytes` bytes.
    pub(in crate::tcp) fn payload(&self, option_bytes: u16) -> u16 {
        let mss = self.mtu.saturating_sub(headers(self.is_ipv4)).max(MIN_MSS);
        mss.saturating_sub(option_bytes).max(1)
    }

    /// Applies the peer's MSS.
    pub(in crate::tcp) fn on_peer_mss(&mut self, mss: u16) {
        self.mtu = self.mtu.min(mss.saturating_add(headers(self.is_ipv4)));
    }

    /// Applies a report that the path carries packets of at most `mtu` bytes; returns whether this
    /// reduces the packet size.
    ///
    /// A report never increases the packet size, and does not reduce it below 552 bytes with IPv4
    /// and 1280 with IPv6.
    pub(in crate::tcp) fn on_limit(&mut self, mtu: u16) -> bool {
        let mtu = mtu.max(if self.is_ipv4 { LEAST_V4 } else { LEAST_V6 });
        self.former = self.former.min(mtu);
        let is_smaller = mtu < self.mtu;
        self.mtu = self.mtu.min(mtu);
        is_smaller
    }

    /// Handles a time-out: a router may drop large packets without an ICMP error. Returns whether
    /// packets become smaller.
    pub(in crate::tcp) fn on_timeout(&mut self, stall: &Stall) -> bool {
        if !self.finds_black_holes {
            return false;
        }
        let small = match (self.is_ipv4, stall.silence) {
            (_, ..=RETRIES) => return false,
            (true, ..=MORE_RETRIES) => BASE_V4,
            (true, _) => LEAST_V4,
            (false, _) => LEAST_V6,
        };
        // If full segments got through before, the cause may be an outage.
        let former = if stall.full_segment_arrived { self.mtu } else { self.former };
        let others = u64::from(headers(self.is_ipv4) + stall.option_bytes);
        let shrinks = stall.first.0 + others > u64::from(small) && self.on_limit(small);
        if shrinks {
            self.former = former;
        }
        shrinks
    }

    /// Restores the packet size after an ACK that leaves no loss to repair. If packets are lost
    /// again before a full one gets through, the cause was not an outage. Returns whether packets
    /// become larger.
    pub(in crate::tcp) fn on_recovered(&mut self) -> bool {
        let is_shrunk = self.is_shrunk();
        self.mtu = self.mtu.max(std::mem::take(&mut self.former));
        is_shrunk
    }

    /// Whether packets became smaller because of a possible outage.
    pub(in crate::tcp) const fn is_shrunk(&self) -> bool {
        self.former != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(silence: u32, payload: u16) -> Stall {
        let first = ByteCount(payload.into());
        Stall { silence, first, option_bytes: 12, full_segment_arrived: true }
    }

    #[test]
    fn a_message_only_makes_packets_smaller_and_not_too_small() {
        for (is_ipv4, least) in [(true, LEAST_V4), (false, LEAST_V6)] {
            let mut path = PathMtu::new(1500, is_ipv4, true);
            assert!(!path.on_limit(1500) && !path.on_limit(9000));
            assert!(path.on_limit(1400) && !path.on_limit(1400));
            assert_eq!(path.get(), 1400);
            assert!(path.on_limit(68));
            assert_eq!(path.get(), least);
        }
    }

    #[test]
    fn a_segment_holds_what_headers_and_options_leave_and_one_byte_at_least() {
        let mut path = PathMtu::new(1500, true, true);
        assert_eq!((path.payload(0), path.payload(12)), (1460, 1448));
        path.on_peer_mss(u16::MAX);
        assert_eq!(path.get(), 1500);
        path.on_peer_mss(536);
        assert_eq!((path.get(), path.payload(12)), (576, 524));
        path.on_peer_mss(1);
        assert_eq!((path.payload(0), path.payload(MIN_MSS + 7)), (MIN_MSS, 1));
        assert_eq!(PathMtu::new(1500, false, true).payload(12), 1428);
    }

    #[test]
    fn smaller_packets_are_tried_after_a_few_time_outs_and_the_smallest_after_more() {
        let mut path = PathMtu::new(1500, true, true);
        assert!(!path.on_timeout(&stall(RETRIES, 1448)));
        assert!(path.on_timeout(&stall(RETRIES + 1, 1448)));
        assert_eq!(path.get(), BASE_V4);
        assert!(!path.on_timeout(&stall(MORE_RETRIES, 1012)), "it is small enough");
        assert!(path.on_timeout(&stall(MORE_RETRIES + 1, 1012)));
        assert_eq!(path.get(), LEAST_V4);
        assert!(!PathMtu::new(1500, true, false).on_timeout(&stall(9, 1448)), "it is turned off");
        let mut six = PathMtu::new(1500, false, true);
        assert!(!six.on_timeout(&stall(9, 1208)), "1280 bytes in all");
        assert!(six.on_timeout(&stall(9, 1209)));
        assert_eq!(six.get(), LEAST_V6);
    }

    #[test]
    fn after_an_outage_packets_are_what_they_were_unless_a_router_says_otherwise() {
        let mut path = PathMtu::new(1500, true, true);
        assert!(!path.on_recovered());
        assert!(path.on_timeout(&stall(4, 1448)) && path.is_shrunk());
        assert!(path.on_recovered());
        assert_eq!((path.get(), path.is_shrunk()), (1500, false));
        assert!(path.on_timeout(&stall(4, 1448)) && !path.on_limit(1300));
        assert!(path.on_recovered());
        assert_eq!(path.get(), 1300);
    }

    #[test]
    fn where_no_full_segment_ever_got_through_packets_stay_small() {
        let mut path = PathMtu::new(1500, true, true);
        assert!(path.on_timeout(&Stall { full_segment_arrived: false, ..stall(4, 1448) }));
        assert!(!path.on_recovered());
        assert_eq!(path.get(), BASE_V4);
    }
}
