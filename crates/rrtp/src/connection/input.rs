//! What a packet changes.

use std::time::Duration;

use airtcp_types::Instant;

use super::{Around, CLOSE_REFUSED, CLOSE_UNKNOWN, Connection, State};
use crate::config::NetworkKind;
use crate::error::ConnectionError;
use crate::gaps::EPOCH;
use crate::rate::{EpochView, SEVERE};
use crate::receive::Taken;
use crate::send::Untrue;
use crate::wire::{Body, Cookie, Counts, Data, Feedback, Packet, Params, Report, expand};

/// The share that an epoch has in the measured loss rate.
const LOSS_WEIGHT: f64 = 0.05;
/// Where no more of an epoch was lost than twice what the link loses anyway, or than so many standard deviations above
/// it, that was no congestion.
const DEVIATIONS: f64 = 2.0;
/// What a link can lose by itself, as far as that goes: a flow that met a full queue from its first packet on takes all
/// losses for the link's.
const LINK_LOSS: f64 = 0.05;

impl Connection {
    /// Takes a packet of this connection that came from its peer.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        around: &mut Around<'_>,
    ) {
        self.rtt.on_packet(packet.rtt);
        let expected = match packet.body {
            Body::SynEcho { cookie, echo } => self.on_syn_echo(now, cookie, echo),
            Body::StartEcho { params } => self.on_start_echo(now, params),
            Body::Close { code } => self.on_close(code),
            Body::Data(data) if self.is_established() => {
                self.liveness.on_packet(now);
                self.on_data(now, &data, around);
                true
            }
            Body::Report(report) if self.is_established() => {
                self.liveness.on_packet(now);
                self.on_report(now, &report, around);
                true
            }
            Body::Ping { next, sent } if self.is_established() => {
                self.liveness.on_packet(now);
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
            let talks = matches!(packet.body, Body::Data(_) | Body::Report(_) | Body::Ping { .. });
            if talks && matches!(self.state, State::Closed(Some(_))) {
                // It has not heard yet.
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
            self.news.connected = true;
        }
        expected
    }

    fn on_close(&mut self, code: u8) -> bool {
        let error = match (self.state, code) {
            // Whoever lingers has everything, and so has the peer.
            (State::Lingering(_), _) => None,
            (State::Closed(_), _) => return false,
            (_, CLOSE_REFUSED) => Some(ConnectionError::Refused),
            (_, CLOSE_UNKNOWN) => Some(ConnectionError::Unknown),
            _ => Some(ConnectionError::Aborted),
        };
        self.close(error);
        true
    }

    /// The peer's answer is in another version.
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
        let told = match self.send.on_report(now, report, self.rtt.measured().rto()) {
            Ok(told) => told,
            Err(Untrue::Implausible) => {
                around.counters.implausible += 1;
                return;
            }
            Err(Untrue::Unreceived) => {
                around.counters.optimistic_acks += 1;
                return self.give_up(ConnectionError::FalseAck);
            }
        };
        if let Some((echo, held)) = report.echo {
            self.rtt.on_echo(now, echo, held);
        }
        if self.liveness.on_report(now, told.acknowledged > 0) {
            self.rate.on_stall_over(self.packet_bits());
            self.changed = self.send.next_transmission();
            self.acquit();
        }
        self.accused |= told.congestive.is_some_and(|transmission| transmission >= self.cut);
        if let Some(feedback) = &report.feedback {
            let known = expand(self.send.next_transmission(), report.newest) + 1;
            if known > self.judged {
                self.judged = known;
                if !self.on_feedback(now, feedback) {
                    around.counters.implausible += 1;
                }
            }
        }
    }

    /// `false` if it cannot be.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) -> bool {
        let bits = self.packet_bits();
        if let Some(gap) = feedback.train_gap {
            let rate = bits / (f64::from(gap.max(1)) * 1e-9);
            if self.probing.on_train(rate, Duration::from_nanos(gap.into())) {
                self.rate.on_train(rate, bits);
            }
        }
        // Without an epoch its losses are still to come.
        if feedback.send_gap == 0 || feedback.receive_gap == 0 {
            return true;
        }
        let next = self.send.next_transmission();
        let since = expand(next, feedback.since);
        let begun = feedback.counts.begun_in_full(next, (self.counts.begun, self.begun));
        let Some(epoch) = feedback.counts.since(&self.counts) else { return false };
        if since >= self.judged || begun >= self.judged {
            return false;
        }
        (self.counts, self.begun) = (feedback.counts, begun);
        let congestive = if since >= self.cut && begun < self.cut {
            // Of two turns of the bit it has seen none, and counts from before a cut: it is to turn again.
            self.acquit();
            0.0
        } else {
            self.on_losses(&epoch, since)
        };
        let rate = |gap: u32| bits / (f64::from(gap) * 1e-9);
        self.rate.on_epoch(&EpochView {
            at: now,
            send_rate: rate(feedback.send_gap),
            receive_rate: rate(feedback.receive_gap),
            congested: feedback.congested,
            congestive,
            fresh: since >= self.changed,
            rtt: self.rtt.of_sender(),
            packet: bits,
        });
        true
    }

    /// Gives the share of an epoch that was lost to congestion.
    fn on_losses(&mut self, epoch: &Counts, since: u64) -> f64 {
        let mut congestive = epoch.congestive;
        let lost = congestive.saturating_add(epoch.wireless);
        let count = epoch.received.saturating_add(lost);
        let share = |part: u32| (f64::from(part) / f64::from(count.max(1))).min(1.0);
        self.loss_rate += (share(lost) - self.loss_rate) * LOSS_WEIGHT;
        let drowned =
            self.config.kind == NetworkKind::General && count >= EPOCH && share(lost) > SEVERE;
        if drowned && since >= self.cut {
            // Congestion, whatever the verdicts: a flow that met a full queue from its first packet on knows no shorter trip
            // and takes all losses for the link's.
            (congestive, self.accused) = (lost, true);
        }
        if congestive == 0 && !drowned {
            self.link_loss += (share(lost) - self.link_loss) * LOSS_WEIGHT;
        }
        if std::mem::take(&mut self.accused) && is_congestion(congestive, count, self.link_loss) {
            self.rate.on_congestive_losses(self.packet_bits());
            self.acquit();
        }
        share(congestive)
    }

    fn linger_if_done(&mut self, now: Instant) {
        if self.state == State::Established && self.send.is_done() && self.receive.is_complete() {
            self.state = State::Lingering(now + self.linger());
        }
    }
}

/// Whether so many of `count` packets are more than a link that loses such a share, and chance, make of it.
fn is_congestion(lost: u32, count: u32, link_loss: f64) -> bool {
    let usual = f64::from(count) * link_loss.min(LINK_LOSS);
    f64::from(lost) > usual + usual.max(DEVIATIONS * usual.sqrt())
}

impl Counts {
    /// The first one's number, `next` being the next transmission's. The `last` one heard of, and in full, may be longer ago
    /// than 32 bits tell.
    fn begun_in_full(&self, next: u64, last: (u32, u64)) -> u64 {
        if self.begun == last.0 { last.1 } else { expand(next, self.begun) }
    }

    /// What has come to it since `before`; `None` if something was taken back.
    fn since(&self, before: &Self) -> Option<Self> {
        let before = if self.begun == before.begun { *before } else { Self::default() };
        let grown =
            |now: u32, before: u32| Some(now.wrapping_sub(before)).filter(|by| by >> 31 == 0);
        Some(Self {
            begun: self.begun,
            congestive: grown(self.congestive, before.congestive)?,
            wireless: grown(self.wireless, before.wireless)?,
            received: grown(self.received, before.received)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_makes_of_a_link_that_loses_is_no_congestion() {
        for (lost, count, link_loss, expected) in [
            (0, 32, 0.0, false),
            // A link that never lost anything.
            (1, 32, 0.0, true),
            // One or two of 32 come by chance where one of 50 is lost, and three hardly.
            (2, 32, 0.02, false),
            (3, 32, 0.02, true),
            // Twice the usual, where chance makes less.
            (40, 1_000, 0.02, false),
            (41, 1_000, 0.02, true),
            // No link is believed to lose half.
            (16, 32, 0.5, true),
        ] {
            assert_eq!(is_congestion(lost, count, link_loss), expected, "{lost} {count}");
        }
    }

    #[test]
    fn counts_are_sums_until_a_cut_and_are_never_taken_back() {
        let counts = |begun, congestive, wireless, received| Counts {
            begun,
            congestive,
            wireless,
            received,
        };
        let before = counts(7, 2, u32::MAX, 10);
        assert_eq!(counts(7, 5, 1, 30).since(&before), Some(counts(7, 3, 2, 20)));
        assert_eq!(counts(9, 5, 1, 30).since(&before), Some(counts(9, 5, 1, 30)));
        assert_eq!(counts(7, 2, u32::MAX, 9).since(&before), None);
        // 0 is where it all began, whatever has left since; 7 is of this turn of the numbers.
        let next = 3 << 30;
        assert_eq!(counts(0, 0, 0, 1).begun_in_full(next, (0, 0)), 0);
        assert_eq!(counts(next as u32 - 7, 0, 0, 1).begun_in_full(next, (0, 0)), next - 7);
        assert_eq!(counts(7, 0, 0, 1).begun_in_full(1 << 32, (9, 9)), (1 << 32) + 7);
    }
}
