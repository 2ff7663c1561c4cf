//! Demultiplexing of TCP segments to connections, listeners and TIME-WAIT.

use std::net::SocketAddr;

use airtcp_types::{ByteCount, FlowId, Instant, Packet, SeqNumber};
use airtcp_wire::checksum::verify_transport_of;
use airtcp_wire::header_checksum::verify_header;
use airtcp_wire::ip::{self, Datagram};
use airtcp_wire::options::TcpOptions;
use airtcp_wire::run;
use airtcp_wire::tcp::{self, Flags, Header, Segment};
use tracing::debug;

use crate::tcp::{Connection, State};

use super::{Host, Kind, Owner, Reported, Socket, SocketId, TcpSocket};

/// The owner of a segment.
enum Found {
    Connection(SocketId),
    /// A connection at a listener whose handshake is not complete.
    HalfOpen(SocketId),
    /// A SYN that is held until the program accepts it.
    Pending(SocketId),
    /// A connection in TIME-WAIT that the application has closed.
    TimeWait(SocketId),
    /// No socket. If a connection had the 4-tuple until now, `after` is its SND.NXT.
    Nobody {
        after: Option<SeqNumber>,
    },
    /// The SYN would replace a connection in TIME-WAIT, but its listener has no room.
    NoRoom,
}

impl Host {
    pub(super) fn on_tcp(
        &mut self,
        now: Instant,
        datagram: &Datagram<'_>,
        verify: bool,
        packet: &Packet,
    ) {
        self.counters.tcp_in_segs += 1;
        let (src, dst, bytes) = (datagram.src, datagram.dst, datagram.payload);
        let (src_port, dst_port, mut segment) = match tcp::parse(bytes) {
            Ok(parsed) => parsed,
            Err(error) => {
                debug!(%src, %error, "segment dropped");
                self.counters.tcp_in_errs += 1;
                return;
            }
        };
        let flow = FlowId {
            local: SocketAddr::new(dst, dst_port),
            remote: SocketAddr::new(src, src_port),
        };
        segment.payload = segment.payload.followed_by(&packet.tail);
        segment.size = packet.segment_size;
        segment.ecn = datagram.ecn;
        let more = u64::from(segment.count() - 1);
        self.counters.tcp_in_segs += more;
        if datagram.ecn == ip::CE {
            self.counters.ip_ext_in_ce_pkts += more;
        }
        if verify && !verify_transport_of(src, dst, ip::TCP, bytes, &packet.tail) {
            debug!(remote = %flow.remote, "segment dropped: bad checksum");
            self.counters.tcp_in_csum_errors += 1;
            self.counters.tcp_in_errs += 1;
            if segment.options.hack.is_some() {
                self.on_corrupted(now, &flow, &segment, verify_header(src, dst, bytes));
            }
            return;
        }
        let malformed = if segment.options.malformed > 0 { u64::from(segment.count()) } else { 0 };
        if malformed > 0 {
            debug!(remote = %flow.remote, "malformed TCP options ignored");
            self.counters.tcp_ext_bad_options += malformed;
        }
        let offloaded = !verify || self.config.checksum_offload;
        if offloaded && segment.flags.syn && segment.options.hack.take().is_some() {
            // A device that verifies checksums drops corrupted packets: HACK would never see them.
            self.counters.tcp_ext_hack_offloaded += 1;
        }
        let after = match self.connection_for(now, &flow, &segment) {
            Found::Nobody { after } => after,
            Found::NoRoom => return,
            Found::TimeWait(id) => {
                self.on_time_wait_segment(now, id, &segment);
                return;
            }
            Found::Pending(id) => {
                self.on_pending_segment(id, &segment);
                return;
            }
            Found::HalfOpen(id) if self.on_late_cookie(now, id, &segment) => return,
            Found::HalfOpen(id) | Found::Connection(id) => {
                self.deliver(now, id, &segment);
                return;
            }
        };
        let listener = self.listener_at(flow.local);
        let may_be_a_siblings = after.is_none() && self.is_astray(now, listener, &flow, &segment);
        if may_be_a_siblings && self.pass_on(packet) {
            // The sibling that takes the packet counts it.
            self.counters.tcp_in_segs -= u64::from(segment.count());
            self.counters.tcp_ext_bad_options -= malformed;
            return;
        }
        if let Some(listener) = listener {
            self.on_listen(now, listener, flow, &segment, after);
        } else {
            self.refuse(&flow, &segment);
        }
    }

    /// Passes a segment to its connection.
    fn deliver(&mut self, now: Instant, id: SocketId, segment: &Segment<'_>) {
        let may_challenge = self.may_challenge(now);
        let before = self.counters.tcp_ext_challenge_ack;
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get_mut(id) else {
            return;
        };
        let left = self.peers.memory_left(&self.config, self.held, tcp.peer);
        tcp.connection.set_memory_pressure(left == ByteCount::ZERO);
        tcp.connection.set_may_challenge(may_challenge);
        tcp.connection.set_out_of_order_room(self.peers.room(&self.config, tcp.peer));
        tcp.connection.on_segment(now, segment, &mut self.counters);
        self.challenges.spend(self.counters.tcp_ext_challenge_ack - before);
        self.touch(now, id);
    }

    /// Processes the packets of a run as one segment, if it is the next of its connection; returns
    /// the number of packets processed. Packets beyond the window or the memory limit, and those
    /// after a wrong checksum, are processed one by one.
    pub(super) fn on_run(&mut self, now: Instant, packets: &[Packet]) -> usize {
        let Some((first, later)) = packets.split_first() else { return 0 };
        let Ok(datagram) = ip::parse(&first.data) else { return 0 };
        let Ok((src_port, dst_port, mut segment)) = tcp::parse(datagram.payload) else { return 0 };
        let flow = FlowId {
            local: SocketAddr::new(datagram.dst, dst_port),
            remote: SocketAddr::new(datagram.src, src_port),
        };
        let Some(&id) = self.flows.get(&flow) else { return 0 };
        let Some(Socket { kind: Kind::Tcp(tcp), .. }) = self.sockets.get(id) else { return 0 };
        let left = self.peers.memory_left(&self.config, self.held, tcp.peer);
        let room = tcp.connection.room_for_run(now, &segment).min(left);
        let fit = room.as_usize() / segment.payload.len().max(1);
        let count = packets.iter().take(fit).take_while(|packet| run::is_sound(packet)).count();
        if count == 0 {
            return 0;
        }
        let headers = first.data.len() - segment.payload.len();
        segment.size = u16::try_from(segment.payload.len()).ok();
        segment.ecn = datagram.ecn;
        segment.payload = segment.payload.followed_by_packets(&later[..count - 1], headers);
        let counters = &mut self.counters;
        let (receives, delivers) = match datagram.dst.is_ipv4() {
            true => (&mut counters.ip_in_receives, &mut counters.ip_in_delivers),
            false => (&mut counters.ip6_in_receives, &mut counters.ip6_in_delivers),
        };
        for counter in [receives, delivers, &mut counters.tcp_in_segs] {
            *counter += count as u64;
        }
        if datagram.ecn == ip::CE {
            counters.ip_ext_in_ce_pkts += count as u64;
        }
        self.deliver(now, id, &segment);
        count
    }

    /// Handles a segment with corrupted data (HACK 3.2). Its connection is searched only if the
    /// header is intact, and the only effect is a special ACK.
    fn on_corrupted(
        &mut self,
        now: Instant,
        flow: &FlowId,
        segment: &Segment<'_>,
        header_is_good: bool,
    ) {
        if !header_is_good {
            self.counters.tcp_ext_hack_hdr_errors += 1;
            return;
        }
        let id = self.flows.get(flow).copied();
        let socket = id.and_then(|id| Some((id, self.sockets.get_mut(id)?)));
        let Some((id, Socket { kind: Kind::Tcp(tcp), .. })) = socket else {
            self.counters.tcp_ext_hack_unanswered += 1;
            return;
        };
        if tcp.connection.on_corrupted(segment, &mut self.counters) {
            self.touch(now, id);
        }
    }

    /// Finds the connection of a segment. A connection that has ended, or is in TIME-WAIT and is
    /// replaced by this SYN, gives up its 4-tuple.
    fn connection_for(&mut self, now: Instant, flow: &FlowId, segment: &Segment<'_>) -> Found {
        let Some(&id) = self.flows.get(flow) else { return Found::Nobody { after: None } };
        // Whether the old connection is in TIME-WAIT, and its SND.NXT.
        let (waits, next) = match self.sockets.get(id).map(|socket| &socket.kind) {
            Some(Kind::Tcp(tcp)) => {
                let waits = segment.flags.syn && tcp.connection.may_be_replaced(segment);
                if !waits && tcp.connection.state() != State::Closed {
                    let is_half_open = matches!(tcp.owner, Owner::HalfOpen(_));
                    return if is_half_open { Found::HalfOpen(id) } else { Found::Connection(id) };
                }
                (waits, tcp.connection.snd_nxt())
            }
            Some(Kind::TimeWait(socket)) => {
                if !socket.wait.may_be_replaced(segment) {
                    return Found::TimeWait(id);
                }
                (true, socket.wait.snd_nxt())
            }
            Some(Kind::Pending(_)) => return Found::Pending(id),
            _ => return Found::Nobody { after: None },
        };
        if waits {
            let Some(listener) = self.listener_at(flow.local) else {
                let is_held = self.tcp_socket(id).is_some();
                return if is_held { Found::Connection(id) } else { Found::TimeWait(id) };
            };
            // A cookie cannot have a number above those of the previous connection.
            if self.turns_away(listener, flow) {
                return Found::NoRoom;
            }
            if self.is_crowded(listener, flow.remote.ip()) {
                self.drop_syn(flow);
                return Found::NoRoom;
            }
            debug!(remote = %flow.remote, "connection in TIME-WAIT replaced by new SYN");
            self.counters.tcp_ext_tw_recycled += 1;
            match self.tcp_socket(id) {
                // Its last packet may not have been sent.
                Some(tcp) if tcp.owner == Owner::Nobody => self.remove(id),
                Some(_) => {}
                None => self.end_time_wait(now, id),
            }
        }
        self.flows.remove(flow);
        Found::Nobody { after: Some(next) }
    }

    /// Whether the host's limit allows another challenge ACK now.
    pub(super) fn may_challenge(&mut self, now: Instant) -> bool {
        self.challenges.allow(&self.secret, now, self.config.challenge_acks)
    }

    /// Adds a new connection to the host's tables.
    pub(super) fn adopt(
        &mut self,
        now: Instant,
        mut connection: Connection,
        owner: Owner,
    ) -> SocketId {
        let (flow, state) = (connection.flow(), connection.state());
        if let Some(mtu) = self.path_mtus.get(now, flow.remote.ip()) {
            connection.on_path_mtu(now, mtu);
        }
        if connection.shares_path() {
            connection.begin_with(now, &self.paths.get(now, flow.remote.ip()));
        }
        let tcp = TcpSocket {
            connection,
            owner,
            peer: self.peers.enter(flow.remote.ip()),
            dirty: false,
            touched: false,
            armed: None,
            held: ByteCount::ZERO,
            out_of_order: ByteCount::ZERO,
            state,
            reported: Reported::default(),
        };
        let id = self.sockets.insert(Socket::new(Kind::Tcp(Box::new(tcp))));
        self.flows.insert(flow, id);
        id
    }

    /// Answers a segment without a connection with a RST (RFC 9293 section 3.10.7.1).
    pub(super) fn refuse(&mut self, flow: &FlowId, segment: &Segment<'_>) {
        if segment.flags.rst {
            return;
        }
        let (seq, ack) = if segment.flags.ack {
            (segment.ack, None)
        } else {
            (SeqNumber(0), Some(segment.seq + segment.len()))
        };
        let header = Header {
            seq,
            ack,
            flags: Flags { rst: true, ..Flags::default() },
            window: 0,
            options: TcpOptions::default(),
        };
        let packet = tcp::emit(flow, self.config.hop_limit, &header, &[]);
        if self.queue(packet) {
            self.counters.tcp_out_segs += 1;
            self.counters.tcp_out_rsts += 1;
        }
    }
}
