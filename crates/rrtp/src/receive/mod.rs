//! The receive half: orders packets, detects losses, and reports to the sender (thesis 3.5).
//!
//! [`Stream`] has the packets and the window, [`Holes`] the missing packets, [`Path`] the
//! measurements of packet times, and [`Evidence`] the counts of received and lost packets. This
//! module decides when to report.

mod evidence;
mod holes;
mod path;
mod stream;

use std::time::Duration;

use airtcp_types::Instant;

use crate::config::{Config, NetworkKind};
use crate::differentiation::Loss;
use crate::pool::Pool;
use crate::wire::{
    Data, LEAST_REPORT, Lost, PING_LEN, RANGE, Report, ReportKind, expand, most_lost,
};

use evidence::Evidence;
use holes::Holes;
use path::Path;
use stream::Stream;

/// The number of packets received in order after which a CACK is sent.
const CACK_EVERY: u64 = 32;
/// The bounds of the time after which received packets are acknowledged: after a gap without
/// packets, and at the latest after this.
const LATEST_ACK: Duration = Duration::from_millis(200);
const EARLIEST_ACK: Duration = Duration::from_millis(10);
/// The bytes of loss reports allowed for each byte received.
const AMPLIFICATION: u64 = 3;
/// The maximum number of missing packets that a PING can reveal.
const TAIL: u64 = 1_024;

/// The result of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    New,
    Duplicate,
    /// Beyond the window, or larger than the peer's packet size.
    OverWindow,
    NoMemory,
}

#[derive(Clone, Debug)]
pub(crate) struct ReceiveHalf {
    stream: Stream,
    holes: Holes,
    path: Path,
    evidence: Evidence,
    newest: u64,
    echo: Option<(u32, Instant)>,
    /// The first missing packet, as reported by the last CACK.
    last_cack: u64,
    ack_now: bool,
    /// The time since when there is something to report.
    unreported_since: Option<Instant>,
    /// The bytes of loss reports allowed by the bytes received.
    credit: u64,
}

impl ReceiveHalf {
    /// `payload`: the maximum payload of the peer's packets.
    pub(crate) fn new(config: &Config, payload: usize, window: u64) -> Self {
        Self {
            stream: Stream::new(payload, window),
            holes: Holes::default(),
            path: Path::new(config),
            evidence: Evidence::default(),
            newest: 0,
            echo: None,
            last_cack: 0,
            ack_now: false,
            unreported_since: None,
            credit: 0,
        }
    }

    /// Sets the kind of network.
    pub(crate) const fn reconfigure(&mut self, kind: NetworkKind) {
        self.path.reconfigure(kind);
    }

    /// Returns the numbers of packets received, of congestive losses, and of losses of the link.
    pub(crate) const fn totals(&self) -> [u64; 3] {
        self.evidence.totals()
    }

    /// Returns the time after which a missing packet is reported again.
    pub(crate) fn repeat(&self, rtt: Duration) -> Duration {
        rtt * 5 / 4 + self.path.shortest_gap() * 2 + Duration::from_millis(10)
    }

    /// The memory held, in bytes.
    pub(crate) fn held(&self) -> u64 {
        self.stream.held(self.holes.count())
    }

    /// The bytes received and not read, including those behind a hole.
    pub(crate) fn unread(&self) -> u64 {
        self.stream.unread()
    }

    /// Whether everything up to the end of the stream was received, read or not.
    pub(crate) fn is_complete(&self) -> bool {
        self.stream.is_complete()
    }

    /// Whether the application has read the whole stream.
    pub(crate) fn is_at_end(&self) -> bool {
        self.stream.is_at_end()
    }

    /// Whether data or the end of the stream can be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.stream.is_readable()
    }

    /// Processes a data packet.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        data: &Data<'_>,
        rtt: Duration,
        pool: &mut Pool,
    ) -> Taken {
        let number = self.stream.expand(data.number);
        let transmission = expand(self.newest, data.transmission);
        if !self.stream.admits(number, data) {
            return Taken::OverWindow;
        }
        self.add_credit(data.len());
        // A packet also needs memory for all missing packets before it.
        let end = self.stream.end();
        let beyond = (number + 1).saturating_sub(end);
        if beyond > 0 && pool.room(self.held()) < beyond * self.stream.place() {
            return Taken::NoMemory;
        }
        let loss = self.path.on_data(now, transmission, data, self.evidence.counts());
        self.echo = Some((data.sent, now));
        self.unreported_since.get_or_insert(now);
        if transmission > self.newest {
            self.evidence.on_newest(transmission, data.recovery_bit);
            self.newest = transmission;
        }
        if self.stream.has(number) {
            // The acknowledgement was lost.
            self.ack_now = true;
            return Taken::Duplicate;
        }
        self.evidence.on_received(transmission);
        let due = now + self.holes.patience(rtt).max(Duration::from_millis(1));
        for hole in end..number {
            self.holes.add(hole, transmission, loss, due);
        }
        if number >= end {
            self.stream.extend(number + 1);
            self.holes.on_end(transmission);
        }
        self.holes.fill(number, transmission, rtt);
        self.stream.fill(number, data, pool);
        self.ack_now |= self.is_complete();
        self.holes.detect(now, self.newest);
        Taken::New
    }

    /// Handles a PING: the sender requests a report and has sent everything before `next`. Returns
    /// `false` if it cannot have.
    pub(crate) fn on_ping(
        &mut self,
        now: Instant,
        next: u32,
        sent: u32,
        rtt: Duration,
        pool: &Pool,
    ) -> bool {
        let next = self.stream.expand(next);
        if !self.stream.may_reach(next) {
            return false;
        }
        self.add_credit(PING_LEN);
        self.echo = Some((sent, now));
        self.ack_now = true;
        let (end, afford) = (self.stream.end(), pool.room(self.held()) / self.stream.place());
        let due = now + self.holes.patience(rtt);
        let until = next.min(end + TAIL.min(afford));
        for number in end..until {
            // No later packet has arrived, so the cause of the loss is unknown.
            self.holes.add(number, u64::MAX, Loss::Wireless, due);
        }
        self.stream.extend(until);
        true
    }

    /// Reads into `out`; returns the number of bytes: zero at the end, or if no data is available.
    pub(crate) fn read(&mut self, out: &mut [u8], pool: &mut Pool) -> usize {
        let count = self.stream.read(out, pool);
        // A window that opens by a quarter is announced.
        self.ack_now |= self.stream.opens(self.room(pool));
        count
    }

    /// Drops all buffered data. Packets behind a hole count as not received from now on.
    pub(crate) fn discard(&mut self, pool: &mut Pool) {
        self.stream.discard(pool);
        self.holes.clear();
    }

    /// Returns the end of the window for the current memory.
    fn room(&self, pool: &Pool) -> u64 {
        self.stream.room(self.holes.count(), pool)
    }

    /// Adds the loss reports allowed for a received packet of `len` bytes. The limit keeps one
    /// packet from causing a flood of reports (compare RFC 9000 section 8.1 for unknown peers).
    fn add_credit(&mut self, len: usize) {
        self.credit += AMPLIFICATION * len as u64;
    }

    /// The number of packets that the next loss report may name.
    const fn affordable(&self) -> u64 {
        self.credit.saturating_sub(LEAST_REPORT as u64) / RANGE as u64
    }

    /// Whether a CACK is due.
    const fn has_cack(&self) -> bool {
        self.stream.next() - self.last_cack >= CACK_EVERY
    }

    /// Returns when a report is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.ack_now || self.path.has_feedback() || self.has_cack() {
            return Some(Instant::ZERO);
        }
        let hole = self.holes.next_due().filter(|_| self.affordable() > 0);
        hole.into_iter().chain(self.ack_at()).min()
    }

    /// Returns when received packets are acknowledged: after a longer gap than usual.
    fn ack_at(&self) -> Option<Instant> {
        let since = self.unreported_since?;
        let (_, last) = self.echo?;
        let usual = self.path.shortest_gap() * 4;
        Some((last + usual.max(EARLIEST_ACK)).min(since + LATEST_ACK))
    }

    /// Returns the next report, if one is due.
    pub(crate) fn poll_report(
        &mut self,
        now: Instant,
        size: usize,
        repeat: Duration,
        pool: &Pool,
    ) -> Option<Report<'_>> {
        self.stream.open(self.room(pool));
        let mut feedback = None;
        let is_due = self.holes.next_due().is_some_and(|due| due <= now);
        let kind = if is_due && self.affordable() > 0 {
            self.report_holes(now, size, repeat)
        } else if let Some(measured) = self.path.take_feedback(self.evidence.counts()) {
            feedback = Some(measured);
            ReportKind::Feedback
        } else if self.has_cack() {
            self.last_cack = self.stream.next();
            ReportKind::Cack
        } else if self.ack_now || self.ack_at().is_some_and(|at| at <= now) {
            ReportKind::Ack
        } else {
            return None;
        };
        (self.ack_now, self.unreported_since) = (false, None);
        let held = |at: Instant| u32::try_from(now.since(at).as_micros()).unwrap_or(u32::MAX);
        let lost = match kind {
            ReportKind::Nack | ReportKind::Sack => self.holes.written(),
            _ => Lost::default(),
        };
        Some(Report {
            kind,
            next: self.stream.next() as u32,
            nonce_sum: self.stream.nonce_sum(),
            limit: self.stream.limit() as u32,
            newest: self.newest as u32,
            echo: self.echo.map(|(sent, at)| (sent, held(at))),
            lost,
            feedback,
        })
    }

    /// Writes the holes that are due, as many as fit, and schedules their next report.
    fn report_holes(&mut self, now: Instant, size: usize, repeat: Duration) -> ReportKind {
        let most = usize::try_from(self.affordable()).unwrap_or(usize::MAX).min(most_lost(size));
        let Self { holes, evidence, .. } = self;
        let count = holes.report(now, most, repeat, |hole| evidence.on_lost(hole.loss, hole.after));
        self.credit -= (LEAST_REPORT + RANGE * count) as u64;
        if count == 1 { ReportKind::Nack } else { ReportKind::Sack }
    }
}

#[cfg(test)]
mod tests;
