//! Processing of received packets.

use std::time::Duration;

use airtcp_types::Instant;

use super::{Around, CLOSE_REFUSED, CLOSE_UNKNOWN, Connection, State};
use crate::error::ConnectionError;
use crate::rate::EpochView;
use crate::receive::Taken;
use crate::send::BadReport;
use crate::wire::{Body, Cookie, Data, Feedback, Packet, Params, Report, expand};

impl Connection {
    /// Processes a packet of this connection from its peer.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        around: &mut Around<'_>,
    ) {
        self.rtt.on_packet(packet.rtt);
        let talks = matches!(packet.body, Body::Data(_) | Body::Report(_) | Body::Ping { .. });
        let is_established = self.is_established();
        if talks && is_established {
            self.liveness.on_packet(now);
        }
        let expected = match packet.body {
            Body::SynEcho { cookie, echo } => self.on_syn_echo(now, cookie, echo),
            Body::StartEcho { params } => self.on_start_echo(now, params),
            Body::Close { code } => self.on_close(code),
            Body::Data(data) if is_established => {
                self.on_data(now, &data, around);
                true
            }
            Body::Report(report) if is_established => {
                self.on_report(now, &report, around);
                true
            }
            Body::Ping { next, sent } if is_established => {
                let rtt = self.rtt.of_receiver();
                if !self.receive.on_ping(now, next, sent, rtt, around.pool) {
                    around.counters.implausible += 1;
                }
                true
            }
            _ => false,
        };
        if !expected {
            around.counters.unexpected += 1;
            if talks && matches!(self.state, State::Closed(Some(_))) {
                // The peer has not received the CLOSE yet.
                self.owe_close = Some(super::CLOSE_ABORTED);
            }
        }
        self.linger_if_done(now);
    }

    fn on_syn_echo(&mut self, now: Instant, cookie: Cookie, echo: u32) -> bool {
        let State::Connecting(handshake) = &mut self.state else { return false };
        let sample = handshake.on_syn_echo(now, cookie, echo);
        sample.inspect(|sample| self.rtt.on_handshake(*sample)).is_some()
    }

    fn on_start_echo(&mut self, now: Instant, params: Params) -> bool {
        let expected =
            matches!(self.state, State::Connecting(handshake) if handshake.is_start_sent());
        if expected {
            self.establish(now, params);
            self.notices.on_connected();
        }
        expected
    }

    fn on_close(&mut self, code: u8) -> bool {
        let error = match (self.state, code) {
            // A lingering connection has sent and received everything, and so has its peer.
            (State::Lingering(_), _) => None,
            (State::Closed(_), _) => return false,
            (_, CLOSE_REFUSED) => Some(ConnectionError::Refused),
            (_, CLOSE_UNKNOWN) => Some(ConnectionError::Unknown),
            _ => Some(ConnectionError::Aborted),
        };
        self.close(error);
        true
    }

    /// Handles a response in another version.
    pub(crate) fn on_version(&mut self, theirs: u8) {
        if matches!(self.state, State::Connecting(_)) {
            self.close(Some(ConnectionError::Version { theirs }));
        }
    }

    fn on_data(&mut self, now: Instant, data: &Data<'_>, around: &mut Around<'_>) {
        let rtt = self.rtt.of_receiver();
        match self.receive.on_data(now, data, rtt, around.pool) {
            Taken::New => {
                if self.is_orphaned() {
                    if data.payload.is_empty() {
                        self.receive.discard(around.pool);
                    } else if matches!(self.state, State::Established) {
                        self.abort();
                    }
                }
            }
            Taken::Duplicate => around.counters.duplicates += 1,
            Taken::OverWindow => around.counters.over_window += 1,
            Taken::NoMemory => around.counters.no_memory += 1,
        }
    }

    fn on_report(&mut self, now: Instant, report: &Report<'_>, around: &mut Around<'_>) {
        let acked = match self.send.on_report(now, report, self.rtt.measured().rto()) {
            Ok(acked) => acked,
            Err(BadReport::Implausible) => {
                around.counters.implausible += 1;
                return;
            }
            Err(BadReport::Unreceived) => {
                around.counters.optimistic_acks += 1;
                return self.give_up(ConnectionError::FalseAck);
            }
        };
        if let Some((echo, held)) = report.echo {
            self.rtt.on_echo(now, echo, held);
        }
        if self.liveness.on_report(now, acked.acknowledged > 0) {
            self.rate.on_stall_over(self.packet_bits());
            self.on_rate();
        }
        self.losses.on_report(acked.congestive);
        if let Some(feedback) = &report.feedback {
            let newest = expand(self.send.next_transmission(), report.newest);
            if self.epochs.on_report(newest) && !self.on_feedback(now, feedback) {
                around.counters.implausible += 1;
            }
        }
    }

    /// Processes the measurements of a report; returns `false` if they are implausible.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) -> bool {
        let bits = self.packet_bits();
        if let Some(gap) = feedback.train_gap {
            let rate = bits / (f64::from(gap.max(1)) * 1e-9);
            if self.probing.on_train(rate, Duration::from_nanos(gap.into())) {
                self.rate.on_train(rate, bits);
            }
        }
        // Without an epoch there are no losses to judge yet.
        if feedback.send_gap == 0 || feedback.receive_gap == 0 {
            return true;
        }
        let next = self.send.next_transmission();
        let Some(epoch) = self.epochs.on_feedback(next, feedback) else { return false };
        let verdict = self.losses.on_epoch(&epoch, self.config.kind, next);
        if verdict.reduces {
            self.rate.on_congestive_losses(bits);
        }
        let rate = |gap: u32| bits / (f64::from(gap) * 1e-9);
        self.rate.on_epoch(&EpochView {
            at: now,
            send_rate: rate(feedback.send_gap),
            receive_rate: rate(feedback.receive_gap),
            congested: feedback.congested,
            congestive: verdict.congestive,
            fresh: epoch.fresh,
            rtt: self.rtt.of_sender(),
            packet: bits,
        });
        true
    }

    fn linger_if_done(&mut self, now: Instant) {
        if self.state == State::Established && self.send.is_done() && self.receive.is_complete() {
            self.state = State::Lingering(now + self.linger());
        }
    }
}
