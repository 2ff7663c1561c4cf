//! SYN cookies (RFC 4987 section 3.6): if the backlog is full, the state of the handshake is
//! encoded in the number of the SYN-ACK, and the host stores nothing until an ACK returns it.
//!
//! A cookie is a keyed hash of the 4-tuple, the peer's initial number and the time, plus the class
//! of the peer's MSS. Window scale and SACK are in the low bits of the timestamp
//! (`tcp/handshake/cookie.rs`). Apart from these only AccECN can be negotiated.

use std::time::Duration;

use airtcp_types::{FlowId, Instant, SeqNumber};

use super::secret::Secret;

/// A cookie is valid in the period in which it was created and in the next one (Linux's
/// `TCP_SYNCOOKIE_PERIOD` and `MAX_SYNCOOKIE_AGE`).
const PERIOD: Duration = Duration::from_secs(64);
/// The maximum validity of a cookie.
pub(super) const LIFETIME: Duration = Duration::from_secs(128);

/// The classes of the peer's MSS that a cookie can encode. They use three bits of the number: a
/// guessed cookie is valid with a probability of 2^-28.
const MSS: [u16; 8] = [48, 256, 536, 1220, 1360, 1440, 1460, 8940];

fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos() as u64
}

/// Creates the number of a SYN-ACK for a peer with the initial number `irs` and the MSS `mss`.
pub(super) fn make(
    secret: &Secret,
    now: Instant,
    flow: &FlowId,
    irs: SeqNumber,
    mss: u16,
) -> SeqNumber {
    let class = MSS.partition_point(|least| *least <= mss).saturating_sub(1);
    secret.cookie(flow, irs, period(now)) + class as u32
}

/// Returns the largest encoded MSS that the peer accepts, if `number` is a valid cookie for it.
pub(super) fn read(
    secret: &Secret,
    now: Instant,
    flow: &FlowId,
    irs: SeqNumber,
    number: SeqNumber,
) -> Option<u16> {
    let current = period(now);
    let periods = std::iter::once(current).chain(current.checked_sub(1));
    periods.into_iter().find_map(|period| {
        let class = number - secret.cookie(flow, irs, period).0;
        MSS.get(class.0 as usize).copied()
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const IRS: SeqNumber = SeqNumber(u32::MAX);

    fn flow(port: u16) -> FlowId {
        FlowId {
            local: SocketAddr::from(([10, 0, 0, 1], 80)),
            remote: SocketAddr::from(([10, 0, 0, 2], port)),
        }
    }

    #[test]
    fn a_cookie_encodes_the_mss_class_below_the_mss() {
        let secret = Secret::new([1; 16]);
        for (mss, encoded) in
            [(0, 48), (48, 48), (535, 256), (536, 536), (1448, 1440), (1460, 1460)]
        {
            let number = make(&secret, Instant::ZERO, &flow(1), IRS, mss);
            assert_eq!(read(&secret, Instant::ZERO, &flow(1), IRS, number), Some(encoded));
        }
    }

    #[test]
    fn a_cookie_is_good_for_one_flow_one_number_one_key_and_two_periods() {
        let secret = Secret::new([1; 16]);
        let at = Instant::from_millis;
        let number = make(&secret, at(63_000), &flow(1), IRS, 1460);
        let good = |secret: &Secret, now, port, irs, number| {
            read(secret, now, &flow(port), irs, number).is_some()
        };
        assert!(good(&secret, at(63_000), 1, IRS, number));
        assert!(good(&secret, at(127_999), 1, IRS, number));
        assert!(!good(&secret, at(128_000), 1, IRS, number), "it is too old");
        assert!(!good(&secret, at(63_000), 2, IRS, number), "another flow's");
        assert!(!good(&secret, at(63_000), 1, IRS + 1, number), "another SYN's");
        assert!(!good(&Secret::new([2; 16]), at(63_000), 1, IRS, number), "another host's");
        assert!(!good(&secret, at(63_000), 1, IRS, number + 8));
    }
}
