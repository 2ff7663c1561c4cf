//! The receive half alone.

use airtcp_types::ByteCount;

use super::stream::HOLE_COST;
use super::*;
use crate::wire::{Counts, Train};

const RTT: Duration = Duration::from_millis(100);
const REPEAT: Duration = Duration::from_millis(150);

struct Bench {
    half: ReceiveHalf,
    pool: Pool,
}

fn bench(window: u64) -> Bench {
    let half = ReceiveHalf::new(&Config::default(), 100, window);
    Bench { half, pool: Pool::new(ByteCount::from_mib(1)) }
}

fn data(millis: u64, number: u32, transmission: u32) -> Data<'static> {
    Data {
        number,
        transmission,
        sent: millis as u32 * 1_000,
        fin: false,
        pause: false,
        rate_bit: false,
        recovery_bit: false,
        train: Train::No,
        nonce: false,
        payload: b"x",
    }
}

impl Bench {
    fn data(&mut self, millis: u64, number: u32, transmission: u32) -> Taken {
        self.packet(millis, number, transmission, b"x", false)
    }

    fn packet(
        &mut self,
        millis: u64,
        number: u32,
        transmission: u32,
        payload: &[u8],
        fin: bool,
    ) -> Taken {
        self.take(millis, &Data { fin, payload, ..data(millis, number, transmission) })
    }

    fn take(&mut self, millis: u64, data: &Data<'_>) -> Taken {
        self.half.on_data(Instant::from_millis(millis), data, RTT, &mut self.pool)
    }

    /// Returns the next report, and the packets that it reports lost.
    fn report(&mut self, millis: u64) -> Option<(ReportKind, u32, Vec<u32>)> {
        let now = Instant::from_millis(millis);
        let report = self.half.poll_report(now, 1_400, REPEAT, &self.pool)?;
        let numbers = report
            .lost
            .ranges()
            .flat_map(|range| range.first..range.first + u32::from(range.count));
        Some((report.kind, report.next, numbers.collect()))
    }

    fn read(&mut self, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        let count = self.half.read(&mut out, &mut self.pool);
        out.truncate(count);
        out
    }
}

#[test]
fn a_cack_is_for_thirty_two_packets_in_order() {
    let mut bench = bench(100);
    for number in 0..31 {
        bench.data(1, number, number + 1);
        assert_eq!(bench.report(1), None);
    }
    bench.data(1, 31, 32);
    assert_eq!(bench.report(1), Some((ReportKind::Cack, 32, vec![])));
    assert_eq!(bench.report(1), None);
}

#[test]
fn fewer_packets_are_acknowledged_after_a_delay() {
    let mut bench = bench(100);
    bench.data(1, 0, 1);
    let at = bench.half.poll_timeout().unwrap();
    assert_eq!(at, Instant::from_millis(11));
    assert_eq!(bench.report(10), None);
    assert_eq!(bench.report(11), Some((ReportKind::Ack, 1, vec![])));
    assert_eq!(bench.half.poll_timeout(), None);
}

#[test]
fn one_loss_is_a_nack_and_several_are_a_sack() {
    let mut bench = bench(100);
    for (number, transmission) in [(0, 1), (2, 3), (3, 4)] {
        bench.data(1, number, transmission);
        assert_eq!(bench.report(1), None, "it may only be late");
    }
    bench.data(1, 4, 5);
    assert_eq!(bench.report(1), Some((ReportKind::Nack, 1, vec![1])));
    for (number, transmission) in [(7, 8), (9, 10), (10, 11), (11, 12)] {
        bench.data(2, number, transmission);
    }
    assert_eq!(bench.report(2), Some((ReportKind::Sack, 1, vec![5, 6, 8])));
    assert_eq!(bench.half.totals()[2], 4);
    // Missing packets are reported again at increasing intervals.
    assert_eq!(bench.report(151), Some((ReportKind::Nack, 1, vec![1])));
    assert_eq!(bench.half.totals()[2], 4, "counted once");
    assert_eq!(bench.data(160, 1, 13), Taken::New);
    assert_eq!(bench.report(200), Some((ReportKind::Sack, 5, vec![5, 6, 8])));
}

#[test]
fn a_packet_is_asked_for_again_after_a_round_trip_and_two_gaps() {
    let mut bench = bench(100);
    let before = bench.half.repeat(RTT);
    assert!(before > RTT);
    for number in 0..10 {
        bench.data(5 * u64::from(number), number, number + 1);
    }
    assert_eq!(bench.half.repeat(RTT), before + 2 * Duration::from_millis(5));
    assert_eq!(bench.half.totals(), [10, 0, 0]);
}

#[test]
fn a_packet_that_was_only_late_makes_the_receiver_patient() {
    let mut bench = bench(100);
    for (number, transmission) in [(0, 1), (2, 3), (3, 4), (4, 5)] {
        bench.data(1, number, transmission);
    }
    assert_eq!(bench.report(1), Some((ReportKind::Nack, 1, vec![1])));
    bench.data(2, 1, 2);
    for number in 6..20 {
        bench.data(3, number, number + 1);
        assert_eq!(bench.report(3), None);
    }
    assert_eq!(
        bench.report(28),
        Some((ReportKind::Nack, 5, vec![5])),
        "after a quarter of a round trip"
    );
}

#[test]
fn a_ping_shows_that_the_last_packets_are_missing() {
    let mut bench = bench(100);
    bench.data(1, 0, 1);
    let now = Instant::from_millis(300);
    assert!(bench.half.on_ping(now, 3, 0, RTT, &bench.pool));
    assert_eq!(bench.report(300), Some((ReportKind::Ack, 1, vec![])));
    assert_eq!(bench.report(325), Some((ReportKind::Sack, 1, vec![1, 2])));
    assert!(!bench.half.on_ping(now, 101, 0, RTT, &bench.pool), "beyond the window");
}

#[test]
fn unread_data_is_reported_in_bytes() {
    let mut bench = bench(100);
    bench.packet(1, 0, 1, b"abc", false);
    // Nine packets are missing, which take memory, but are not unread bytes.
    bench.packet(1, 10, 11, b"de", false);
    assert_eq!(bench.half.unread(), 5);
    assert!(bench.half.held() > 9 * HOLE_COST);
    assert_eq!(bench.read(2), b"ab");
    assert_eq!(bench.half.unread(), 3);
}

#[test]
fn a_reader_that_stops_overflows_nothing() {
    let mut bench = bench(4);
    for number in 0..4 {
        assert_eq!(bench.packet(1, number, number + 1, &[number as u8; 100], false), Taken::New);
    }
    assert_eq!(bench.data(1, 4, 5), Taken::OverWindow);
    assert_eq!(bench.read(150), [[0; 100].as_slice(), &[1; 50]].concat());
    let report =
        bench.half.poll_report(Instant::from_millis(1), 1_400, REPEAT, &bench.pool).unwrap();
    assert_eq!((report.next, report.limit), (4, 5), "a packet is free once it is read to its end");
    assert_eq!(bench.read(500).len(), 250);
    assert_eq!(bench.half.held(), 0);
}

#[test]
fn memory_that_is_short_refuses_what_is_new_and_closes_the_window() {
    let mut bench = bench(10_000);
    bench.pool = Pool::new(ByteCount(80_000));
    let mut taken = 0u64;
    for number in 0..2_000 {
        match bench.packet(1, number, number + 1, &[0; 100], false) {
            Taken::New => taken += 1,
            Taken::NoMemory => break,
            other => panic!("{other:?}"),
        }
        // The endpoint recounts after each packet, too.
        let before = bench.pool.held();
        bench.pool.recount(before, bench.half.held());
    }
    assert!((600..700).contains(&taken), "{taken} packets of 100 bytes and a slot");
    assert_eq!(bench.half.room(&bench.pool), taken);
}

#[test]
fn the_end_is_acknowledged_at_once_and_read_last() {
    let mut bench = bench(10);
    bench.packet(1, 1, 2, b"end", true);
    assert!(!bench.half.is_complete());
    bench.packet(1, 0, 1, b"the ", false);
    assert!(bench.half.is_complete() && bench.half.is_readable());
    assert_eq!(bench.report(1), Some((ReportKind::Ack, 2, vec![])));
    assert_eq!(bench.read(100), b"the end");
    assert!(bench.half.is_at_end());
    assert_eq!(bench.packet(1, 2, 3, b"more", false), Taken::OverWindow);
}

#[test]
fn a_duplicate_is_acknowledged_again() {
    let mut bench = bench(10);
    bench.data(1, 0, 1);
    assert_eq!(bench.report(20), Some((ReportKind::Ack, 1, vec![])));
    assert_eq!(bench.data(30, 0, 2), Taken::Duplicate);
    assert_eq!(bench.report(30), Some((ReportKind::Ack, 1, vec![])));
}

#[test]
fn packets_sent_before_a_reduction_are_not_counted_after_it() {
    let mut bench = bench(1_000);
    let mut reported = Vec::new();
    for number in (0..60u32).filter(|number| number % 10 != 9) {
        let millis = u64::from(number) * 10;
        // The reduction is before packet 30, which is lost, as is 29.
        let recovery_bit = number >= 30;
        if number != 30 {
            bench.take(millis, &Data { recovery_bit, ..data(millis, number, number) });
        }
        let now = Instant::from_millis(millis);
        while let Some(report) = bench.half.poll_report(now, 1_400, REPEAT, &bench.pool) {
            reported.extend(report.feedback.map(|feedback| feedback.counts));
        }
    }
    let counts = |first_counted, received, wireless| Counts {
        first_counted,
        congestive: 0,
        wireless,
        received,
    };
    // An epoch is ten gaps, and a loss is reported after three later packets.
    let after = [counts(31, 4, 0), counts(31, 14, 1), counts(31, 24, 2)];
    assert_eq!(reported, [[counts(0, 11, 0), counts(0, 21, 2)].as_slice(), &after].concat());
    assert_eq!(bench.half.totals()[2], 6);
}

#[test]
fn a_connection_without_a_reduction_counts_for_longer_than_numbers_last() {
    let mut bench = bench(1_000);
    // Transmissions have 32 bits on the wire; more than half of those have passed since the first.
    for (number, transmission) in [(0, 1), (1, 1 << 30), (2, 1 << 31), (3, 3 << 30)] {
        bench.data(1, number, transmission);
    }
    for number in 5..8 {
        bench.data(2, number, (3 << 30) + number);
    }
    bench.report(2);
    assert_eq!(
        bench.half.evidence.counts(),
        Counts { first_counted: 0, congestive: 0, wireless: 1, received: 7 }
    );
}

#[test]
fn what_a_retransmission_after_a_reduction_does_not_show_may_have_left_before_it() {
    let mut bench = bench(1_000);
    for number in (0..17).filter(|number| *number != 5) {
        bench.data(10, number, number + 1);
    }
    // 17, 18 and 19 are lost, then the rate is reduced. Retransmissions are sent first.
    for (number, transmission) in [(5, 21), (20, 22), (21, 23), (22, 24), (23, 25)] {
        bench.take(20, &Data { recovery_bit: true, ..data(20, number, transmission) });
    }
    assert_eq!(bench.report(20), Some((ReportKind::Sack, 17, vec![17, 18, 19])));
    assert_eq!(
        bench.half.evidence.counts(),
        Counts { first_counted: 21, congestive: 0, wireless: 0, received: 5 }
    );
    // A late packet from before the toggle does not toggle back, and is not counted.
    bench.data(21, 17, 18);
    assert_eq!(bench.half.evidence.counts().received, 5);
    for (number, transmission) in [(25, 27), (26, 28), (27, 29)] {
        bench.take(22, &Data { recovery_bit: true, ..data(22, number, transmission) });
    }
    bench.report(200);
    assert_eq!(
        bench.half.evidence.counts(),
        Counts { first_counted: 21, congestive: 0, wireless: 1, received: 8 }
    );
}
