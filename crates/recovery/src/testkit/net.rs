//! A whole sender, a pipe and an ideal receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use airtcp_types::{ByteCount, ExtSeq, Instant, RangeSet, Rate, SeqRange};

use super::{FIRST, RTT, SMSS, index, seq};
use crate::{Ack, Decision, Limit, Sender, Supply, Transmit};

#[derive(Debug)]
enum Event {
    Data { range: SeqRange, stamp: Instant },
    Ack { ack: ExtSeq, sack: Vec<SeqRange>, dsack: Option<SeqRange>, echo: Instant },
}

/// The bottleneck of a path, with a drop-tail queue.
#[derive(Clone, Copy, Debug)]
pub struct Bottleneck {
    /// The rate at which bytes leave.
    pub rate: Rate,
    /// The size of the queue in bytes.
    pub limit: ByteCount,
    /// When the queue will be empty.
    free_at: Instant,
}

impl Bottleneck {
    /// A bottleneck with an empty queue.
    pub const fn new(rate: Rate, limit: ByteCount) -> Self {
        Self { rate, limit, free_at: Instant::ZERO }
    }

    /// Returns when `bytes` that arrive now have left the bottleneck; `None` if the queue is full.
    fn pass(&mut self, now: Instant, bytes: ByteCount) -> Option<Instant> {
        let queued = self.rate.bytes_in(self.free_at.since(now));
        if queued + bytes > self.limit {
            return None;
        }
        self.free_at = self.free_at.max(now) + self.rate.time_for(bytes);
        Some(self.free_at)
    }
}

/// A network of a sender, a pipe of fixed delay that loses and delays selected segments, and a
/// receiver that acknowledges every segment at once. After each step it checks the properties of
/// all combinations.
#[derive(Debug)]
pub struct Net {
    /// The current time.
    pub now: Instant,
    /// The sender under test.
    pub sender: Sender,
    /// The data to send, and the edge of the peer's window.
    pub supply: Supply,
    /// The size of the peer's window.
    pub rwnd: ByteCount,
    /// The transmissions to lose, as segment number and number of earlier transmissions of the
    /// segment.
    pub losses: BTreeSet<(u64, u32)>,
    /// The additional delay of the first transmission of a segment.
    pub delays: BTreeMap<u64, Duration>,
    /// The bottleneck of the pipe, if it has one.
    pub bottleneck: Option<Bottleneck>,
    /// Whether the receiver supports SACK and time stamps.
    pub options: bool,
    /// All transmissions and their times.
    pub sent: Vec<(Instant, Transmit)>,
    /// The largest pipe just after a transmission that the windows permitted.
    pub most_in_flight: ByteCount,
    /// The largest value of min(cwnd, the peer's window).
    pub most_allowed: ByteCount,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    received: RangeSet,
    rcv_nxt: ExtSeq,
    latest: ExtSeq,
    ts_recent: Instant,
}

impl Net {
    /// A network over which `sender` sends `segments` to a peer with a window of `rwnd_segments`.
    pub fn new(sender: Sender, segments: u64, rwnd_segments: u64) -> Self {
        let rwnd = ByteCount(rwnd_segments * SMSS);
        let supply =
            Supply { end: seq(segments), fin: false, window_edge: FIRST + rwnd, nodelay: false };
        Self {
            now: Instant::ZERO,
            sender,
            supply,
            rwnd,
            losses: BTreeSet::new(),
            delays: BTreeMap::new(),
            bottleneck: None,
            options: true,
            sent: Vec::new(),
            most_in_flight: ByteCount::ZERO,
            most_allowed: ByteCount::ZERO,
            events: BTreeMap::new(),
            count: 0,
            received: RangeSet::new(),
            rcv_nxt: FIRST,
            latest: FIRST,
            ts_recent: Instant::ZERO,
        }
    }

    /// Runs until everything is acknowledged; returns the time that took.
    #[track_caller]
    pub fn run(&mut self) -> Duration {
        let start = self.now;
        self.pump();
        let mut steps = 0;
        while self.sender.snd_una() < self.supply.end {
            assert!(self.step(), "{} stalls: {:?}", self.sender.combination(), self.sender);
            steps += 1;
            assert!(steps < 1_000_000, "{} does not end", self.sender.combination());
        }
        self.now.since(start)
    }

    /// Processes the next event or deadline; returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        let event = self.events.first_key_value().map(|(&(at, _), _)| at);
        let Some(at) = event.into_iter().chain(self.sender.poll_timeout()).min() else {
            return false;
        };
        self.now = self.now.max(at);
        if event == Some(at) {
            match self.events.pop_first() {
                Some((_, Event::Data { range, stamp })) => self.receive(range, stamp),
                Some((_, Event::Ack { ack, sack, dsack, echo })) => {
                    self.supply.window_edge = self.supply.window_edge.max(ack + self.rwnd);
                    let (sack, dsack) =
                        if self.options { (&sack[..], dsack) } else { (&[][..], None) };
                    let echo = Some(echo).filter(|_| self.options);
                    let heard = Ack { ack, sack, dsack, echo, ..super::ack(0, &[]) };
                    self.sender.on_ack(self.now, &heard);
                }
                None => {}
            }
        } else {
            self.sender.on_timeout(self.now);
        }
        self.sender.board().audit().unwrap();
        self.pump();
        true
    }

    /// Sends all that the windows permit.
    #[track_caller]
    pub fn pump(&mut self) {
        loop {
            let pipe = self.sender.pipe();
            let sacked = self.sender.board().sacked_ranges().clone();
            let (cwnd, smss) = (self.sender.cwnd(), ByteCount(SMSS));
            self.most_allowed = self.most_allowed.max(cwnd.min(self.rwnd));
            match self.sender.next_transmission(self.now, &self.supply) {
                Decision::Send(transmit) => {
                    let cwnd = self.sender.cwnd().max(cwnd);
                    let Transmit { range, rule, .. } = transmit;
                    if !rule.exceeds_cwnd() {
                        // A FIN needs no room in cwnd.
                        let fin = self.supply.fin && range.end == self.supply.end;
                        let used = pipe + (range.len() - ByteCount(fin.into()));
                        assert!(used <= cwnd, "{transmit:?} with {pipe} of {cwnd}");
                        self.most_in_flight = self.most_in_flight.max(pipe + range.len());
                    }
                    assert!(range.end <= self.supply.window_edge, "{transmit:?} beyond rwnd");
                    assert!(!sacked.covers(range), "{transmit:?} was SACKed");
                    self.transmit(transmit);
                }
                Decision::Blocked(Limit::Cwnd) => {
                    assert!(pipe + smss > cwnd, "idle with {pipe} of {cwnd}");
                    break;
                }
                Decision::Blocked(_) => break,
            }
            self.sender.board().audit().unwrap();
        }
    }

    fn transmit(&mut self, transmit: Transmit) {
        let segment = index(transmit.range.start);
        let before = self.sendings(segment);
        self.sent.push((self.now, transmit));
        if self.losses.contains(&(segment, before)) {
            return;
        }
        let late = self.delays.get(&segment).filter(|_| before == 0).copied().unwrap_or_default();
        let stamp = Instant::from_millis(self.now.as_millis());
        let left = match &mut self.bottleneck {
            Some(bottleneck) => bottleneck.pass(self.now, transmit.range.len()),
            None => Some(self.now),
        };
        let Some(left) = left else { return };
        let arrival = left + RTT / 2 + late;
        self.post(arrival, Event::Data { range: transmit.range, stamp });
    }

    /// Returns the number of transmissions of a segment.
    pub fn sendings(&self, segment: u64) -> u32 {
        let same = |sent: &&(Instant, Transmit)| index(sent.1.range.start) == segment;
        self.sent.iter().filter(same).count() as u32
    }

    fn receive(&mut self, range: SeqRange, stamp: Instant) {
        let duplicate = range.end <= self.rcv_nxt || self.received.covers(range);
        // RFC 7323 section 5.3: ignore the time stamps of old duplicates, which lie outside the
        // window.
        if range.start <= self.rcv_nxt && !duplicate {
            self.ts_recent = self.ts_recent.max(stamp);
        }
        self.latest = range.start;
        self.received.insert(range);
        self.rcv_nxt = self.received.next_gap(self.rcv_nxt);
        // RFC 2018 section 4: the block of the latest segment first.
        let above = |block: &SeqRange| block.start > self.rcv_nxt;
        let first = self.received.range_at(self.latest).filter(above);
        let rest = self.received.iter().rev().filter(above).filter(|block| Some(*block) != first);
        let sack = first.into_iter().chain(rest).take(3).collect();
        let dsack = duplicate.then_some(range);
        let ack = Event::Ack { ack: self.rcv_nxt, sack, dsack, echo: self.ts_recent };
        self.post(self.now + RTT / 2, ack);
    }

    fn post(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.count), event);
        self.count += 1;
    }
}
