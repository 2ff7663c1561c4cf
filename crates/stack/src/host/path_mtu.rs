//! Path MTU cache: validation of ICMP messages, and values for new connections.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use airtcp_types::Instant;
use airtcp_wire::icmp::Quote;

use super::secret::Keyed;

/// How long a path MTU is valid, because the path may change (RFC 1191 section 6.3, RFC 8201
/// section 4; Linux's `mtu_expires`).
const LIFETIME: Duration = Duration::from_secs(600);
/// The maximum number of destinations; a new one replaces the one that expires first.
const MOST: usize = 4096;
/// Common link MTUs, for routers that report none (RFC 1191 section 7).
const PLATEAUS: [u16; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];
/// The minimum MTU of a link (RFC 791 section 3.2, RFC 8200 section 5).
const LEAST_V4: u32 = 68;
const LEAST_V6: u32 = 1280;

/// The path MTU reported by Fragmentation Needed or Packet Too Big, if it is plausible.
///
/// It must be smaller than the packet that the message quotes (RFC 5927 section 7.2). A Packet Too
/// Big with less than 1280 is ignored (RFC 8201 section 4).
pub(super) fn believable(quote: &Quote, next_hop: u32) -> Option<u16> {
    let packet = quote.len;
    let mtu = match (quote.flow.remote.is_ipv4(), next_hop) {
        (true, 0) => *PLATEAUS.iter().find(|plateau| u32::from(**plateau) < packet)?,
        (true, ..LEAST_V4) | (false, ..LEAST_V6) => return None,
        (_, named) => u16::try_from(named).ok()?,
    };
    (u32::from(mtu) < packet).then_some(mtu)
}

/// Path MTUs by destination.
#[derive(Debug)]
pub(super) struct PathMtus {
    known: HashMap<IpAddr, Known, Keyed>,
    by_end: BTreeSet<(Instant, IpAddr)>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    mtu: u16,
    until: Instant,
}

impl PathMtus {
    pub(super) fn new(keyed: Keyed) -> Self {
        Self { known: HashMap::with_hasher(keyed), by_end: BTreeSet::new() }
    }

    /// The maximum size of packets to `remote` (bytes), if a smaller one than the link's is known.
    pub(super) fn get(&self, now: Instant, remote: IpAddr) -> Option<u16> {
        self.known.get(&remote).filter(|known| known.until > now).map(|known| known.mtu)
    }

    /// Stores a path MTU; of two valid ones the smaller is kept.
    pub(super) fn learn(&mut self, now: Instant, remote: IpAddr, mtu: u16) {
        let mtu = self.get(now, remote).map_or(mtu, |known| known.min(mtu));
        let known = Known { mtu, until: now + LIFETIME };
        if let Some(old) = self.known.insert(remote, known) {
            self.by_end.remove(&(old.until, remote));
        }
        self.by_end.insert((known.until, remote));
        while self.known.len() > MOST || self.by_end.first().is_some_and(|(end, _)| *end <= now) {
            let Some((_, oldest)) = self.by_end.pop_first() else { break };
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use airtcp_types::{FlowId, SeqNumber};
    use airtcp_wire::ip;

    use super::super::secret::Secret;
    use super::*;

    fn quote(remote: &str, len: u32) -> Quote {
        let end = |text: &str| text.parse::<SocketAddr>().unwrap();
        let flow = FlowId { local: end("10.0.0.1:1"), remote: end(remote) };
        Quote { flow, protocol: ip::TCP, seq: SeqNumber(0), len }
    }

    #[test]
    fn a_reported_mtu_not_below_the_packet_size_is_ignored() {
        let v4 = |len, next_hop| believable(&quote("10.0.0.2:2", len), next_hop);
        assert_eq!(v4(1500, 1499), Some(1499));
        assert_eq!(v4(1500, 1500), None);
        assert_eq!(v4(1500, 70_000), None);
        assert_eq!((v4(1500, 68), v4(1500, 67)), (Some(68), None));
        let v6 = |len, next_hop| believable(&quote("[fd00::2]:2", len), next_hop);
        assert_eq!(v6(1500, 1280), Some(1280));
        assert_eq!(v6(1500, 1279), None);
        assert_eq!(v6(1500, 0), None);
        assert_eq!(v6(1280, 1280), None);
    }

    #[test]
    fn an_old_router_means_the_next_plateau() {
        let v4 = |len| believable(&quote("10.0.0.2:2", len), 0);
        assert_eq!(v4(1500), Some(1492));
        assert_eq!(v4(1492), Some(1006));
        assert_eq!(v4(65_535), Some(32_000));
        assert_eq!(v4(1006), Some(508));
        assert_eq!(v4(296), None);
    }

    #[test]
    fn a_path_mtu_expires_after_ten_minutes_and_the_smaller_one_stays() {
        let mut known = PathMtus::new(Secret::new([1; 16]).keyed());
        let (to, at) = ("10.0.0.2".parse().unwrap(), Instant::from_millis);
        known.learn(at(0), to, 1400);
        known.learn(at(1_000), to, 1300);
        known.learn(at(2_000), to, 1350);
        assert_eq!(known.get(at(2_000), to), Some(1300));
        assert_eq!(known.get(at(601_999), to), Some(1300));
        assert_eq!(known.get(at(602_000), to), None);
        known.learn(at(602_000), to, 1350);
        assert_eq!(known.get(at(602_000), to), Some(1350));
        assert_eq!((known.known.len(), known.by_end.len()), (1, 1));
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut known = PathMtus::new(Secret::new([1; 16]).keyed());
        let to = |n: usize| IpAddr::from([10, 1, (n >> 8) as u8, n as u8]);
        for n in 0..MOST + 10 {
            known.learn(Instant::from_millis(n as u64), to(n), 1400);
        }
        assert_eq!((known.known.len(), known.by_end.len()), (MOST, MOST));
        let now = Instant::from_millis(10_000);
        assert_eq!((known.get(now, to(9)), known.get(now, to(10))), (None, Some(1400)));
    }
}
