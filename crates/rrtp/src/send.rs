//! The send half: written data, packets in flight, and retransmissions.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use airtcp_types::{ByteCount, Instant};
use bytes::{Bytes, BytesMut};

use crate::cookie::Nonces;
use crate::pool::Pool;
use crate::wire::{DATA_HEADER, LostRange, Report, expand, most_lost};

/// The number of packets whose payloads share one allocation.
const PACKETS_PER_CHUNK: usize = 32;

/// A packet that was sent and is not acknowledged.
#[derive(Clone, Debug)]
struct Outstanding {
    payload: Bytes,
    fin: bool,
    nonce: bool,
    /// The last transmission, and its time.
    transmission: u64,
    at: Instant,
}

/// The memory of a packet without its payload.
const PACKET: usize = size_of::<Outstanding>();

/// The event that the send half waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaits {
    /// Reports: packets are in flight or lost.
    Reports,
    /// The peer's window, which is full.
    Room,
    /// More data, or the time to send it.
    Data,
    /// Nothing: all data and the end of the stream are acknowledged.
    Nothing,
}

/// A packet to send now.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) number: u64,
    pub(crate) transmission: u64,
    pub(crate) payload: Bytes,
    pub(crate) fin: bool,
    pub(crate) nonce: bool,
}

/// The result of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Acked {
    /// The number of newly acknowledged packets.
    pub(crate) acknowledged: u64,
    /// The newest transmission found to be lost to congestion.
    pub(crate) congestive: Option<u64>,
}

/// The reason for rejecting a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadReport {
    /// It is about packets that do not exist.
    Implausible,
    /// It acknowledges packets that have not been received.
    Unreceived,
}

#[derive(Clone, Debug)]
pub(crate) struct SendHalf {
    /// The maximum payload of a packet.
    payload: usize,
    written: VecDeque<BytesMut>,
    written_bytes: usize,
    /// The number of the first packet in `outstanding`: all before it are acknowledged.
    base: u64,
    outstanding: VecDeque<Outstanding>,
    outstanding_bytes: usize,
    nonces: Nonces,
    /// The nonces of the block of 64 packets that contains the newest one.
    nonce_block: u64,
    /// The sum of the nonces of all packets before `base`.
    nonce_sum: bool,
    /// The end of the peer's window: packets before this number may be sent.
    limit: u64,
    resend: BTreeSet<u64>,
    next_transmission: u64,
    finished: bool,
    fin_sent: bool,
    retransmissions: u64,
}

impl SendHalf {
    pub(crate) const fn new(payload: usize, nonces: Nonces) -> Self {
        Self {
            payload,
            written: VecDeque::new(),
            written_bytes: 0,
            base: 0,
            outstanding: VecDeque::new(),
            outstanding_bytes: 0,
            nonces,
            nonce_block: 0,
            nonce_sum: false,
            limit: 0,
            resend: BTreeSet::new(),
            next_transmission: 1,
            finished: false,
            fin_sent: false,
            retransmissions: 0,
        }
    }

    /// Sets the maximum payload that the peer accepts.
    pub(crate) const fn set_payload(&mut self, payload: usize) {
        self.payload = payload;
    }

    /// Extends the peer's window to `window`; never reduces it.
    pub(crate) fn open(&mut self, window: u64) {
        self.limit = self.limit.max(window);
    }

    /// Accepts at most `room` bytes of `data`; returns the number of bytes.
    pub(crate) fn write(&mut self, data: &[u8], room: usize) -> usize {
        let taken = data.len().min(room);
        let mut rest = &data[..taken];
        let chunk = self.payload * PACKETS_PER_CHUNK;
        while !rest.is_empty() {
            let space = self.written.back().map_or(0, |last| last.capacity() - last.len());
            if space == 0 {
                // Small writes get small allocations.
                let size = if rest.len() < self.payload { self.payload } else { chunk };
                self.written.push_back(BytesMut::with_capacity(size));
                continue;
            }
            let (now, later) = rest.split_at(space.min(rest.len()));
            if let Some(last) = self.written.back_mut() {
                last.extend_from_slice(now);
            }
            rest = later;
        }
        self.written_bytes += taken;
        taken
    }

    /// Marks the end of the stream.
    pub(crate) const fn finish(&mut self) {
        self.finished = true;
    }

    /// Drops all data that was not acknowledged.
    pub(crate) fn discard(&mut self) {
        let next_transmission = self.next_transmission;
        let empty = Self::new(self.payload, Nonces::default());
        *self = Self { next_transmission, finished: true, ..empty };
    }

    pub(crate) const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether all data and the end of the stream are acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.fin_sent && self.outstanding.is_empty()
    }

    /// The number of bytes that are not acknowledged.
    pub(crate) const fn bytes(&self) -> usize {
        self.written_bytes + self.outstanding_bytes
    }

    /// The memory held; small packets cost more than their bytes.
    pub(crate) fn held(&self) -> usize {
        self.bytes() + self.outstanding.len() * PACKET
    }

    /// The memory held once all written data is in packets.
    pub(crate) fn cost(&self) -> usize {
        self.held() + self.written_bytes.div_ceil(self.payload) * PACKET
    }

    /// Returns how much can be written, with `capacity` in total.
    pub(crate) fn room(&self, capacity: usize, pool: &Pool) -> usize {
        let memory = ByteCount(pool.room(self.cost() as u64)).as_usize();
        capacity.saturating_sub(self.held()).min(self.affords(memory))
    }

    /// Returns how much can be written into `room` bytes of memory.
    const fn affords(&self, room: usize) -> usize {
        let (packet, room) = (self.payload + PACKET, room.saturating_sub(PACKET));
        room / packet * self.payload + room % packet * self.payload / packet
    }

    /// The number of packets in flight or lost.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    pub(crate) const fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// The number of the next new packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.base + self.outstanding.len() as u64
    }

    /// The number of the next transmission.
    pub(crate) const fn next_transmission(&self) -> u64 {
        self.next_transmission
    }

    /// Whether there is unsent data, regardless of the window.
    const fn has_new(&self) -> bool {
        self.written_bytes > 0 || (self.finished && !self.fin_sent)
    }

    pub(crate) fn awaits(&self) -> Awaits {
        match self.outstanding.is_empty() {
            false => Awaits::Reports,
            true if self.is_blocked() => Awaits::Room,
            true if self.is_done() => Awaits::Nothing,
            true => Awaits::Data,
        }
    }

    /// Whether the peer's window blocks unsent data.
    fn is_blocked(&self) -> bool {
        self.resend.is_empty() && self.has_new() && self.next_number() >= self.limit
    }

    /// Whether a packet may be sent.
    pub(crate) fn has_packet(&self) -> bool {
        !self.resend.is_empty() || (self.has_new() && self.next_number() < self.limit)
    }

    /// Whether the next `count` packets are new and full.
    pub(crate) fn has_train(&self, count: u64) -> bool {
        let full = self.written.front().is_some_and(|front| front.len() >= self.payload);
        self.resend.is_empty()
            && full
            && self.written_bytes as u64 >= count * self.payload as u64
            && self.next_number() + count <= self.limit
    }

    /// Takes the next packet to send, retransmissions first.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(number) = self.resend.pop_first() {
            let packet = self.outstanding.get_mut((number - self.base) as usize)?;
            packet.transmission = self.next_transmission;
            packet.at = now;
            let packet = packet.clone();
            self.retransmissions += 1;
            return Some(self.outgoing(number, packet));
        }
        if !self.has_new() || self.next_number() >= self.limit {
            return None;
        }
        let number = self.next_number();
        let payload = self.split_payload();
        let fin = self.finished && self.written_bytes == 0;
        self.fin_sent |= fin;
        self.outstanding_bytes += payload.len();
        if number.is_multiple_of(64) {
            self.nonce_block = self.nonces.block(number / 64);
        }
        let nonce = self.nonce_block >> (number % 64) & 1 == 1;
        let transmission = self.next_transmission;
        let packet = Outstanding { payload, fin, nonce, transmission, at: now };
        self.outstanding.push_back(packet.clone());
        Some(self.outgoing(number, packet))
    }

    fn outgoing(&mut self, number: u64, packet: Outstanding) -> Outgoing {
        self.next_transmission += 1;
        let Outstanding { payload, fin, nonce, transmission, .. } = packet;
        Outgoing { number, transmission, payload, fin, nonce }
    }

    /// Splits the payload of the next packet off the written data.
    fn split_payload(&mut self) -> Bytes {
        let Some(front) = self.written.front_mut() else { return Bytes::new() };
        let payload = front.split_to(front.len().min(self.payload)).freeze();
        // The remaining capacity is less than a packet.
        let is_used_up = front.is_empty() && front.capacity() < self.payload;
        if is_used_up || (front.is_empty() && self.written.len() > 1) {
            self.written.pop_front();
        }
        self.written_bytes -= payload.len();
        payload
    }

    /// Handles a report. A packet reported lost is retransmitted if a later transmission has
    /// arrived, or if its last transmission is older than `rto`; otherwise that transmission is
    /// still in flight.
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        report: &Report<'_>,
        rto: Duration,
    ) -> Result<Acked, BadReport> {
        let next = expand(self.base, report.next);
        let newest = expand(self.next_transmission, report.newest);
        let end = self.next_number();
        // Ranges must increase, not overlap, and name few packets: this bounds the cost of a
        // report.
        let most = most_lost(self.payload + DATA_HEADER) as u64;
        let (mut from, mut named) = (0, 0);
        let sound = |range: LostRange| {
            let (first, count) = (expand(self.base, range.first), u64::from(range.count));
            let rises = first >= from;
            (from, named) = (first + count, named + count);
            rises && from <= end && named <= most
        };
        if next > end || newest >= self.next_transmission || !report.lost.ranges().all(sound) {
            return Err(BadReport::Implausible);
        }
        // An older report may contain less, but nothing wrong.
        let limit = expand(self.limit, report.limit);
        if limit < next {
            return Err(BadReport::Implausible);
        }
        let mut acked = Acked { acknowledged: next.saturating_sub(self.base), ..Acked::default() };
        let acknowledged = self.outstanding.iter().take(acked.acknowledged as usize);
        let nonce_sum = acknowledged.fold(self.nonce_sum, |sum, packet| sum ^ packet.nonce);
        // Against the attack of RFC 9000 section 21.4, by the method of RFC 3540: a receiver that
        // lacks a packet has to guess its nonce.
        if next >= self.base && report.nonce_sum != nonce_sum {
            return Err(BadReport::Unreceived);
        }
        self.nonce_sum = nonce_sum;
        self.limit = self.limit.max(limit);
        for _ in 0..acked.acknowledged {
            if let Some(packet) = self.outstanding.pop_front() {
                self.outstanding_bytes -= packet.payload.len();
            }
        }
        self.base = self.base.max(next);
        while self.resend.first().is_some_and(|number| *number < self.base) {
            self.resend.pop_first();
        }
        for range in report.lost.ranges() {
            let first = expand(self.base, range.first);
            for number in first.max(self.base)..first + u64::from(range.count) {
                let Some(packet) = self.outstanding.get((number - self.base) as usize) else {
                    continue;
                };
                let overtaken = packet.transmission < newest;
                let late = now.since(packet.at) >= rto;
                if (overtaken || late) && self.resend.insert(number) && range.congestive {
                    acked.congestive = acked.congestive.max(Some(packet.transmission));
                }
            }
        }
        Ok(acked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Lost, LostWriter, ReportKind};

    const RTO: Duration = Duration::from_millis(100);

    fn half(bytes: usize) -> SendHalf {
        let mut half = SendHalf::new(100, Nonces::default());
        half.open(50);
        assert_eq!(half.write(&vec![7; bytes], usize::MAX), bytes);
        half
    }

    fn nonce(number: u64) -> bool {
        Nonces::default().block(number / 64) >> (number % 64) & 1 == 1
    }

    fn report(next: u32, newest: u32, lost: Lost<'_>) -> Report<'_> {
        Report {
            kind: ReportKind::Sack,
            next,
            nonce_sum: (0..u64::from(next)).fold(false, |sum, number| sum ^ nonce(number)),
            limit: next + 50,
            newest,
            echo: None,
            lost,
            feedback: None,
        }
    }

    fn numbers(half: &mut SendHalf, now: Instant) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| half.take(now)).map(|out| (out.number, out.transmission)).collect()
    }

    #[test]
    fn a_lost_packet_is_resent_once_per_transmission() {
        let mut half = half(450);
        let now = Instant::from_millis(1);
        assert_eq!(numbers(&mut half, now), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
        let mut lost = LostWriter::default();
        lost.push(1, 1, true);
        let acked = half.on_report(now, &report(1, 5, lost.lost()), RTO);
        assert_eq!(acked, Ok(Acked { acknowledged: 1, congestive: Some(2) }));
        assert_eq!(numbers(&mut half, now), [(1, 6)]);
        // The same report again: transmission 6 is in flight.
        half.on_report(now, &report(1, 5, lost.lost()), RTO).unwrap();
        assert_eq!(numbers(&mut half, now), []);
        half.on_report(now + RTO, &report(1, 5, lost.lost()), RTO).unwrap();
        assert_eq!(numbers(&mut half, now), [(1, 7)]);
        assert_eq!(half.retransmissions(), 2);
    }

    #[test]
    fn a_report_of_unsent_packets_is_refused() {
        let mut half = half(200);
        let now = Instant::ZERO;
        half.finish();
        assert_eq!(numbers(&mut half, now).len(), 2);
        let mut lost = LostWriter::default();
        lost.push(1, 2, false);
        for wrong in [
            report(3, 1, Lost::default()),
            report(0, 3, Lost::default()),
            report(0, 2, lost.lost()),
            Report { limit: 0, ..report(1, 2, Lost::default()) },
        ] {
            assert_eq!(half.on_report(now, &wrong, RTO), Err(BadReport::Implausible), "{wrong:?}");
        }
        assert_eq!(
            half.on_report(now, &report(2, 2, Lost::default()), RTO).unwrap().acknowledged,
            2
        );
        assert!(half.is_done() && half.held() == 0);
    }

    #[test]
    fn an_acknowledgement_needs_the_nonce_of_its_packet() {
        let now = Instant::ZERO;
        let mut half = half(20_000);
        half.open(200);
        assert_eq!(numbers(&mut half, now).len(), 200);
        let (mut odd, mut sum) = (0, false);
        for next in 1..=200 {
            odd += u32::from(nonce(u64::from(next) - 1));
            sum ^= nonce(u64::from(next) - 1);
            let honest = report(next, next, Lost::default());
            assert_eq!(honest.nonce_sum, sum);
            let lie = Report { nonce_sum: !sum, ..honest };
            assert_eq!(half.on_report(now, &lie, RTO), Err(BadReport::Unreceived));
            assert_eq!(half.on_report(now, &honest, RTO).unwrap().acknowledged, 1);
            // A repeated report, then an older one, whose sum is no longer known.
            half.on_report(now, &honest, RTO).unwrap();
            let old = Report { nonce_sum: !sum, ..report(next - 1, next, Lost::default()) };
            half.on_report(now, &old, RTO).unwrap();
        }
        assert!((70..130).contains(&odd), "{odd} of 200");
    }

    #[test]
    fn ranges_that_overlap_fall_or_name_too_much_are_refused() {
        let now = Instant::ZERO;
        let resent = |ranges: &[(u64, u64)]| {
            let mut half = half(2_000);
            numbers(&mut half, now);
            let mut lost = LostWriter::default();
            ranges.iter().for_each(|(first, count)| lost.push(*first, *count, false));
            let acked = half.on_report(now, &report(0, 20, lost.lost()), RTO);
            acked.map(|_| half.resend.len())
        };
        assert_eq!(resent(&[(5, 1), (6, 2), (9, 1)]), Ok(4));
        for wrong in [
            &[(5, 1), (5, 1)][..],
            &[(5, 3), (7, 1)],
            &[(6, 1), (5, 1)],
            // There are no numbers below zero.
            &[(u64::MAX - 9, 5), (u64::MAX - 4, 5)],
            // A packet of 128 bytes has room for 15 ranges.
            &[(0, 16)],
        ] {
            assert_eq!(resent(wrong), Err(BadReport::Implausible), "{wrong:?}");
        }
        assert_eq!(resent(&[(0, 15)]), Ok(15));
    }

    #[test]
    fn the_window_holds_back_what_is_new_and_not_what_was_lost() {
        let mut half = SendHalf::new(100, Nonces::default());
        half.open(2);
        half.write(&[0; 400], usize::MAX);
        let now = Instant::ZERO;
        assert_eq!(numbers(&mut half, now).len(), 2);
        assert!(half.is_blocked() && !half.has_packet());
        let mut lost = LostWriter::default();
        lost.push(0, 1, false);
        let closed = Report { limit: 2, ..report(0, 2, lost.lost()) };
        half.on_report(now, &closed, RTO).unwrap();
        assert!(half.has_packet());
        assert_eq!(numbers(&mut half, now), [(0, 3)]);
    }

    #[test]
    fn the_sender_waits_for_data_then_reports_then_room() {
        let mut half = SendHalf::new(100, Nonces::default());
        let now = Instant::ZERO;
        assert_eq!(half.awaits(), Awaits::Data);
        half.write(&[0; 200], usize::MAX);
        half.finish();
        assert_eq!(half.awaits(), Awaits::Room);
        half.open(1);
        assert_eq!(half.awaits(), Awaits::Data);
        numbers(&mut half, now);
        assert_eq!(half.awaits(), Awaits::Reports);
        half.on_report(now, &report(1, 1, Lost::default()), RTO).unwrap();
        numbers(&mut half, now);
        half.on_report(now, &report(2, 2, Lost::default()), RTO).unwrap();
        assert_eq!(half.awaits(), Awaits::Nothing);
        half.discard();
        assert_eq!((half.next_transmission(), half.held(), half.has_packet()), (3, 0, false));
    }

    #[test]
    fn the_end_is_a_packet_like_others() {
        let mut half = half(0);
        assert!(!half.has_packet());
        half.finish();
        let last = half.take(Instant::ZERO).unwrap();
        assert!(last.fin && last.payload.is_empty() && !half.is_done());
        half.on_report(Instant::ZERO, &report(1, 1, Lost::default()), RTO).unwrap();
        assert!(half.is_done());
    }
}
