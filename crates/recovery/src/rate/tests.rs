use airtcp_types::{SendRule, SeqRange};

use super::*;
use crate::board::Board;
use crate::testkit::{FIRST, RTT, SMSS, ms, segments, seq};

/// A board and its sampler, driven by hand.
struct Flow {
    board: Board,
    rate: RateSampler,
    sent: u64,
}

impl Flow {
    fn new() -> Self {
        Self { board: Board::new(FIRST), rate: RateSampler::new(ms(0)), sent: 0 }
    }

    fn send(&mut self, at: u64, count: u64) {
        for _ in 0..count {
            let snapshot = self.rate.on_send(ms(at), self.board.is_empty(), ByteCount::ZERO);
            let range = segments(self.sent, self.sent + 1);
            self.board.send_new(ms(at), range, SendRule::NewData, snapshot);
            self.sent += 1;
        }
    }

    fn ack(&mut self, at: u64, upto: u64, sack: &[SeqRange]) -> (Option<RateSample>, bool) {
        let mut newly = Vec::new();
        self.board.acknowledge(seq(upto), sack, &mut newly);
        self.rate.on_ack(ms(at), &newly, Some(RTT))
    }
}

#[test]
fn a_round_trip_of_data_is_the_rate() {
    let mut flow = Flow::new();
    flow.send(0, 10);
    let (sample, round) = flow.ack(100, 10, &[]);
    let sample = sample.unwrap();
    assert!(round && !sample.app_limited);
    assert_eq!((sample.delivered, sample.interval), (ByteCount(10 * SMSS), Some(RTT)));
    assert_eq!(sample.rate().unwrap().bits_per_sec(), 800_000);
}

#[test]
fn compressed_acks_are_held_against_the_time_of_sending() {
    let mut flow = Flow::new();
    // One segment every 10 ms; all ACKs arrive at once, much later.
    for step in 0..20 {
        flow.send(step * 10, 1);
    }
    let (sample, _) = flow.ack(300, 1, &[]);
    assert_eq!(sample.unwrap().interval.unwrap().as_millis(), 300);
    let (sample, _) = flow.ack(300, 20, &[]);
    // 190 ms of sending, 300 ms until the ACKs: the longer one counts.
    assert_eq!(sample.unwrap().interval.unwrap().as_millis(), 300);
    flow.send(300, 10);
    // An interval shorter than the smallest RTT is not valid.
    assert_eq!(flow.ack(350, 30, &[]).0.unwrap().interval, None);
}

#[test]
fn idle_time_is_not_part_of_a_sample() {
    let mut flow = Flow::new();
    flow.send(0, 10);
    flow.ack(100, 10, &[]);
    flow.send(60_000, 10);
    let (sample, round) = flow.ack(60_100, 20, &[]);
    assert_eq!((sample.unwrap().interval, round), (Some(RTT), true));
    assert_eq!(sample.unwrap().rate().unwrap().bits_per_sec(), 800_000);
}

#[test]
fn a_time_out_is_part_of_a_sample() {
    let mut flow = Flow::new();
    flow.send(0, 2);
    flow.ack(100, 1, &[]);
    // The rest is lost: nothing is in flight, but the sender is not idle.
    flow.board.mark_all_lost(|_| false);
    let snapshot = flow.rate.on_send(ms(1_100), flow.board.is_empty(), ByteCount::ZERO);
    flow.board.send_again(ms(1_100), seq(1), ByteCount(SMSS), SendRule::Timeout, snapshot);
    let (sample, _) = flow.ack(1_200, 2, &[]);
    assert_eq!(sample.unwrap().interval.unwrap().as_millis(), 1_100);
}

#[test]
fn samples_are_application_limited_until_that_data_is_acknowledged() {
    let mut flow = Flow::new();
    flow.send(0, 4);
    flow.rate.on_app_limited(flow.board.in_flight());
    assert!(flow.rate.is_app_limited());
    flow.send(10, 4);
    assert!(!flow.ack(100, 4, &[]).0.unwrap().app_limited, "sent before");
    let (sample, _) = flow.ack(110, 8, &[]);
    assert!(sample.unwrap().app_limited && !flow.rate.is_app_limited());
}

#[test]
fn rounds_follow_what_was_sent_since_the_last_one() {
    let mut flow = Flow::new();
    flow.send(0, 4);
    assert!(flow.ack(100, 1, &[]).1);
    flow.send(100, 1);
    assert!(!flow.ack(101, 2, &[]).1);
    assert!(!flow.ack(102, 4, &[]).1);
    assert!(flow.ack(200, 5, &[]).1, "sent after the last round began");
}

#[test]
fn a_sack_block_delivers_once() {
    let mut flow = Flow::new();
    flow.send(0, 4);
    flow.ack(100, 0, &[segments(1, 3)]);
    assert_eq!(flow.rate.delivered(), ByteCount(2 * SMSS));
    flow.ack(101, 0, &[segments(1, 4)]);
    flow.ack(102, 4, &[]);
    assert_eq!(flow.rate.delivered(), ByteCount(4 * SMSS));
}
