//! Segments of an attacker who knows a connection's two ends, and must guess the rest (RFC 5961).

use airtcp_stack::tcp::State;
use airtcp_testbed::or_skip;
use airtcp_types::{Packet, SeqNumber};
use airtcp_wire::options::{TcpOptions, Timestamps};
use airtcp_wire::tcp::{self, Flags, Header};

use crate::setup::{Numbers, Setup, round, send_all, try_round};

/// How often each guess is sent.
const TIMES: usize = 50;
/// Distances of a guess from the expected number: inside the window, and outside it.
const INSIDE: [u32; 4] = [1, 1_000, 30_000, 60_000];
const OUTSIDE: [u32; 5] = [u32::MAX, u32::MAX - 100_000, 0x1000_0000, 0x7fff_ffff, 0x8000_0001];
/// The distance between two segments of a sweep, less than a window.
const STRIDE: u32 = 50_021;

struct Forger(Numbers);

impl Forger {
    fn packet(&self, header: Header, len: usize) -> Packet {
        let flow = self.0.flow.expect("the honest flow was seen");
        tcp::emit(&flow, 64, &header, &vec![0xee; len])
    }

    fn seq(&self, off: u32) -> SeqNumber {
        self.0.rcv_nxt + off
    }

    fn rst(&self, off: u32) -> Packet {
        let flags = Flags { rst: true, ..Flags::default() };
        self.packet(Header { seq: self.seq(off), flags, ..Header::default() }, 0)
    }

    fn syn(&self, off: u32) -> Packet {
        let flags = Flags { syn: true, ..Flags::default() };
        let options = TcpOptions { mss: Some(1460), ..TcpOptions::default() };
        let header =
            Header { seq: self.seq(off), flags, window: 60_000, options, ..Header::default() };
        self.packet(header, 0)
    }

    /// Data with an ACK that is `ack` above the highest possible one, and a plausible timestamp of
    /// the peer.
    fn data(&self, off: u32, ack: u32, fin: bool) -> Packet {
        let val = self.0.clock.wrapping_add(1_000);
        let options =
            TcpOptions { timestamps: Some(Timestamps { val, ecr: 0 }), ..TcpOptions::default() };
        let header = Header {
            seq: self.seq(off),
            ack: Some(self.0.snd_nxt + ack),
            flags: Flags { fin, ..Flags::ACK },
            window: 60_000,
            options,
        };
        self.packet(header, 700)
    }

    fn all(&self) -> Vec<Packet> {
        let mut packets = Vec::new();
        for off in INSIDE.into_iter().chain(OUTSIDE) {
            packets.extend([self.rst(off), self.syn(off)]);
            for ack in [1, 0x3000_0000, 0x8000_0000, 0xd000_0000] {
                packets.extend([self.data(off, ack, false), self.data(off, ack, true)]);
            }
        }
        // Guesses with the expected sequence number, which acknowledge data that was not sent.
        packets.extend([self.syn(0), self.data(0, 1, false), self.data(0, 0xd000_0000, true)]);
        packets
    }

    /// Sweeps over all sequence numbers except the expected one.
    fn sweep(&self, packet: impl Fn(&Self, u32) -> Packet) -> impl Iterator<Item = Packet> {
        (0..u32::MAX / STRIDE).map(move |n| packet(self, 1 + n * STRIDE))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_inside_and_outside_the_window_harm_no_flow() {
    let Some(setup) = or_skip(Setup::new()) else { return };
    let mut stream = setup.connect().await;
    round(&mut stream, 1).await;
    let forger = || Forger(*setup.numbers.lock().expect("nobody panicked"));

    let guesses = forger().all();
    let many = guesses.iter().cycle().take(guesses.len() * TIMES).cloned();
    let sent = u64::from(send_all(&setup.attacker, many));
    round(&mut stream, 2).await;
    let counters = setup.stack.counters();
    let provoked = counters.tcp_ext_challenge_ack + counters.tcp_ext_ack_skipped_challenge;
    println!(
        "{sent} guesses, {provoked} worth a challenge, {} sent",
        counters.tcp_ext_challenge_ack
    );
    assert!(counters.tcp_ext_challenge_ack > 0 && provoked > 10 * counters.tcp_ext_challenge_ack);
    assert!(counters.tcp_ext_syn_challenge > 0 && counters.tcp_ext_beyond_window > 0);

    // The attack of RFC 5961 section 1.2: a RST per window; one RST is in the window.
    let numbers = forger();
    send_all(&setup.attacker, numbers.sweep(Forger::rst));
    round(&mut stream, 3).await;
    let numbers = forger();
    send_all(&setup.attacker, numbers.sweep(|forger, off| forger.data(off, 0x4000_0000, false)));
    round(&mut stream, 4).await;
    let counters = setup.stack.counters();
    assert_eq!((counters.tcp_estab_resets, counters.tcp_curr_estab), (0, 1));
    let states: Vec<_> = setup.stack.connections().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, [State::Established]);

    // A RST with the exact number resets the connection, so the others failed because of their
    // numbers.
    send_all(&setup.attacker, std::iter::once(forger().rst(0)));
    assert!(try_round(&mut stream, 5).await.is_err(), "it was reset");
    assert_eq!(setup.stack.counters().tcp_estab_resets, 1);
}
