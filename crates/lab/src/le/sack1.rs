//! ns-2's SACK sender, as far as it decides how long a recovery takes.
//!
//! It was written before RFC 6675, and its pipe is a count: what was in flight less three when the third duplicate ACK
//! comes, one less for every ACK after that, two less for one that gets further, and one more for everything sent.
//! The first repair is not counted, and lost segments never leave the count. Not modelled: anything but one window
//! whose losses are known, and a repair is never lost.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The path and the limits, in segments and times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The window: what is in flight before the losses, and what the receiver takes beyond its ACK.
    pub(super) window: u64,
    /// The time that a segment takes at the bottleneck.
    pub(super) service: Duration,
    /// What a round trip takes besides.
    pub(super) round_trip: Duration,
    /// The retransmission time-out, restarted with every ACK that gets further.
    pub(super) rto: Duration,
}

/// How a recovery went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// From the first loss to the ACK of the last.
    pub(super) time: Duration,
    pub(super) timeouts: u64,
    /// Whether every repair left before the first one's ACK came.
    pub(super) is_single: bool,
}

/// Sends a window of segments, of which `lost` never arrive the first time.
pub(super) fn recover(path: Path, lost: &BTreeSet<u64>) -> Option<Outcome> {
    let (first, last) = (*lost.first()?, *lost.last()?);
    let mut sender = Sender::new(path, lost);
    let began = path.service * (first as u32);
    while sender.acked <= last {
        sender.step();
    }
    let repairs_end = sender.last_repair;
    Some(Outcome {
        time: sender.now - began,
        timeouts: sender.timeouts,
        is_single: sender.timeouts == 0 && sender.first_back.is_none_or(|back| repairs_end < back),
    })
}

/// Sender, bottleneck and receiver. Segments are numbered from 0.
struct Sender<'a> {
    path: Path,
    lost: &'a BTreeSet<u64>,
    now: Duration,
    /// When the bottleneck is done with what it has.
    busy_until: Duration,
    /// Segments that will be acknowledged: when, and which.
    on_the_way: VecDeque<(Duration, u64)>,
    /// What the receiver holds beyond what is in order, and the next in order.
    held: BTreeSet<u64>,
    expected: u64,
    /// What the sender knows.
    acked: u64,
    sacked: BTreeSet<u64>,
    next: u64,
    /// After a time-out, what is sent again next.
    again: u64,
    cwnd: f64,
    ssthresh: f64,
    duplicates: u64,
    mode: Mode,
    timer: Duration,
    timeouts: u64,
    last_repair: Duration,
    first_back: Option<Duration>,
}

enum Mode {
    /// Up to the third duplicate ACK, and when all is well again.
    Open,
    Recovery {
        pipe: i64,
        until: u64,
        repaired: BTreeSet<u64>,
    },
    /// After a time-out: everything is sent again in slow start, whatever was SACKed.
    Restart,
}

impl<'a> Sender<'a> {
    fn new(path: Path, lost: &'a BTreeSet<u64>) -> Self {
        let mut sender = Self {
            path,
            lost,
            now: Duration::ZERO,
            busy_until: Duration::ZERO,
            on_the_way: VecDeque::new(),
            held: BTreeSet::new(),
            expected: 0,
            acked: 0,
            sacked: BTreeSet::new(),
            next: 0,
            again: 0,
            cwnd: path.window as f64,
            ssthresh: path.window as f64,
            duplicates: 0,
            mode: Mode::Open,
            timer: path.rto,
            timeouts: 0,
            last_repair: Duration::ZERO,
            first_back: None,
        };
        sender.send_new();
        sender
    }

    fn step(&mut self) {
        match self.on_the_way.front().copied().filter(|(at, _)| *at <= self.timer) {
            Some((at, segment)) => {
                self.on_the_way.pop_front();
                self.now = at;
                self.on_arrived(segment);
            }
            None => self.on_timeout(),
        }
    }

    fn transmit(&mut self, segment: u64) {
        let is_new = segment >= self.next;
        self.next = self.next.max(segment + 1);
        self.busy_until = self.busy_until.max(self.now) + self.path.service;
        if !is_new {
            self.last_repair = self.now;
        }
        if !(is_new && self.lost.contains(&segment)) {
            self.on_the_way.push_back((self.busy_until + self.path.round_trip, segment));
        }
    }

    /// The receiver's part, and the ACK's.
    fn on_arrived(&mut self, segment: u64) {
        if segment >= self.expected {
            self.held.insert(segment);
        }
        while self.held.remove(&self.expected) {
            self.expected += 1;
        }
        let advanced = self.expected > self.acked;
        self.acked = self.expected;
        if segment >= self.acked {
            self.sacked.insert(segment);
        }
        if advanced {
            self.timer = self.now + self.path.rto;
            if self.timeouts > 0 || matches!(self.mode, Mode::Recovery { .. }) {
                self.first_back.get_or_insert(self.now);
            }
        }
        match &mut self.mode {
            Mode::Recovery { pipe, until, .. } => {
                *pipe -= if advanced { 2 } else { 1 };
                if self.acked > *until {
                    self.mode = Mode::Open;
                }
            }
            Mode::Restart if advanced => {
                self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            }
            Mode::Restart => {}
            Mode::Open if advanced => self.duplicates = 0,
            Mode::Open => {
                self.duplicates += 1;
                if self.duplicates == 3 {
                    self.enter_recovery();
                    return;
                }
            }
        }
        self.send();
    }

    fn enter_recovery(&mut self) {
        let pipe = (self.next - self.acked) as i64 - 3;
        self.cwnd = (self.cwnd / 2.0).floor();
        self.ssthresh = self.cwnd;
        self.timer = self.now + self.path.rto;
        let (until, repaired) = (self.next - 1, BTreeSet::from([self.acked]));
        self.mode = Mode::Recovery { pipe, until, repaired };
        self.transmit(self.acked);
    }

    fn send(&mut self) {
        match self.mode {
            Mode::Open => self.send_new(),
            Mode::Recovery { .. } => self.send_in_recovery(),
            Mode::Restart => self.send_again(),
        }
    }

    fn send_new(&mut self) {
        let window = self.path.window.min(self.cwnd as u64);
        while self.next < self.acked + window {
            self.transmit(self.next);
        }
    }

    fn send_in_recovery(&mut self) {
        let highest = self.sacked.last().copied().unwrap_or_default();
        while let Mode::Recovery { pipe, repaired, .. } = &mut self.mode
            && *pipe < self.cwnd as i64
        {
            let is_hole =
                |segment: &u64| !self.sacked.contains(segment) && !repaired.contains(segment);
            let segment = match (self.acked..highest).find(is_hole) {
                Some(hole) => hole,
                None if self.next < self.acked + self.path.window => self.next,
                None => break,
            };
            *pipe += 1;
            repaired.insert(segment);
            self.transmit(segment);
        }
    }

    fn send_again(&mut self) {
        self.again = self.again.max(self.acked);
        while self.again < self.acked + self.path.window.min(self.cwnd as u64) {
            self.transmit(self.again);
            self.again += 1;
        }
    }

    fn on_timeout(&mut self) {
        self.now = self.timer;
        self.timeouts += 1;
        self.timer = self.now + self.path.rto * 2;
        self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
        self.cwnd = 1.0;
        self.mode = Mode::Restart;
        self.again = self.acked;
        self.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        window: 32,
        service: Duration::from_millis(1),
        round_trip: Duration::from_millis(40),
        rto: Duration::from_millis(200),
    };

    fn first(count: u64) -> Outcome {
        recover(PATH, &(0..count).collect()).unwrap()
    }

    #[test]
    fn lost_segments_stay_in_its_pipe() {
        // Of 32 - k duplicate ACKs three begin the recovery: k are held to be in flight, of a window of 16.
        for count in 1..=8 {
            assert!(first(count).is_single, "{count}");
        }
        assert!(!first(9).is_single);
        // The first repair's ACK takes two out, and 17 - 2 is the last that is less than 16.
        assert_eq!((first(17).timeouts, first(18).timeouts), (0, 1));
    }

    #[test]
    fn times_are_those_of_the_path() {
        // Lost at 0; the third duplicate ACK at 4 + 40 ms; its repair is acknowledged 41 ms later.
        assert_eq!(first(1).time, Duration::from_millis(44 + 41));
        // With two duplicate ACKs there is only the timer, since the last ACK that got further.
        assert_eq!(first(30).timeouts, 1);
        assert!(first(30).time >= PATH.rto);
        assert_eq!(recover(PATH, &BTreeSet::new()), None);
    }
}
