//! What leaves, and when.

use std::time::Duration;

use airtcp_types::Instant;

use super::{Connection, Pacing, Probe, State};
use crate::pool::Pool;
use crate::wire::{Body, Data, Packet, Train};

/// A sender may make up for so much time at once; one that slept and wakes late, for so many packets.
const SLACK: Duration = Duration::from_millis(2);
const OWED: u32 = 4;
/// After so many packets, some leave as a train.
const TRAIN_EVERY: u64 = 32;
/// A train takes this long at the present rate, and has 2 to 16 packets.
const TRAIN_TIME: f64 = 1e-3;
const LONGEST_TRAIN: u64 = 16;
/// Trains that told nothing, until there is no further one.
const FAILURES: u32 = 3;

impl Connection {
    /// Writes the next datagram to `out`, if one may leave.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>, pool: &Pool) -> bool {
        let (connection, rtt) = (self.id, self.rtt.to_send());
        let body = if let Some(code) = self.owe_close.take() {
            Some(Body::Close { code })
        } else {
            let params = self.params();
            match &mut self.state {
                State::Connecting(handshake) => handshake.poll(now, self.rtt.measured(), params),
                State::Closed(_) => None,
                State::Established | State::Lingering(_) => {
                    let start_echo = std::mem::take(&mut self.owe_start_echo);
                    start_echo.then_some(Body::StartEcho { params }).or_else(|| self.poll_ping(now))
                }
            }
        };
        if let Some(body) = body {
            self.liveness.on_sent(now);
            Packet { connection, rtt, body }.encode(out);
            return true;
        }
        if !self.is_established() {
            return false;
        }
        let (size, repeat) = (self.packet_size, self.repeat());
        if let Some(report) = self.receive.poll_report(now, size, repeat, pool) {
            self.liveness.on_sent(now);
            Packet { connection, rtt, body: Body::Report(report) }.encode(out);
            return true;
        }
        self.poll_data(now, out)
    }

    /// A packet that was asked for is asked for again after this.
    fn repeat(&mut self) -> Duration {
        let trip = self.rtt.of_receiver();
        let gap = self.receive.arrivals().shortest_gap().unwrap_or(Duration::ZERO);
        trip * 5 / 4 + gap * 2 + Duration::from_millis(10)
    }

    fn poll_ping(&mut self, now: Instant) -> Option<Body<'static>> {
        if !self.liveness.poll_ping(now) {
            return None;
        }
        let (next, sent) = (self.send.next_number() as u32, (now.as_nanos() / 1_000) as u32);
        Some(Body::Ping { next, sent })
    }

    /// When a data packet may leave; `None` while there is none, or none may.
    pub(super) fn data_at(&self) -> Option<Instant> {
        if !self.is_established() || self.liveness.is_stalled() || !self.send.has_packet() {
            return None;
        }
        match self.probe {
            Probe::Sent { until, .. } if self.pacing.train.0 == 0 => Some(until),
            _ if self.pacing.train.0 > 0 => Some(Instant::ZERO),
            _ => Some(self.pacing.next),
        }
    }

    fn poll_data(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        if self.data_at().is_none_or(|at| at > now) {
            if !self.send.has_packet() {
                self.pacing.train.0 = 0;
            }
            if self.data_at() == Some(self.pacing.next) {
                self.pacing.awaited = self.pacing.next;
            }
            self.pacing.idle |= self.pacing.next <= now;
            return false;
        }
        self.end_probe();
        if self.pacing.train.0 == 0 {
            self.begin_train(now);
        }
        let Some(packet) = self.send.take(now) else { return false };
        let (left, count) = self.pacing.train;
        let train = Train::place(left, count);
        self.pacing.train.0 = left.saturating_sub(1);
        self.pacing.since_train += 1;
        let slept = self.pacing.awaited == self.pacing.next;
        let slack = if slept { SLACK.max(self.gap(self.packet_bits()) * OWED) } else { SLACK };
        let late = now.since(self.pacing.next) > slack;
        let pause = (self.pacing.idle || late) && matches!(train, Train::No | Train::First);
        if self.rate.take_restart() {
            (self.changed, self.rate_bit) = (packet.transmission, !self.rate_bit);
        }
        // It turns once, however many cuts there were since the last packet left.
        self.cut_bit ^= packet.transmission == self.cut;
        let data = Data {
            number: packet.number as u32,
            transmission: packet.transmission as u32,
            sent: (now.as_nanos() / 1_000) as u32,
            fin: packet.fin,
            pause,
            rate_bit: self.rate_bit,
            cut_bit: self.cut_bit,
            train,
            nonce: packet.nonce,
            payload: &packet.payload,
        };
        let rtt = self.rtt.to_send();
        let length = Packet { connection: self.id, rtt, body: Body::Data(data) }.encode(out);
        self.on_sent(now, length, pause);
        true
    }

    fn on_sent(&mut self, now: Instant, length: usize, pause: bool) {
        self.liveness.on_data_sent(now, self.send.outstanding() == 1);
        self.sent_packets += 1;
        let bits = ((length + self.overhead()) * 8) as f64;
        let base = if pause { now.max(self.pacing.next) } else { self.pacing.next };
        self.pacing.next = base + self.gap(bits);
        self.pacing.idle = false;
    }

    /// How long so many bits take at the present rate.
    fn gap(&self, bits: f64) -> Duration {
        Duration::from_secs_f64(bits / self.rate.rate())
    }

    /// A probe that nothing was told of in time has failed.
    fn end_probe(&mut self) {
        if let Probe::Sent { failures, .. } = self.probe
            && self.pacing.train.0 == 0
        {
            self.probe = if failures + 1 >= FAILURES {
                self.rate.give_up_probing();
                Probe::Done
            } else {
                Probe::Wanted(failures + 1)
            };
        }
    }

    /// Begins a train where one is due and there is enough to send.
    fn begin_train(&mut self, now: Instant) {
        let count = match self.probe {
            Probe::Wanted(_) => 2,
            Probe::Longer(_) => LONGEST_TRAIN,
            Probe::Sent { .. } => return,
            Probe::Done if self.pacing.since_train < TRAIN_EVERY => return,
            Probe::Done => {
                let packets = TRAIN_TIME * self.rate.rate() / self.packet_bits();
                (packets.ceil() as u64 + 1).clamp(2, LONGEST_TRAIN)
            }
        };
        let enough = self.send.has_train(count);
        let until = now + self.rtt.patience();
        match self.probe {
            Probe::Longer(pair) if !enough => {
                // The pair has to do.
                self.probe = Probe::Done;
                self.rate.on_train(pair, self.packet_bits());
            }
            Probe::Wanted(failures) if enough => {
                self.probe = Probe::Sent { until, failures, longer: false };
            }
            Probe::Longer(_) => self.probe = Probe::Sent { until, failures: 0, longer: true },
            _ => {}
        }
        if enough {
            self.pacing = Pacing { train: (count, count), since_train: 0, ..self.pacing };
        }
    }
}
