//! Sending of packets.

use airtcp_types::Instant;

use super::probing::Outcome;
use super::{Connection, State};
use crate::pool::Pool;
use crate::wire::{Body, Data, Packet, Train};

impl Connection {
    /// Appends the next datagram to `out`, if one may leave; returns whether it did.
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
            self.liveness.on_sent(now, false);
            Packet { connection, rtt, body }.encode(out);
            return true;
        }
        if !self.is_established() {
            return false;
        }
        let (size, repeat) = (self.packet_size, self.receive.repeat(self.rtt.of_receiver()));
        if let Some(report) = self.receive.poll_report(now, size, repeat, pool) {
            self.liveness.on_sent(now, false);
            Packet { connection, rtt, body: Body::Report(report) }.encode(out);
            return true;
        }
        self.poll_data(now, out)
    }

    fn poll_ping(&mut self, now: Instant) -> Option<Body<'static>> {
        if !self.liveness.poll_ping(now) {
            return None;
        }
        let (next, sent) = (self.send.next_number() as u32, (now.as_nanos() / 1_000) as u32);
        Some(Body::Ping { next, sent })
    }

    /// Returns when a data packet may leave; `None` if there is none, or none is allowed.
    pub(super) fn data_at(&self) -> Option<Instant> {
        if !self.is_established() || self.liveness.is_stalled() || !self.send.has_packet() {
            return None;
        }
        Some(self.probing.data_at(self.pacing.next()))
    }

    fn poll_data(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let at = self.data_at();
        if at.is_none_or(|at| at > now) {
            if !self.send.has_packet() {
                self.probing.end_train();
            }
            self.pacing.on_wait(now, at);
            return false;
        }
        let (until, full) = (now + self.rtt.pto(), self.packet_bits());
        let has_train = |count| self.send.has_train(count);
        match self.probing.begin_train(until, (self.rate.rate(), full), has_train) {
            Some(Outcome::GivenUp) => self.rate.give_up_probing(),
            Some(Outcome::Pair(rate)) => self.rate.on_train(rate, full),
            None => {}
        }
        let Some(packet) = self.send.take(now) else { return false };
        let train = self.probing.on_data_sent();
        let pause = matches!(train, Train::No | Train::First)
            && self.pacing.is_pause(now, self.rate.gap(full));
        let data = Data {
            number: packet.number as u32,
            transmission: packet.transmission as u32,
            sent: (now.as_nanos() / 1_000) as u32,
            fin: packet.fin,
            pause,
            rate_bit: self.epochs.on_data_sent(packet.transmission, self.rate.take_restart()),
            recovery_bit: self.losses.on_data_sent(packet.transmission),
            train,
            nonce: packet.nonce,
            payload: &packet.payload,
        };
        let (connection, rtt) = (self.id, self.rtt.to_send());
        let length = Packet { connection, rtt, body: Body::Data(data) }.encode(out);
        let gap = self.rate.gap(((length + self.overhead()) * 8) as f64);
        self.pacing.on_data_sent(now, gap, pause);
        self.liveness.on_sent(now, self.send.outstanding() == 1);
        true
    }
}
