//! ICMP and ICMPv6: echo replies, errors for connections, and errors to senders.

use std::net::IpAddr;

use airtcp_types::{Instant, Packet};
use airtcp_wire::ParseError;
use airtcp_wire::icmp::{self, Complaint, Message, Quote, Reason};
use airtcp_wire::ip::{self, Datagram};
use tracing::debug;

use crate::counters::Counters;
use crate::tcp::Unreachable;

use super::outbox::MAX_WAITING;
use super::{Host, SocketId, path_mtu};

/// The rate limit of a kind of messages.
#[derive(Debug)]
pub(super) struct Allowance {
    /// The maximum number of messages in a row, and the interval after which another is allowed, in
    /// nanoseconds.
    burst: u64,
    pause: u64,
    /// The time that sent messages have used and that has not passed yet, in nanoseconds.
    debt: u64,
    /// The time when `debt` was computed.
    at: Instant,
}

impl Allowance {
    /// The limit of errors: Linux's `icmp_msgs_burst` and `icmp_msgs_per_sec`; RFC 4443 section 2.4
    /// (f) requires a limit.
    pub(super) const ERRORS: Self = Self::new(50, 1_000);
    /// The limit of echo replies, which Linux does not limit: half of the queue of the host's own
    /// packets, and about the rate of one `ping -f`. A flood leaves the other pings only a share of
    /// it.
    pub(super) const ECHOES: Self = Self::new(MAX_WAITING as u64 / 2, 10_000);

    const fn new(burst: u64, per_second: u64) -> Self {
        Self { burst, pause: 1_000_000_000 / per_second, debt: 0, at: Instant::ZERO }
    }

    fn take(&mut self, now: Instant) -> bool {
        let passed = now.as_nanos().saturating_sub(self.at.as_nanos());
        self.debt = self.debt.saturating_sub(passed);
        self.at = now;
        let allowed = self.debt + self.pause <= self.burst * self.pause;
        if allowed {
            self.debt += self.pause;
        }
        allowed
    }
}

impl Host {
    pub(super) fn on_icmp(&mut self, now: Instant, datagram: &Datagram<'_>, packet: &Packet) {
        let v4 = datagram.dst.is_ipv4();
        let parsed = icmp::parse(datagram);
        if parsed.is_ok_and(|message| self.matches_no_socket(message)) && self.pass_on(packet) {
            return;
        }
        match v4 {
            true => count_v4(&mut self.counters, &parsed),
            false => count_v6(&mut self.counters, &parsed),
        }
        if parsed.is_ok_and(|message| self.on_message(now, datagram, message)) {
            let counters = &mut self.counters;
            let (sent, replies) = match v4 {
                true => (&mut counters.icmp_out_msgs, &mut counters.icmp_out_echo_reps),
                false => (&mut counters.icmp6_out_msgs, &mut counters.icmp6_out_echo_replies),
            };
            *sent += 1;
            *replies += 1;
        }
    }

    /// Handles a message; returns whether it was answered.
    fn on_message(&mut self, now: Instant, datagram: &Datagram<'_>, message: Message<'_>) -> bool {
        match message {
            Message::Echo(_) if !self.config.is_own(datagram.dst) => {
                debug!(dst = %datagram.dst, "echo request ignored: not an address of this host");
            }
            Message::Echo(echoed) => {
                let (v4, remote) = (datagram.dst.is_ipv4(), datagram.src);
                let hop_limit = self.config.hop_limit;
                let reply = icmp::emit_echo_reply(datagram.dst, datagram.src, hop_limit, echoed);
                // The reply to a reassembled request would have to be fragmented.
                if reply.len() > usize::from(self.config.packet_limit()) {
                    match v4 {
                        true => self.counters.ip_frag_fails += 1,
                        false => self.counters.ip6_frag_fails += 1,
                    }
                    return false;
                }
                if !self.outbox.has_room(v4, &mut self.counters) {
                    return false;
                }
                if !self.echoes.take(now) {
                    debug!(%remote, "echo request ignored: rate limit reached");
                    match v4 {
                        true => self.counters.icmp_out_rate_limit_echo += 1,
                        false => self.counters.icmp6_out_rate_limit_echo += 1,
                    }
                    return false;
                }
                return self.queue(reply);
            }
            Message::Error { reason, quoted } => {
                let v4 = datagram.dst.is_ipv4();
                self.on_error(now, v4, reason, quoted);
            }
            Message::EchoReply | Message::Other => {}
        }
        false
    }

    /// Passes an ICMP error to its connection. An error is accepted only if it quotes an
    /// outstanding segment.
    fn on_error(&mut self, now: Instant, v4: bool, reason: Reason, quoted: &[u8]) {
        let error = match reason {
            Reason::Network => Some(Unreachable::Network),
            Reason::Host | Reason::HopLimit => Some(Unreachable::Host),
            Reason::Prohibited => Some(Unreachable::Prohibited),
            Reason::Protocol => Some(Unreachable::Protocol),
            Reason::Port => Some(Unreachable::Port),
            Reason::TooBig(_) => None,
            Reason::Parameter => {
                // The error says nothing about the path.
                debug!(v4, "ICMP Parameter Problem ignored");
                return;
            }
        };
        let Some(quote) = icmp::parse_quote(quoted) else {
            self.count_error_without_socket(v4);
            return;
        };
        if quote.protocol == ip::UDP {
            self.on_error_about_udp(v4, &quote, error);
            return;
        }
        let Some(&id) = self.flows.get(&quote.flow) else {
            self.count_error_without_socket(v4);
            return;
        };
        let tcp = self.tcp_socket(id).filter(|tcp| tcp.connection.is_outstanding(quote.seq));
        let Some(tcp) = tcp else {
            debug!(
                remote = %quote.flow.remote,
                ?reason,
                "ICMP error ignored: segment not outstanding"
            );
            self.counters.tcp_ext_out_of_window_icmps += 1;
            return;
        };
        debug!(remote = %quote.flow.remote, ?reason, "ICMP error received");
        match (reason, error) {
            (Reason::TooBig(next_hop), _) => self.on_too_big(now, id, &quote, next_hop),
            (_, Some(error)) => {
                tcp.connection.on_unreachable(now, error);
                self.touch(now, id);
            }
            _ => {}
        }
    }

    /// Handles an error about a datagram; `None` means that the datagram was too large.
    fn on_error_about_udp(&mut self, v4: bool, quote: &Quote, error: Option<Unreachable>) {
        match error {
            Some(error) if !self.on_udp_unreachable(&quote.flow, error) => {
                self.count_error_without_socket(v4);
            }
            Some(_) => {}
            None => {
                debug!(remote = %quote.flow.remote, "ICMP error ignored: datagram above path MTU");
                self.counters.udp_pmtu_ignored += 1;
            }
        }
    }

    fn count_error_without_socket(&mut self, v4: bool) {
        debug!(v4, "ICMP error ignored: no matching socket");
        match v4 {
            true => self.counters.icmp_in_errors += 1,
            false => self.counters.icmp6_in_errors += 1,
        }
    }

    /// Reduces the packet size of a connection, and stores the path MTU for others.
    fn on_too_big(&mut self, now: Instant, id: SocketId, quote: &Quote, next_hop: u32) {
        let remote = quote.flow.remote;
        let Some(mtu) = path_mtu::believable(quote, next_hop) else {
            debug!(%remote, next_hop, packet = quote.len, "ICMP error ignored: invalid path MTU");
            self.counters.tcp_ext_pmtu_refused += 1;
            return;
        };
        let Some(tcp) = self.tcp_socket(id) else { return };
        // Packets in flight cause further messages, which report nothing new.
        if tcp.connection.on_path_mtu(now, mtu) {
            let mtu = tcp.connection.path_mtu();
            debug!(%remote, mtu, "path MTU reduced");
            self.counters.tcp_ext_pmtu_lowered += 1;
            self.path_mtus.learn(now, remote.ip(), mtu);
            self.touch(now, id);
        }
    }

    /// Sends an ICMP error to the sender of a packet, unless the rate limit is reached.
    ///
    /// `original` was sent by `remote` to `local`. Callers have checked that it is not an ICMP
    /// error, is not a fragment except the first, and was sent by one host to this host only (RFC
    /// 1122 section 3.2.2, RFC 4443 section 2.4 (e)).
    pub(super) fn complain(
        &mut self,
        now: Instant,
        remote: IpAddr,
        local: IpAddr,
        complaint: Complaint,
        original: &[u8],
    ) {
        let v4 = local.is_ipv4();
        if !self.outbox.has_room(v4, &mut self.counters) {
            return;
        }
        if !self.icmp_errors.take(now) {
            debug!(%remote, "ICMP error not sent: rate limit reached");
            match v4 {
                true => self.counters.icmp_out_rate_limit_host += 1,
                false => self.counters.icmp6_out_rate_limit_host += 1,
            }
            return;
        }
        let error = icmp::emit_error(local, remote, self.config.hop_limit, complaint, original);
        self.queue(error);
        let counters = &mut self.counters;
        *(if v4 { &mut counters.icmp_out_msgs } else { &mut counters.icmp6_out_msgs }) += 1;
        *match (v4, complaint) {
            (true, Complaint::Reassembly) => &mut counters.icmp_out_time_excds,
            (true, _) => &mut counters.icmp_out_dest_unreachs,
            (false, Complaint::Protocol { .. }) => &mut counters.icmp6_out_parm_problems,
            (false, Complaint::Reassembly) => &mut counters.icmp6_out_time_excds,
            (false, _) => &mut counters.icmp6_out_dest_unreachs,
        } += 1;
    }
}

fn count_v4(counters: &mut Counters, parsed: &Result<Message<'_>, ParseError>) {
    counters.icmp_in_msgs += 1;
    match parsed {
        Ok(Message::Echo(_)) => counters.icmp_in_echos += 1,
        Ok(Message::EchoReply) => counters.icmp_in_echo_reps += 1,
        Ok(Message::Error { reason, .. }) => match reason {
            Reason::HopLimit => counters.icmp_in_time_excds += 1,
            Reason::Parameter => counters.icmp_in_parm_probs += 1,
            _ => counters.icmp_in_dest_unreachs += 1,
        },
        Ok(Message::Other) => {}
        Err(error) => {
            debug!(%error, "ICMP message dropped");
            counters.icmp_in_errors += 1;
            counters.icmp_in_csum_errors += u64::from(*error == ParseError::Checksum);
        }
    }
}

fn count_v6(counters: &mut Counters, parsed: &Result<Message<'_>, ParseError>) {
    counters.icmp6_in_msgs += 1;
    match parsed {
        Ok(Message::Echo(_)) => counters.icmp6_in_echos += 1,
        Ok(Message::EchoReply) => counters.icmp6_in_echo_replies += 1,
        Ok(Message::Error { reason, .. }) => match reason {
            Reason::TooBig(_) => counters.icmp6_in_pkt_too_bigs += 1,
            Reason::HopLimit => counters.icmp6_in_time_excds += 1,
            // An unsupported protocol is an unrecognized Next Header (RFC 4443 section 3.4).
            Reason::Parameter | Reason::Protocol => counters.icmp6_in_parm_problems += 1,
            _ => counters.icmp6_in_dest_unreachs += 1,
        },
        Ok(Message::Other) => {}
        Err(error) => {
            debug!(%error, "ICMP message dropped");
            counters.icmp6_in_errors += 1;
            counters.icmp6_in_csum_errors += u64::from(*error == ParseError::Checksum);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn messages_come_in_bursts_and_then_at_a_rate() {
        for start in [Instant::ZERO, Instant::from_millis(5_000)] {
            let mut allowance = Allowance::new(50, 1_000);
            let burst = (0..1_000).filter(|_| allowance.take(start)).count();
            assert_eq!(burst, 50);
            let later = start + Duration::from_millis(10);
            assert_eq!((0..1_000).filter(|_| allowance.take(later)).count(), 10);
        }
    }
}
