//! Packets that no sane host would send.

use std::num::NonZeroU32;

use airtcp_types::Checksum;
use airtcp_wire::options::{AccEcn, Hack, HackAck, Order, TcpOptions, Timestamps, TxNumbers};
use proptest::prelude::*;

use super::*;
use crate::tcp::Offer;

/// Less than the number of strangers, so that the limit is reached.
const BACKLOG: usize = 2;
/// As many again may arrive by cookie and wait to be accepted.
const MOST: usize = 2 * BACKLOG;

/// A segment from one of four strangers' ports to the listener, or to a closed port.
#[derive(Clone, Debug)]
struct Odd {
    src_port: u16,
    to_listener: bool,
    header: Header,
    payload: usize,
    /// Offsets from the expected numbers of the connection, if the segment uses those.
    near: Option<(u32, u32)>,
    pause: u64,
}

/// Often the flags of an honest peer, so that connections are opened.
fn flags() -> impl Strategy<Value = Flags> {
    let any = any::<[bool; 8]>().prop_map(|[fin, syn, rst, psh, urg, ece, cwr, ae]| Flags {
        fin,
        syn,
        rst: rst && psh,
        psh,
        ack: false,
        urg,
        ece,
        cwr,
        ae,
    });
    let syn = Just(Flags { syn: true, ..Flags::default() });
    let fin = Just(Flags { fin: true, ..Flags::default() });
    prop_oneof![4 => Just(Flags::default()), 3 => syn, 1 => fin, 2 => any]
}

fn options() -> impl Strategy<Value = TcpOptions> {
    prop_oneof![2 => Just(TcpOptions::default()), 1 => any_options()]
}

fn any_options() -> impl Strategy<Value = TcpOptions> {
    let blocks = prop::collection::vec(any::<(u32, u32)>(), 0..=4);
    let timestamps = any::<Option<(u32, u32)>>();
    let extensions = any::<(Option<u16>, Option<u32>, Option<(u32, u32)>, Option<[u32; 3]>)>();
    (any::<(Option<u16>, Option<u8>, bool)>(), timestamps, blocks, extensions).prop_map(
        |((mss, window_scale, sack_permitted), timestamps, blocks, extensions)| TcpOptions {
            mss,
            window_scale,
            sack_permitted,
            timestamps: timestamps.map(|(val, ecr)| Timestamps { val, ecr }),
            sack: blocks.into_iter().map(|(a, b)| (SeqNumber(a), SeqNumber(b))).collect(),
            accecn: extensions.3.map(|counters| AccEcn::new(Order::Zero, &counters)),
            hack: extensions.0.map(|checksum| Hack { checksum, ..Hack::default() }),
            hack_ack: extensions
                .1
                .map(|seq| HackAck { corrupted: SeqNumber(seq), ..HackAck::default() }),
            tx_numbers: extensions.2.map(|(number, echo)| TxNumbers {
                number: NonZeroU32::new(number),
                echo: NonZeroU32::new(echo),
            }),
            unknown: 0,
            malformed: 0,
        },
    )
}

fn odd() -> impl Strategy<Value = Odd> {
    let numbers = (any::<u32>(), any::<Option<u32>>(), any::<u16>());
    let near = prop::option::weighted(
        0.8,
        (prop_oneof![Just(0), 0u32..4_000], prop_oneof![4 => Just(0), 1 => 0u32..4]),
    );
    (
        1u16..5,
        prop::bool::weighted(0.9),
        flags(),
        options(),
        numbers,
        0usize..1_200,
        near,
        0u64..3_000,
    )
        .prop_map(
            |(src_port, to_listener, flags, options, (seq, ack, window), payload, near, pause)| {
                Odd {
                    src_port,
                    to_listener,
                    header: Header {
                        seq: SeqNumber(seq),
                        ack: ack.map(SeqNumber),
                        flags,
                        window,
                        options,
                    },
                    payload,
                    near,
                    pause,
                }
            },
        )
}

struct Victim {
    host: Host,
    listener: SocketId,
    now: Instant,
    /// The last segments of the host, so that some segments match them.
    heard: Vec<(u16, SeqNumber, SeqNumber)>,
}

impl Victim {
    fn new() -> Self {
        let mut host = server();
        (host.config.tcp.hack, host.config.tcp.tx_numbers) = (Offer::Always, Offer::Always);
        let listener = host.tcp_listen(address("10.0.0.1:80"), BACKLOG).unwrap();
        Self { host, listener, now: Instant::ZERO, heard: vec![] }
    }

    fn drain(&mut self) {
        for _ in 0..10_000 {
            let Some((_, packet)) = self.host.poll_transmit(self.now) else { return };
            let datagram = ip::parse(&packet.data).unwrap();
            if let Ok((_, port, segment)) = tcp::parse(datagram.payload) {
                self.heard.retain(|(known, ..)| *known != port);
                self.heard.push((port, segment.seq + segment.len(), segment.ack));
            }
        }
        panic!("the host never falls silent");
    }

    fn take(&mut self, odd: &Odd) {
        self.now += Duration::from_millis(odd.pause);
        self.host.handle_timeout(self.now);
        self.drain();
        let mut header = odd.header;
        let known = self.heard.iter().find(|(port, ..)| *port == odd.src_port);
        if let (Some((off, acked)), Some((_, theirs, ours))) = (odd.near, known) {
            header.seq = *ours + off - off / 2;
            header.ack = Some(*theirs + acked);
        }
        let port = if odd.to_listener { 80 } else { 81 };
        let flow = FlowId {
            local: SocketAddr::from(([10, 0, 0, 9], odd.src_port)),
            remote: SocketAddr::from(([10, 0, 0, 1], port)),
        };
        let packet = tcp::emit(&flow, 64, &header, &vec![7; odd.payload]);
        self.host.handle_packet(self.now, PORT, packet);
        self.drain();
    }

    fn check(&self) {
        assert!(
            self.host.tcp_connections().count() <= MOST,
            "{}",
            self.host.sockets.iter().count()
        );
        assert!(self.host.flows.len() <= MOST);
        assert!(self.host.timers.len() <= MOST);
        assert!(self.host.sending.first().is_none() && self.host.outbox.is_empty());
        assert_eq!(self.host.held(), held_by_connections(&self.host));
        let window = self.host.config.tcp.receive_buffer;
        assert!(self.host.held() <= (window + ByteCount(8_192)) * MOST as u64);
    }

    /// Closes everything for the application; then all connections end.
    fn end(mut self) {
        while let Some((socket, _)) = self.host.tcp_accept(self.now, self.listener).unwrap() {
            self.host.tcp_close(self.now, socket).unwrap();
        }
        for _ in 0..10_000 {
            self.drain();
            let Some(next) = self.host.poll_timeout() else { break };
            self.now = self.now.max(next);
            self.host.handle_timeout(self.now);
        }
        let left: Vec<_> = self.host.tcp_connections().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(self.host.held(), ByteCount::ZERO);
    }
}

proptest! {
    #[test]
    fn segments_of_any_kind_do_no_harm(odds in prop::collection::vec(odd(), 1..60)) {
        let mut victim = Victim::new();
        for odd in &odds {
            victim.take(odd);
            victim.check();
        }
        victim.end();
    }

    #[test]
    fn bytes_of_any_kind_do_no_harm(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
        whole in any::<bool>(),
    ) {
        let mut victim = Victim::new();
        for mut data in packets {
            if whole && data.len() >= 20 {
                // The headers before the transport header are valid.
                let len = data.len() as u8;
                data[..20].copy_from_slice(&segment("10.0.0.1:80", &syn())[..20]);
                data = with_header(data, |data| data[3] = len);
            }
            let packet = Packet { data, checksum: Checksum::Verified, ..Packet::default() };
            victim.host.handle_packet(victim.now, PORT, packet);
            victim.drain();
            victim.check();
        }
    }
}
