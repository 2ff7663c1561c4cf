//! Loss, corruption, duplication and outages.

use airtcp_wire::{checksum, is_accepted};

use super::*;

const MANY: u64 = 200_000;

fn hits(lost: &[bool]) -> u64 {
    lost.iter().filter(|lost| **lost).count() as u64
}

#[test]
fn random_loss_has_its_share_and_its_runs() {
    assert_share(hits(&lost("loss 2% seed 1", MANY)), MANY, 0.02);
    let lost = lost("loss random 20% seed 2", MANY);
    assert_share(hits(&lost), MANY, 0.2);
    assert_distributed(&run_lengths(&lost, 6), &geometric(0.8, 6));
}

#[test]
fn gilbert_elliott_has_its_share_and_its_runs() {
    // All packets are lost in the bad state and none in the good one, so the runs are those of the
    // bad state: geometric with r.
    let all = lost("loss gemodel 2% 20% seed 3", MANY);
    assert_distributed(&run_lengths(&all, 12), &geometric(0.2, 12));
    let good: Vec<bool> = all.iter().map(|lost| !lost).collect();
    assert_distributed(&run_lengths(&good, 12), &geometric(0.02, 12));

    let some = lost("loss gemodel 1% 10% 75% 0.1% seed 7", MANY);
    let bad: f64 = 0.01 / 0.11;
    let mean = (bad * 0.75 + (1.0 - bad) * 0.001) * MANY as f64;
    // The state has memory: its correlation c = 1 - p - r increases the variance by (1 + c) / (1 -
    // c).
    let deviation = (mean * (1.0 + 0.89) / (1.0 - 0.89)).sqrt();
    assert!((hits(&some) as f64 - mean).abs() < 4.5 * deviation, "{} not {mean}", hits(&some));
}

#[test]
fn bursts_have_their_length_and_their_share() {
    let lost = lost("burst 2% 5 seed 4", MANY);
    let runs = run_lengths(&lost, 41);
    let odd = runs.iter().enumerate().filter(|(index, _)| (index + 1) % 5 != 0);
    assert_eq!(odd.map(|(_, count)| count).sum::<u64>(), runs[40], "bursts that touch, no others");
    // A burst or a packet between bursts is one trial: p L / (1 + p (L - 1)).
    let bursts = hits(&lost) / 5;
    assert_share(bursts, MANY - 4 * bursts, 0.02);
}

#[test]
fn packets_are_dropped_by_number() {
    let numbers = |lost: Vec<bool>| -> Vec<usize> {
        lost.iter().enumerate().filter(|(_, lost)| **lost).map(|(index, _)| index + 1).collect()
    };
    assert_eq!(numbers(lost("drop 3,7,10-12", 20)), [3, 7, 10, 11, 12]);
    assert_eq!(numbers(lost("drop every 6", 20)), [6, 12, 18]);
}

#[test]
fn errors_keep_to_payload_and_to_a_direction() {
    let mut link = link("drop 2 only payload only back");
    for at in 0..6u64 {
        for port in [0, 1] {
            let payload = if at % 2 == 0 { 0 } else { 100 };
            link.handle_packet(Instant::from_millis(at), PortId(port), ipv4_tcp(payload, 0));
        }
        let mut sizes = Vec::new();
        while let Some((port, packet)) = link.poll_transmit(Instant::from_millis(at)) {
            sizes.push((port, packet.len()));
        }
        // The second packet with payload on the way back is the fourth of all.
        assert_eq!(sizes.len(), if at == 3 { 1 } else { 2 }, "packet {at}");
    }
    assert_eq!(forth(&link).channel_lost, 0);
    assert_eq!(link.counters(Way::Back).channel_lost, 1);
}

#[test]
fn a_link_is_down_when_the_schedule_says_so() {
    let arrives = |spec: &str, ms: u64| {
        let mut link = link(spec);
        let out = send(&mut link, [(Instant::from_millis(ms), numbered(0, 100))]);
        (out.len(), forth(&link).disconnected, forth(&link).channel_lost)
    };
    for spec in ["down 100ms 50ms", "down 100ms 50ms every 200ms"] {
        assert_eq!(arrives(spec, 99), (1, 0, 0));
        assert_eq!(arrives(spec, 100), (0, 1, 0));
        assert_eq!(arrives(spec, 149), (0, 1, 0));
        assert_eq!(arrives(spec, 150), (1, 0, 0));
    }
    assert_eq!(arrives("down 100ms 50ms", 320), (1, 0, 0));
    assert_eq!(arrives("down 100ms 50ms every 200ms", 320), (0, 1, 0));
    let duty = |ms| arrives("duty 90ms 10ms", ms).2;
    assert_eq!([0, 89, 90, 99, 100, 195].map(duty), [0, 0, 1, 1, 0, 1]);
}

#[test]
fn duplicates_are_counted_and_no_packet_is_lost() {
    let mut link = link("duplicate 5% seed 8");
    let out = send(&mut link, stream(MANY));
    let twice = forth(&link).duplicated;
    assert_share(twice, MANY, 0.05);
    assert_eq!(out.len() as u64, MANY + twice);
    assert_eq!(send(&mut self::link("duplicate 100% only back"), stream(10)).len(), 20);
    assert_eq!(forth(&link).reordered, 0, "a copy that follows at once is not reordered");
}

/// Positions of the bits in which two packets differ.
fn flipped(one: &Packet, other: &Packet) -> Vec<usize> {
    let bits = |byte: usize| {
        let differ = one.data[byte] ^ other.data[byte];
        (0..8).filter(move |bit| differ & (0x80 >> bit) != 0).map(move |bit| byte * 8 + bit)
    };
    (0..one.len()).flat_map(bits).collect()
}

fn corrupted(spec: &str, packet: &Packet, count: u64) -> (Link, Vec<Packet>) {
    let mut link = link(spec);
    let packets = (0..count).map(|n| (Instant::from_nanos(n * 1_000), packet.clone()));
    let out = send(&mut link, packets).into_iter().map(|(_, packet)| packet).collect();
    (link, out)
}

#[test]
fn bit_errors_have_their_rate_and_fall_anywhere() {
    let packet = ipv4_tcp(960, 0);
    for (spec, rate, count) in [
        ("biterror 1e-4 seed 5", 1e-4, 20_000),
        ("biterror 1e-6 seed 5", 1e-6, 50_000),
        ("biterror 0.2 seed 5", 0.2, 500),
    ] {
        let (link, out) = corrupted(spec, &packet, count);
        let all: Vec<Vec<usize>> = out.iter().map(|out| flipped(&packet, out)).collect();
        let errors: usize = all.iter().map(Vec::len).sum();
        assert_share(errors as u64, count * 8_000, rate);
        let hit = all.iter().filter(|bits| !bits.is_empty()).count() as u64;
        assert_eq!(hit, forth(&link).corrupted);
        let mut places = [0; 8];
        all.iter().flatten().for_each(|bit| places[bit / 1_000] += 1);
        assert_distributed(&places, &[0.125; 8]);
    }
}

#[test]
fn corruption_has_its_share_and_hits_the_header_in_its_share() {
    let packet = ipv4_tcp(200, 0);
    let (link, out) = corrupted("corrupt 30% header 95% seed 6", &packet, MANY / 4);
    let bits: Vec<_> = out.iter().map(|out| flipped(&packet, out)).collect();
    assert!(bits.iter().all(|bits| bits.len() <= 1));
    let hit: Vec<usize> = bits.into_iter().flatten().collect();
    assert_share(hit.len() as u64, MANY / 4, 0.3);
    let header = hit.iter().filter(|bit| **bit < 320).count() as u64;
    assert_share(header, hit.len() as u64, 0.95);
    let counters = forth(&link);
    assert_eq!((counters.corrupted, counters.corrupted_header), (hit.len() as u64, header));
    assert_eq!(counters.corrupted_unnoticed, 0, "one bit is always noticed");

    let (link, _) = corrupted("corrupt 100% header 0%", &packet, 1_000);
    assert_eq!((forth(&link).corrupted, forth(&link).corrupted_header), (1_000, 0));
    let (link, _) = corrupted("corrupt 100% header 0%", &ipv4_tcp(0, 0), 100);
    assert_eq!(forth(&link).corrupted, 0, "there is no payload to hit");
}

#[test]
fn corruption_comes_in_runs() {
    let packet = ipv4_tcp(20, 0);
    let (_, out) = corrupted("corrupt 1% run 4 seed 2", &packet, MANY / 4);
    let hit: Vec<bool> = out.iter().map(|out| *out != packet).collect();
    let runs = run_lengths(&hit, 20);
    assert!(runs[3] > 100);
    assert_eq!(runs[..3], [0; 3]);
}

#[test]
fn corruption_that_no_checksum_notices_is_counted() {
    // A burst error over several words passes the 16-bit checksum about once in 2^16; only the
    // payload is hit.
    let packet = ipv4_tcp(24, 0);
    let (link, out) = corrupted("corrupt 100% header 0% bits 160 seed 1", &packet, 300_000);
    let src = IpAddr::from([10, 0, 0, 1]);
    let dst = IpAddr::from([10, 0, 0, 2]);
    let passes = |out: &&Packet| checksum::verify_transport(src, dst, 6, &out.data[20..]);
    let unnoticed = out.iter().filter(|out| **out != packet).filter(passes).count() as u64;
    assert_eq!(forth(&link).corrupted_unnoticed, unnoticed);
    // A Poisson count of mean 4.6.
    assert!((1..=16).contains(&unnoticed), "{unnoticed}");
}

/// The errors of two links in a row may cancel out in a checksum that detects the errors of each.
#[test]
fn an_error_that_cancels_another_in_the_checksum_is_counted() {
    let mut missed = 0;
    for seed in 0..300 {
        let mut packet = ipv4_tcp(4, 0);
        *packet.data.last_mut().unwrap() ^= 1;
        assert!(!is_accepted(&packet.data));
        let spec = format!("corrupt 100% header 0% seed {seed}").parse().unwrap();
        let mut link = Link::new(&spec, &spec).unwrap();
        link.handle_packet(Instant::ZERO, PortId(0), packet);
        let (_, out) = link.poll_transmit(Instant::ZERO).unwrap();
        let accepted = u64::from(is_accepted(&out.data));
        assert_eq!(link.counters(Way::Forth).corrupted_unnoticed, accepted);
        missed += accepted;
    }
    assert!(missed > 0);
}
