//! The receive half: puts packets in order, finds what is missing, and tells the sender (thesis 3.5).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use airtcp_types::Instant;

use crate::config::{Config, NetworkKind};
use crate::differentiation::{Arrival, Arrivals, Loss};
use crate::gaps::{Gaps, Trains};
use crate::pool::Pool;
use crate::wire::{
    Counts, Data, Feedback, LEAST_REPORT, Lost, LostWriter, PING_LEN, RANGE, RANGE_MAX, Report,
    ReportKind, expand, most_lost,
};

/// A CACK is for so many packets in order.
const CACK_EVERY: u64 = 32;
/// What has come is told after a gap without packets, and in any case after this.
const LATEST_ACK: Duration = Duration::from_millis(200);
const EARLIEST_ACK: Duration = Duration::from_millis(10);
/// A packet is lost once so many later transmissions have come, on a path that has not reordered any (RFC 9002 section
/// 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// How many bytes of loss reports a byte that comes pays for.
const AMPLIFICATION: u64 = 3;
/// The most that a request for a packet is put off: eight times as long as the first one.
const MOST_REPEATS: u32 = 3;
/// A PING makes known at most so many packets that have not come.
const TAIL: u64 = 1_024;
/// What a place for a packet costs beside the packet.
const SLOT: u64 = size_of::<Option<Arrived>>() as u64;
/// What a hole costs beside the packet that is not there.
const HOLE_COST: u64 = 128;

/// A packet that has not come, though a later one has.
#[derive(Clone, Copy, Debug)]
struct Hole {
    /// The transmission that showed it; one before that is the packet itself, late.
    shown_by: u64,
    /// It left after this one.
    after: u64,
    loss: Loss,
    /// How often it was asked for.
    requests: u32,
    due: Instant,
}

/// A packet that has come.
#[derive(Clone, Debug)]
struct Arrived {
    payload: Vec<u8>,
    nonce: bool,
}

/// What became of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    New,
    Duplicate,
    /// It is beyond the window or larger than the peer's packets are.
    OverWindow,
    NoMemory,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiveHalf {
    /// The largest payload of a packet.
    payload: usize,
    window: u64,
    /// The number of the first slot: the packet that the application reads next.
    read: u64,
    /// How much of it is read.
    offset: usize,
    slots: VecDeque<Option<Arrived>>,
    full_slots: u64,
    /// All packets before it have come, and the sum of their nonces.
    next: u64,
    nonce_sum: bool,
    /// All packets from here on are unknown.
    end: u64,
    fin: Option<u64>,
    limit: u64,
    holes: BTreeMap<u64, Hole>,
    due: BTreeSet<(Instant, u64)>,
    /// Holes that are not told yet, as they were found.
    unreported: VecDeque<(u64, u64)>,
    /// How long a packet may be late (RFC 8985 section 6.2); grows where some are.
    reordering_window: Option<Duration>,
    newest: u64,
    echo: Option<(u32, Instant)>,
    gaps: Gaps,
    trains: Trains,
    arrivals: Arrivals,
    feedback: Option<Feedback>,
    /// The transmission that last moved `end`.
    ended_by: u64,
    /// What became of what left after the sender's last reduction, and the first transmission of that: in full, as that may be longer
    /// ago than 32 bits tell.
    counts: Counts,
    first_counted: u64,
    /// Of the newest packet.
    recovery_bit: bool,
    congestive: u64,
    wireless: u64,
    received: u64,
    /// `next` of the last CACK.
    last_cack: u64,
    ack_now: bool,
    /// Since when there is something to tell.
    unreported_since: Option<Instant>,
    /// Bytes of loss reports that what has come pays for.
    credit: u64,
    scratch: Vec<u64>,
    lost: LostWriter,
}

impl ReceiveHalf {
    /// `payload`: the largest that the peer sends.
    pub(crate) fn new(config: &Config, payload: usize, window: u64) -> Self {
        Self {
            payload,
            window,
            read: 0,
            offset: 0,
            slots: VecDeque::new(),
            full_slots: 0,
            next: 0,
            nonce_sum: false,
            end: 0,
            fin: None,
            limit: window,
            holes: BTreeMap::new(),
            due: BTreeSet::new(),
            unreported: VecDeque::new(),
            reordering_window: None,
            newest: 0,
            echo: None,
            gaps: Gaps::default(),
            trains: Trains::default(),
            arrivals: Arrivals::new(config.kind, config.biaz),
            feedback: None,
            ended_by: 0,
            counts: Counts::default(),
            first_counted: 0,
            recovery_bit: false,
            congestive: 0,
            wireless: 0,
            received: 0,
            last_cack: 0,
            ack_now: false,
            unreported_since: None,
            credit: 0,
            scratch: Vec::new(),
            lost: LostWriter::default(),
        }
    }

    /// From now on the network is of another kind.
    pub(crate) const fn reconfigure(&mut self, kind: NetworkKind) {
        self.arrivals.set_kind(kind);
    }

    /// Packets that came, and losses judged to be of congestion and of the link.
    pub(crate) const fn totals(&self) -> [u64; 3] {
        [self.received, self.congestive, self.wireless]
    }

    /// A packet that was asked for is asked for again after this.
    pub(crate) fn repeat(&self, rtt: Duration) -> Duration {
        let gap = self.arrivals.shortest_gap().unwrap_or(Duration::ZERO);
        rtt * 5 / 4 + gap * 2 + Duration::from_millis(10)
    }

    /// Bytes that it takes from the endpoint's memory. A hole has what its packet will need: that is taken whenever it comes.
    pub(crate) fn held(&self) -> u64 {
        let holes = self.holes.len() as u64;
        (self.full_slots + holes) * self.payload as u64
            + (self.end - self.read) * SLOT
            + holes * HOLE_COST
    }

    /// What a packet beyond `end` may take.
    const fn place(&self) -> u64 {
        self.payload as u64 + SLOT + HOLE_COST
    }

    /// Bytes of the stream that have come and are not read, those behind a hole too.
    pub(crate) fn unread(&self) -> u64 {
        let bytes: usize = self.slots.iter().flatten().map(|packet| packet.payload.len()).sum();
        (bytes - self.offset) as u64
    }

    /// Everything up to the peer's end has come, read or not.
    pub(crate) fn is_complete(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The application has read everything there ever will be.
    pub(crate) fn is_at_end(&self) -> bool {
        self.fin.is_some_and(|fin| self.read > fin)
    }

    /// Something can be read, be it the end.
    pub(crate) fn is_readable(&self) -> bool {
        self.is_at_end() || self.read < self.next
    }

    /// Takes a data packet.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        data: &Data<'_>,
        rtt: Duration,
        pool: &mut Pool,
    ) -> Taken {
        let number = expand(self.next, data.number);
        let transmission = expand(self.newest, data.transmission);
        let after_end =
            self.fin.is_some_and(|fin| number > fin) || (data.fin && number + 1 < self.end);
        if number >= self.limit || data.payload.len() > self.payload || after_end {
            return Taken::OverWindow;
        }
        self.add_credit(data.len());
        // With it come the places of all that are missing before it.
        let beyond = (number + 1).saturating_sub(self.end);
        if beyond > 0 && pool.room(self.held()) < beyond * self.place() {
            return Taken::NoMemory;
        }
        let arrival = Arrival {
            at: now,
            transmission,
            sent: data.sent,
            size: data.payload.len(),
            pause: data.pause,
        };
        let verdict = self.arrivals.on_data(arrival, self.gaps.half_epoch());
        if verdict.stalled {
            self.gaps.skip();
        }
        self.measure(now, transmission, data);
        self.echo = Some((data.sent, now));
        self.unreported_since.get_or_insert(now);
        if data.recovery_bit != self.recovery_bit && transmission > self.newest {
            (self.recovery_bit, self.first_counted) = (data.recovery_bit, transmission);
            self.counts = Counts { first_counted: transmission as u32, ..Counts::default() };
        }
        self.newest = self.newest.max(transmission);
        if number < self.next || self.arrived(number).is_some() {
            // What told the sender that it came was lost.
            self.ack_now = true;
            return Taken::Duplicate;
        }
        self.received += 1;
        let since_recovery = transmission >= self.first_counted;
        self.counts.received = self.counts.received.wrapping_add(since_recovery.into());
        let window = self.reordering_window.unwrap_or(rtt / 4).max(Duration::from_millis(1));
        for hole in self.end..number {
            self.add_hole(hole, transmission, verdict.loss, now + window);
        }
        if number >= self.end {
            (self.end, self.ended_by) = (number + 1, transmission);
        }
        self.fill(number, transmission, data, rtt, pool);
        self.detect_losses(now);
        Taken::New
    }

    fn measure(&mut self, now: Instant, transmission: u64, data: &Data<'_>) {
        let epoch = self.gaps.on_data(now, transmission, data);
        let train = self.trains.on_data(now, transmission, data);
        if epoch.is_none() && train.is_none() {
            return;
        }
        let nanos = |gap: Duration| u32::try_from(gap.as_nanos()).unwrap_or(u32::MAX);
        let mut feedback = self.feedback.unwrap_or_default();
        if let Some(epoch) = epoch {
            feedback.since = epoch.since as u32;
            feedback.send_gap = nanos(epoch.send_gap);
            feedback.receive_gap = nanos(epoch.receive_gap);
            feedback.congested = self.arrivals.end_epoch();
            feedback.counts = self.counts;
        }
        if let Some(train) = train {
            feedback.train_gap = Some(nanos(train));
        }
        self.feedback = Some(feedback);
    }

    fn add_hole(&mut self, number: u64, shown_by: u64, loss: Loss, due: Instant) {
        self.holes.insert(number, Hole { shown_by, after: self.ended_by, loss, requests: 0, due });
        self.due.insert((due, number));
        if self.reordering_window.is_none() && shown_by < u64::MAX {
            self.unreported.push_back((shown_by, number));
        }
    }

    /// A packet that is not read.
    fn arrived(&self, number: u64) -> Option<&Arrived> {
        self.slots.get((number.checked_sub(self.read)?) as usize)?.as_ref()
    }

    fn fill(
        &mut self,
        number: u64,
        transmission: u64,
        data: &Data<'_>,
        rtt: Duration,
        pool: &mut Pool,
    ) {
        if let Some(hole) = self.holes.remove(&number) {
            self.due.remove(&(hole.due, number));
            if hole.requests > 0 && transmission < hole.shown_by {
                // It was late and not lost: from now on packets may be later.
                let before = self.reordering_window.unwrap_or(rtt / 8);
                self.reordering_window = Some((before * 2).min(rtt).max(Duration::from_millis(1)));
            }
        }
        let index = (number - self.read) as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, None);
        }
        self.slots[index] = Some(Arrived { payload: pool.fill(data.payload), nonce: data.nonce });
        self.full_slots += 1;
        if data.fin {
            self.fin = Some(number);
        }
        while let Some(nonce) = self.arrived(self.next).map(|packet| packet.nonce) {
            self.next += 1;
            self.nonce_sum ^= nonce;
        }
        self.ack_now |= self.is_complete();
    }

    /// Holes that enough later transmissions have passed are due at once.
    fn detect_losses(&mut self, now: Instant) {
        if self.reordering_window.is_some() {
            self.unreported.clear();
        }
        while let Some(&(shown_by, number)) = self.unreported.front() {
            let hole = self.holes.get_mut(&number).filter(|hole| hole.requests == 0);
            if let Some(hole) = hole {
                if shown_by + PACKET_THRESHOLD > self.newest + 1 {
                    return;
                }
                if hole.due > now {
                    self.due.remove(&(hole.due, number));
                    hole.due = now;
                    self.due.insert((now, number));
                }
            }
            self.unreported.pop_front();
        }
    }

    /// The sender asks what has come, and says that it has sent everything before `next`. `false` if it cannot have.
    pub(crate) fn on_ping(
        &mut self,
        now: Instant,
        next: u32,
        sent: u32,
        rtt: Duration,
        pool: &Pool,
    ) -> bool {
        let next = expand(self.next, next);
        if next > self.limit || self.fin.is_some_and(|fin| next > fin + 1) {
            return false;
        }
        self.add_credit(PING_LEN);
        self.echo = Some((sent, now));
        self.ack_now = true;
        let afford = pool.room(self.held()) / self.place();
        let due = now + self.reordering_window.unwrap_or(rtt / 4);
        let until = next.min(self.end + TAIL.min(afford));
        for number in self.end..until {
            // Nothing that was sent after them has come, so that nothing is known of why.
            self.add_hole(number, u64::MAX, Loss::Wireless, due);
        }
        self.end = self.end.max(until);
        true
    }

    /// Reads into `out`; how much. Nothing at the end, and while nothing is there.
    pub(crate) fn read(&mut self, out: &mut [u8], pool: &mut Pool) -> usize {
        let mut count = 0;
        while self.read < self.next {
            let Some(Some(front)) = self.slots.front() else { break };
            let rest = &front.payload[self.offset..];
            let taken = rest.len().min(out.len() - count);
            out[count..count + taken].copy_from_slice(&rest[..taken]);
            (count, self.offset) = (count + taken, self.offset + taken);
            if self.offset < front.payload.len() {
                break;
            }
            self.pop_front(pool);
        }
        // A window that has opened by a quarter is worth telling.
        self.ack_now |= self.room(pool) >= self.limit + (self.window / 4).max(1);
        count
    }

    /// Throws away everything that waits. Packets behind a hole count as not received from now on.
    pub(crate) fn discard(&mut self, pool: &mut Pool) {
        while !self.slots.is_empty() {
            self.pop_front(pool);
        }
        (self.read, self.end) = (self.next, self.next);
        self.holes.clear();
        self.due.clear();
        self.unreported.clear();
    }

    fn pop_front(&mut self, pool: &mut Pool) {
        if let Some(Some(packet)) = self.slots.pop_front() {
            pool.give_back(packet.payload);
            self.full_slots -= 1;
        }
        (self.read, self.offset) = (self.read + 1, 0);
    }

    /// Up to where there is room, as things are.
    fn room(&self, pool: &Pool) -> u64 {
        let memory = self.end + pool.room(self.held()) / self.place();
        (self.read + self.window).min(memory)
    }

    /// A packet of so many bytes has come: it pays for loss reports, so that one packet cannot ask
    /// for a flood of them (as RFC 9000 section 8.1 bounds what an unknown peer is sent).
    fn add_credit(&mut self, len: usize) {
        self.credit += AMPLIFICATION * len as u64;
    }

    /// How many packets the next loss report may name.
    const fn affordable(&self) -> u64 {
        self.credit.saturating_sub(LEAST_REPORT as u64) / RANGE as u64
    }

    /// When there is something to tell.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.ack_now || self.feedback.is_some() || self.next - self.last_cack >= CACK_EVERY {
            return Some(Instant::ZERO);
        }
        let hole = self.due.first().filter(|_| self.affordable() > 0).map(|(due, _)| *due);
        hole.into_iter().chain(self.ack_at()).min()
    }

    /// Once nothing has come for longer than usual.
    fn ack_at(&self) -> Option<Instant> {
        let since = self.unreported_since?;
        let (_, last) = self.echo?;
        let usual = self.arrivals.shortest_gap().unwrap_or(Duration::ZERO) * 4;
        Some((last + usual.max(EARLIEST_ACK)).min(since + LATEST_ACK))
    }

    /// The next report that is due, if any.
    pub(crate) fn poll_report(
        &mut self,
        now: Instant,
        size: usize,
        repeat: Duration,
        pool: &Pool,
    ) -> Option<Report<'_>> {
        self.limit = self.limit.max(self.room(pool));
        let mut feedback = None;
        self.lost.clear();
        let is_due = self.due.first().is_some_and(|(due, _)| *due <= now);
        let kind = if is_due && self.affordable() > 0 {
            self.report_holes(now, size, repeat)
        } else if let Some(measured) = self.feedback.take() {
            // What was told missing meanwhile is of the epoch, too.
            let same = measured.counts.first_counted == self.counts.first_counted;
            feedback = Some(Feedback {
                counts: if same { self.counts } else { measured.counts },
                ..measured
            });
            ReportKind::Feedback
        } else if self.next - self.last_cack >= CACK_EVERY {
            self.last_cack = self.next;
            ReportKind::Cack
        } else if self.ack_now || self.ack_at().is_some_and(|at| at <= now) {
            ReportKind::Ack
        } else {
            return None;
        };
        (self.ack_now, self.unreported_since) = (false, None);
        let held = |at: Instant| u32::try_from(now.since(at).as_micros()).unwrap_or(u32::MAX);
        let lost = match kind {
            ReportKind::Nack | ReportKind::Sack => self.lost.lost(),
            _ => Lost::default(),
        };
        Some(Report {
            kind,
            next: self.next as u32,
            nonce_sum: self.nonce_sum,
            limit: self.limit as u32,
            newest: self.newest as u32,
            echo: self.echo.map(|(sent, at)| (sent, held(at))),
            lost,
            feedback,
        })
    }

    /// Writes the holes that are due, as many as fit, and puts them off.
    fn report_holes(&mut self, now: Instant, size: usize, repeat: Duration) -> ReportKind {
        let mut numbers = std::mem::take(&mut self.scratch);
        numbers.clear();
        let due = self.due.iter().take_while(|(due, _)| *due <= now);
        let most = usize::try_from(self.affordable()).unwrap_or(usize::MAX).min(most_lost(size));
        numbers.extend(due.map(|(_, number)| *number).take(most));
        self.credit -= (LEAST_REPORT + RANGE * numbers.len()) as u64;
        numbers.sort_unstable();
        let mut range: Option<(u64, u64, bool)> = None;
        for &number in &numbers {
            let Some(hole) = self.holes.get_mut(&number) else { continue };
            self.due.remove(&(hole.due, number));
            if hole.requests == 0 {
                let counts = &mut self.counts;
                let counted = match hole.loss {
                    Loss::Congestive => Some((&mut self.congestive, &mut counts.congestive)),
                    Loss::Wireless => Some((&mut self.wireless, &mut counts.wireless)),
                    Loss::Stalled => None,
                };
                if let Some((all, since_recovery)) = counted {
                    *all += 1;
                    // What may have left before the reduction is no evidence.
                    *since_recovery =
                        since_recovery.wrapping_add((hole.after >= self.first_counted).into());
                }
            }
            hole.due = now + repeat * (1 << hole.requests.min(MOST_REPEATS));
            hole.requests += 1;
            self.due.insert((hole.due, number));
            let congestive = hole.loss == Loss::Congestive;
            range = match range {
                Some((first, count, cause))
                    if first + count == number && cause == congestive && count < RANGE_MAX =>
                {
                    Some((first, count + 1, cause))
                }
                before => {
                    if let Some((first, count, cause)) = before {
                        self.lost.push(first, count, cause);
                    }
                    Some((number, 1, congestive))
                }
            };
        }
        if let Some((first, count, cause)) = range {
            self.lost.push(first, count, cause);
        }
        let one = numbers.len() == 1;
        self.scratch = numbers;
        if one { ReportKind::Nack } else { ReportKind::Sack }
    }
}

#[cfg(test)]
mod tests;
