//! The link compared with theory. Seeds are fixed, so the tests are deterministic; the tolerances
//! are chosen so that another seed would rarely fail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use airtcp_types::{Instant, Node, Packet, PortId};
use airtcp_wire::checksum::{self, Sum};

use crate::{Counters, Link, LinkSpec, Way};

/// A TCP segment over IPv4 with `payload` bytes and valid checksums.
pub(crate) fn ipv4_tcp(payload: usize, ecn: u8) -> Packet {
    let total = 40 + payload;
    let mut data = vec![0; total];
    data[0] = 0x45;
    data[1] = ecn;
    data[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    data[8] = 64;
    data[9] = 6;
    let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    data[12..16].copy_from_slice(&src.octets());
    data[16..20].copy_from_slice(&dst.octets());
    let sum = checksum::checksum(&data[..20]);
    data[10..12].copy_from_slice(&sum.to_be_bytes());
    data[32] = 5 << 4;
    for (index, byte) in data[40..].iter_mut().enumerate() {
        *byte = (index * 37 + 11) as u8;
    }
    let mut sum = Sum::new();
    sum.add_pseudo_header(IpAddr::V4(src), IpAddr::V4(dst), 6, total - 20);
    sum.add_bytes(&data[20..]);
    data[36..38].copy_from_slice(&sum.finish().to_be_bytes());
    Packet::new(data)
}

/// A UDP datagram over IPv6.
pub(crate) fn ipv6_udp(payload: usize) -> Packet {
    let length = 8 + payload;
    let mut data = vec![0; 40 + length];
    data[0] = 0x60;
    data[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    data[6] = 17;
    data[7] = 64;
    let (src, dst) = (Ipv6Addr::from(1), Ipv6Addr::from(2));
    data[8..24].copy_from_slice(&src.octets());
    data[24..40].copy_from_slice(&dst.octets());
    data[44..46].copy_from_slice(&(length as u16).to_be_bytes());
    let mut sum = Sum::new();
    sum.add_pseudo_header(IpAddr::V6(src), IpAddr::V6(dst), 17, length);
    sum.add_bytes(&data[40..]);
    data[46..48].copy_from_slice(&sum.finish().to_be_bytes());
    Packet::new(data)
}

mod aggregate;
mod chance;
mod changes;
mod errors;
mod events;
mod police;
mod properties;
mod queues;
mod timing;
mod words;

/// The 0.1 % points of chi-square, by degrees of freedom.
const CHI_SQUARE: [f64; 13] =
    [0.0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32, 26.12, 27.88, 29.59, 31.26, 32.91];

fn link(spec: &str) -> Link {
    let spec: LinkSpec = spec.parse().unwrap();
    Link::new(&spec, &spec).unwrap()
}

/// A packet that is not IP and contains its number.
fn numbered(number: u64, size: usize) -> Packet {
    let mut data = vec![0; size.max(8)];
    data[..8].copy_from_slice(&number.to_be_bytes());
    Packet::new(data)
}

fn number_of(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.data[..8].try_into().unwrap())
}

/// Takes the packets that leave up to `until`, each at its own time.
fn drain(link: &mut Link, until: Instant, out: &mut Vec<(Instant, Packet)>) {
    while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
        link.handle_timeout(at);
        while let Some((_, packet)) = link.poll_transmit(at) {
            out.push((at, packet));
        }
    }
}

/// Sends packets forth, each at its time; returns the arrivals with their times.
fn send(
    link: &mut Link,
    packets: impl IntoIterator<Item = (Instant, Packet)>,
) -> Vec<(Instant, Packet)> {
    let mut out = Vec::new();
    for (at, packet) in packets {
        drain(link, at, &mut out);
        link.handle_packet(at, PortId(0), packet);
    }
    drain(link, Instant::MAX, &mut out);
    assert_eq!(link.held(Way::Forth), 0);
    out
}

/// `count` numbered packets of 100 bytes, one per microsecond.
fn stream(count: u64) -> impl Iterator<Item = (Instant, Packet)> {
    (0..count).map(|number| (Instant::from_nanos(number * 1_000), numbered(number, 100)))
}

/// For each packet of a [`stream`], whether the link loses it.
fn lost(spec: &str, count: u64) -> Vec<bool> {
    let mut lost = vec![true; count as usize];
    for (_, packet) in send(&mut link(spec), stream(count)) {
        lost[number_of(&packet) as usize] = false;
    }
    lost
}

/// A histogram of run lengths; the last entry counts all longer runs too. A run at the end of the
/// list is left out.
fn run_lengths(hits: &[bool], longest: usize) -> Vec<u64> {
    let mut histogram = vec![0; longest];
    let mut run = 0;
    for hit in hits {
        if *hit {
            run += 1;
        } else if run > 0 {
            histogram[(run - 1usize).min(longest - 1)] += 1;
            run = 0;
        }
    }
    histogram
}

/// Chi-square test at 0.1 %, against probabilities that add up to 1.
#[track_caller]
fn assert_distributed(observed: &[u64], expected: &[f64]) {
    let total = observed.iter().sum::<u64>() as f64;
    assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let pairs = observed.iter().zip(expected);
    let chi: f64 = pairs.map(|(o, e)| (*o as f64 - total * e).powi(2) / (total * e)).sum();
    assert!(expected.iter().all(|share| share * total >= 5.0), "too few for chi-square");
    assert!(chi < CHI_SQUARE[expected.len() - 1], "chi-square {chi}: {observed:?}");
}

/// Checks that a binomial count is within 4.5 standard deviations of its mean: another seed fails
/// once in 150,000.
#[track_caller]
fn assert_share(hits: u64, of: u64, share: f64) {
    let mean = of as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    assert!((hits as f64 - mean).abs() <= 4.5 * deviation, "{hits} of {of}, not {share}");
}

fn forth(link: &Link) -> Counters {
    *link.counters(Way::Forth)
}

fn geometric(stop: f64, longest: usize) -> Vec<f64> {
    let go = 1.0 - stop;
    let mut shares: Vec<f64> = (0..longest - 1).map(|k| stop * go.powi(k as i32)).collect();
    shares.push(go.powi(longest as i32 - 1));
    shares
}
