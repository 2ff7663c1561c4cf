//! TIME-WAIT after the application has closed: answers, replacement, and the limit.

use airtcp_types::EventKind;
use airtcp_wire::options::{TcpOptions, Timestamps};

use crate::logged::logged;
use crate::tcp::State;

use super::*;

const TO: &str = "10.0.0.1:80";
const MINUTE: Duration = Duration::from_secs(60);

/// A peer's knowledge of a connection that the server has closed first.
struct Ended {
    flow: FlowId,
    /// The peer's last segment, its FIN, and the ACK of it.
    fin: Packet,
    ack: Packet,
}

impl Pair {
    /// Opens a connection, and closes it so that the server is in TIME-WAIT.
    fn time_wait(&mut self, listener: SocketId) -> Ended {
        let (stream, accepted) = self.connect(listener, TO);
        let flow = self.client.tcp(stream).unwrap().flow();
        self.server.tcp_close(self.now, accepted).unwrap();
        self.exchange();
        self.client.tcp_close(self.now, stream).unwrap();
        let (_, fin) = self.client.poll_transmit(self.now).unwrap();
        assert!(read_segment(&fin).flags.fin);
        let ack = self.answers(fin.clone()).remove(0);
        self.client.handle_packet(self.now, PORT, ack.clone());
        self.exchange();
        Ended { flow, fin, ack }
    }

    fn answers(&mut self, packet: Packet) -> Vec<Packet> {
        self.server.handle_packet(self.now, PORT, packet);
        std::iter::from_fn(|| self.server.poll_transmit(self.now).map(|(_, p)| p)).collect()
    }

    fn states(&self) -> Vec<State> {
        self.server.tcp_connections().map(|(_, state)| state).collect()
    }
}

impl Ended {
    /// A segment of the peer with a sequence number at an offset of `off` from the next one, and a
    /// timestamp at an offset of `later`.
    fn segment(&self, flags: Flags, off: i32, later: i32) -> Packet {
        let fin = read_segment(&self.fin);
        let theirs = fin.options.timestamps.unwrap();
        let val = theirs.val.wrapping_add_signed(later);
        let header = Header {
            seq: SeqNumber((fin.seq + fin.len()).0.wrapping_add_signed(off)),
            ack: flags.ack.then_some(fin.ack),
            flags,
            window: 1_000,
            options: TcpOptions {
                timestamps: Some(Timestamps { val, ecr: theirs.ecr }),
                ..TcpOptions::default()
            },
        };
        tcp::emit(&self.flow, 64, &header, &[])
    }
}

fn flags(text: &str) -> Flags {
    let has = |flag| text.contains(flag);
    Flags { syn: has('S'), ack: has('A'), rst: has('R'), fin: has('F'), ..Flags::default() }
}

#[test]
fn little_is_kept_and_it_ends_after_a_minute() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    pair.time_wait(listener);
    assert_eq!((pair.states(), pair.server.time_waits), (vec![State::TimeWait], 1));
    assert!(pair.server.held() < ByteCount(512), "{:?}", pair.server.held());
    assert_eq!(pair.server.peers.overdrawn(&pair.server.config, [10, 0, 0, 2].into()), None);
    while pair.server.poll_event().is_some() {}
    pair.pass(MINUTE - Duration::from_millis(1));
    assert_eq!(pair.states(), [State::TimeWait]);
    pair.pass(Duration::from_millis(1));
    assert_eq!((pair.states(), pair.server.held()), (vec![], ByteCount::ZERO));
    assert_eq!((pair.server.counters().tcp_ext_tw, pair.server.flows.len()), (1, 0));
    let ended = std::iter::from_fn(|| pair.server.poll_event()).last().unwrap();
    assert_eq!(ended.kind, EventKind::State { from: "TIME-WAIT", to: "CLOSED" });
}

#[test]
fn a_fin_that_comes_again_is_acknowledged_and_restarts_it() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let ended = pair.time_wait(listener);
    pair.pass(MINUTE / 2);
    let answers = pair.answers(ended.fin.clone());
    let (first, again) = (read_segment(&ended.ack), read_segment(&answers[0]));
    assert_eq!((again.seq, again.ack, again.flags), (first.seq, first.ack, Flags::ACK));
    assert!(again.options.timestamps.unwrap().val > first.options.timestamps.unwrap().val);
    pair.pass(MINUTE - Duration::from_millis(1));
    assert_eq!(pair.states(), [State::TimeWait]);
    pair.pass(Duration::from_millis(1));
    assert_eq!(pair.states(), []);
}

#[test]
fn guessed_segments_do_not_end_time_wait_and_are_rarely_answered() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let ended = pair.time_wait(listener);
    // Sequence numbers other than the next in order.
    let guesses =
        [("R", 7), ("R", -7), ("R", 0x4000_0000), ("S", -9), ("SA", 5), ("A", 9), ("A", -9)];
    let mut answered = 0;
    for (text, off) in guesses.into_iter().cycle().take(700) {
        answered += pair.answers(ended.segment(flags(text), off, 0)).len();
    }
    assert_eq!((answered, pair.states()), (1, vec![State::TimeWait]));
    // An old timestamp, or none, shows that the segment is not the peer's.
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.answers(ended.segment(flags("A"), 0, -5)).len(), 1);
    assert!(pair.answers(ended.segment(flags("A"), 0, -5)).is_empty());
    assert_eq!(pair.server.counters().tcp_ext_ack_skipped_paws, 1);
    // A RST with the exact number ends TIME-WAIT.
    pair.answers(ended.segment(flags("R"), 0, 0));
    assert_eq!(pair.states(), []);
}

#[test]
fn segments_refused_in_time_wait_are_counted_and_do_not_change_its_end() {
    type Case = (&'static str, &'static str, fn(&mut Pair, &Ended));
    let cases: [Case; 8] = [
        ("TcpExtOutOfWindowRsts", "RST dropped", |pair, ended| {
            pair.answers(ended.segment(flags("R"), -7, 0));
        }),
        ("TcpExtAckMissing", "no ACK", |pair, ended| {
            pair.answers(ended.segment(flags(""), 0, 0));
        }),
        ("TcpExtPAWSEstab", "old timestamp", |pair, ended| {
            pair.answers(ended.segment(flags("A"), 0, -5));
        }),
        ("TcpExtTimestampMissing", "no timestamp", |pair, ended| {
            let header = Header { ack: Some(SeqNumber(1)), flags: Flags::ACK, ..syn() };
            pair.answers(tcp::emit(&ended.flow, 64, &header, &[]));
        }),
        ("TcpExtTCPChallengeACK", "challenge ACK sent", |pair, ended| {
            pair.answers(ended.segment(flags("R"), 7, 0));
        }),
        ("TcpExtTCPACKSkippedChallenge", "limit of the connection", |pair, ended| {
            pair.answers(ended.segment(flags("R"), 7, 0));
            pair.answers(ended.segment(flags("R"), 7, 0));
        }),
        ("TcpExtChallengeACKLimit", "limit of the host", |pair, ended| {
            pair.server.config.challenge_acks = 0;
            pair.answers(ended.segment(flags("S"), -9, 0));
        }),
        ("TcpExtTCPACKSkippedSeq", "not answered", |pair, ended| {
            pair.answers(ended.segment(flags("A"), 9, 0));
            pair.answers(ended.segment(flags("A"), 9, 0));
        }),
    ];
    for (name, message, happens) in cases {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
        let ended = pair.time_wait(listener);
        pair.pass(MINUTE / 2);
        let before = pair.server.counters().clone();
        let lines = logged(|| happens(&mut pair, &ended));
        assert!(moved(&before, pair.server.counters()).contains(&name), "{name}");
        assert!(lines.iter().any(|line| line.contains(message)), "{name}: {message}: {lines:?}");
        // A repeated FIN is acknowledged, and restarts TIME-WAIT.
        assert_eq!(pair.answers(ended.fin.clone()).len(), 1, "{name}");
        pair.pass(MINUTE - Duration::from_millis(1));
        assert_eq!(pair.states(), [State::TimeWait], "{name}");
        pair.pass(Duration::from_millis(1));
        assert_eq!(pair.states(), [], "{name}");
    }
}

// Shows: RFC9293-SHLD-4
#[test]
fn a_syn_takes_its_place_by_its_time_stamp_and_then_by_its_number() {
    for (off, later, replaced) in [
        (9, -1, false),
        (-9, -1, false),
        (-9, 0, false),
        (0, 0, false),
        (9, 0, true),
        (-9, 1, true),
    ] {
        let mut pair = Pair::new();
        let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
        let ended = pair.time_wait(listener);
        pair.pass(Duration::from_secs(1));
        let mut answers = vec![];
        let lines = logged(|| answers = pair.answers(ended.segment(flags("S"), off, later)));
        let is_logged = lines.iter().any(|line| line.contains("replaced by new SYN"));
        assert_eq!(is_logged, replaced, "{lines:?}");
        let state = if replaced { State::SynReceived } else { State::TimeWait };
        assert_eq!((pair.states(), answers.len()), (vec![state], 1), "{off} {later}");
        assert_eq!(pair.server.counters().tcp_ext_tw_recycled, u64::from(replaced));
        assert_eq!(pair.server.time_waits, usize::from(!replaced));
        if replaced {
            let above = read_segment(&answers[0]).seq.distance(read_segment(&ended.ack).seq);
            assert!(above > 0, "it begins above all its numbers");
        }
    }
}

#[test]
fn the_number_of_time_waits_is_limited() {
    let mut pair = Pair::new();
    pair.server.config.time_waits = 3;
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    for _ in 0..5 {
        pair.time_wait(listener);
    }
    assert_eq!(pair.states(), [State::TimeWait; 3]);
    assert_eq!(pair.server.counters().tcp_ext_time_wait_overflow, 2);
    assert_eq!(pair.server.held(), held_by_connections(&pair.server));
    pair.pass(MINUTE);
    assert_eq!((pair.states(), pair.server.counters().tcp_ext_tw), (vec![], 3));
}

#[test]
fn aborting_all_ends_time_wait() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    pair.time_wait(listener);
    pair.server.tcp_abort_all(pair.now);
    assert_eq!((pair.states(), pair.server.time_waits), (vec![], 0));
    assert!(pair.server.tcp_accept(pair.now, listener).unwrap().is_none(), "the listener stays");
}

#[test]
fn a_syn_that_would_not_be_taken_ends_no_time_wait() {
    let mut pair = Pair::new();
    let listener = pair.server.tcp_listen(address(TO), 8).unwrap();
    let ended = pair.time_wait(listener);
    // A SYN with FIN does not open a connection.
    pair.answers(ended.segment(flags("SF"), 100, 1_000));
    assert_eq!(pair.states(), [State::TimeWait]);
    // The peer's limit of connections is reached.
    pair.server.config.peer_quota.connections = 0;
    assert!(pair.answers(ended.segment(flags("S"), 100, 1_000)).is_empty());
    assert_eq!(pair.states(), [State::TimeWait]);
    let counters = pair.server.counters();
    assert_eq!((counters.tcp_ext_tw_recycled, counters.tcp_ext_listen_drops), (0, 1));
    assert_eq!(counters.tcp_ext_conn_quota_peer, 1);
    pair.server.config.peer_quota.connections = 8;
    assert_eq!(pair.answers(ended.segment(flags("S"), 100, 1_000)).len(), 1);
    assert_eq!(pair.states(), [State::SynReceived]);
}
