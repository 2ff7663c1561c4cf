//! Each kind of refused segment is counted under its name and logged, and the flow continues.

use airtcp_types::ExtSeq;

use super::*;
use crate::logged::logged;

/// An event that a connection must survive: the counter that it increments, the text that is
/// logged, the initial state, and the code that causes the event.
type Case = (&'static str, &'static str, fn() -> Script, fn(&mut Script));

impl Script {
    fn counter(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// Takes all segments that are sent now.
    fn drain(&mut self) -> Vec<Seg> {
        std::iter::from_fn(|| {
            let packet = self.conn.poll_transmit(self.now, &mut self.counters, &mut self.outlet)?;
            Some(Seg::from_packet(&packet.data))
        })
        .collect()
    }

    /// The peer's next sequence number, and its acknowledgement number after it has received
    /// everything.
    fn next(&self) -> (u32, u32) {
        let relative = |number: ExtSeq, base| number.wire().distance(base) as u32;
        (relative(self.conn.receive.nxt(), IRS), relative(self.conn.send.nxt(), ISS))
    }

    /// Completes an incomplete handshake as the peer, as if nothing had happened.
    #[track_caller]
    fn complete(&mut self, ms: u64) {
        match self.conn.state() {
            State::SynSent => {
                send!(self, ms, "S", 0, ack = 1, mss = 1000, sack_permitted = true);
                recv!(self, ms, "A", 1, ack = 1);
            }
            State::SynReceived => send!(self, ms, "A", 1, ack = 1),
            _ => {}
        }
        assert_eq!(self.conn.state(), State::Established);
    }

    /// Transfers data in both directions, and checks that all of it arrives.
    #[track_caller]
    fn goes_on(&mut self, ms: u64) {
        self.drain();
        let mut got = self.read();
        self.drain();
        let (seq, ack) = self.next();
        send!(self, ms, "PA", seq, ack = ack, len = 10);
        got.extend(self.read());
        let (next, _) = self.next();
        assert!(next >= seq + 10, "{next}");
        assert_eq!(got, stream(1, next as usize - 1));
        let from = self.written;
        self.write(10);
        let sent = self.drain();
        let data = sent.iter().find(|seg| seg.seq == from && !seg.data.is_empty());
        assert_eq!(data.map(|seg| seg.data.clone()), Some(stream(from, 10)), "{sent:?}");
        send!(self, ms, "A", next, ack = from + 10);
        let info = self.conn.info(self.now);
        assert_eq!((info.unacked, info.send_q), (ByteCount::ZERO, ByteCount::ZERO));
        assert_eq!(self.conn.state(), State::Established);
    }
}

fn check(cases: &[Case]) {
    for (name, message, begin, happens) in cases {
        let mut s = begin();
        let before = s.counter(name);
        let lines = logged(|| happens(&mut s));
        assert!(s.counter(name) > before, "{name}");
        let is_logged = |line: &String| {
            line.starts_with("DEBUG ") && line.contains(message) && line.contains("10.0.0.2:40000")
        };
        assert!(lines.iter().any(is_logged), "{name}: {message}: {lines:#?}");
        s.drain();
        let later = s.now.as_millis() + 1;
        s.complete(later);
        s.goes_on(later);
    }
}

fn established() -> Script {
    Script::established(&plain())
}

fn stamped() -> Script {
    let mut s = Script::established(&TcpConfig { timestamps: true, ..plain() });
    send!(s, 50, "A", 1, ack = 1, len = 10);
    s
}

/// An established connection with a receive buffer of 2000 bytes.
fn narrow() -> Script {
    let bytes = ByteCount(2000);
    Script::established(&TcpConfig { initial_window: bytes, receive_buffer: bytes, ..plain() })
}

/// An established connection with a full initial window in flight.
fn sent() -> Script {
    let mut s = established();
    s.write(20_000);
    assert_eq!(s.drain().len(), 10);
    s
}

/// Acknowledges all outstanding data, and the data that follows it.
fn acknowledge_all(s: &mut Script) {
    let ms = s.now.as_millis();
    for _ in 0..20 {
        let (seq, ack) = s.next();
        send!(s, ms, "A", seq, ack = ack);
        s.drain();
    }
}

#[test]
fn an_established_flow_survives() {
    check(&[
        ("TcpExtOutOfWindowRsts", "RST dropped", established, |s| send!(s, 1, "R", 0)),
        ("TcpExtOutOfWindowRsts", "RST dropped", established, |s| send!(s, 1, "R", 0x4000_0000)),
        ("TcpExtAckMissing", "no ACK", established, |s| send!(s, 1, "", 1, len = 10)),
        ("TcpExtAckMissing", "no ACK", established, |s| send!(s, 1, "F", 1)),
        ("TcpExtBeyondWindow", "beyond the window", established, |s| {
            send!(s, 1, "A", 0x2000_0000, ack = 1, len = 10);
        }),
        ("TcpExtTCPACKSkippedSeq", "not answered", established, |s| {
            for _ in 0..2 {
                send!(s, 1, "A", 0x2000_0000, ack = 1, len = 10);
            }
        }),
        ("TcpExtPAWSEstab", "old timestamp", stamped, |s| {
            send!(s, 51, "A", 11, ack = 1, len = 10, ts = (PEER_TS + 49, TS_OFFSET));
        }),
        ("TcpExtTCPACKSkippedPAWS", "not answered", stamped, |s| {
            for _ in 0..2 {
                send!(s, 51, "A", 11, ack = 1, ts = (PEER_TS + 49, TS_OFFSET));
            }
        }),
        ("TcpExtTimestampMissing", "no timestamp", stamped, |s| {
            s.timestamps = false;
            send!(s, 51, "A", 11, ack = 1, len = 10);
            s.timestamps = true;
        }),
        ("TcpExtTCPChallengeACK", "challenge ACK sent", established, |s| send!(s, 1, "R", 2)),
        ("TcpExtTCPChallengeACK", "challenge ACK sent", established, |s| {
            send!(s, 1, "A", 1, ack = 0x4000_0000, len = 10);
        }),
        ("TcpExtTCPSYNChallenge", "challenge ACK sent", established, |s| {
            send!(s, 1, "S", 7, mss = 1000);
        }),
        ("TcpExtTCPACKSkippedChallenge", "limit of the connection", established, |s| {
            send!(s, 1, "R", 2);
            send!(s, 1, "R", 2);
        }),
        ("TcpExtChallengeACKLimit", "limit of the host", established, |s| {
            s.conn.set_may_challenge(false);
            send!(s, 1, "R", 2);
        }),
        ("TcpExtUrgent", "urgent", established, |s| send!(s, 1, "U", 1, ack = 1, len = 10)),
        ("TcpExtWindowShrunk", "shrank its window", established, |s| {
            send!(s, 1, "A", 1, ack = 1, window = 500);
        }),
        ("TcpExtTCPSACKDiscard", "SACK blocks ignored", established, |s| {
            send!(s, 1, "A", 1, ack = 1, sack = [(5_000, 6_000)]);
        }),
    ]);
}

#[test]
fn a_flow_survives_what_there_is_no_room_for() {
    check(&[
        ("TcpExtTCPOFODrop", "no room", established, |s| {
            // More holes than can be stored.
            for n in 0..4_200 {
                send!(s, 1, "A", 3 + 2 * n, ack = 1, len = 1);
                s.drain();
            }
        }),
        ("TcpExtOFOQuota", "quota", established, |s| {
            s.conn.set_out_of_order_room(ByteCount::ZERO);
            send!(s, 1, "A", 11, ack = 1, len = 10);
        }),
        ("TcpExtTCPZeroWindowDrop", "receive window closed", narrow, |s| {
            send!(s, 1, "A", 1, ack = 1, len = 2000);
            s.drain();
            send!(s, 2, "A", 2001, ack = 1, len = 1);
        }),
        ("TcpExtTCPZeroWindowDrop", "receive window closed", narrow, |s| {
            send!(s, 1, "A", 1, ack = 1, len = 2000);
            s.drain();
            send!(s, 2, "A", 2002, ack = 1, len = 10);
        }),
    ]);
}

#[test]
fn a_handshake_survives() {
    fn syn_sent() -> Script {
        let mut s = Script::connecting(&plain());
        s.drain();
        s
    }
    fn syn_received() -> Script {
        let mut s = Script::syn_received(&plain());
        s.drain();
        s
    }
    check(&[
        ("TcpExtHandshakeBadAck", "ACK of unsent data", syn_sent, |s| {
            send!(s, 1, "S", 0, ack = 77, mss = 1000);
            recv!(s, 1, "R", 77);
        }),
        ("TcpExtOutOfWindowRsts", "RST dropped", syn_sent, |s| send!(s, 1, "R", 0)),
        ("TcpExtOutOfWindowRsts", "RST dropped", syn_sent, |s| send!(s, 1, "R", 0, ack = 77)),
        ("TcpExtNotASyn", "not a valid SYN", syn_sent, |s| send!(s, 1, "A", 1, ack = 1, len = 10)),
        ("TcpExtNotASyn", "not a valid SYN", syn_sent, |s| send!(s, 1, "F", 1)),
        ("TcpExtDataInSyn", "in SYN ignored", syn_sent, |s| {
            let mss = seg!("SF", 0, ack = 1, mss = 1000, sack_permitted = true);
            s.send_at(1, Seg { data: stream(1, 10), ..mss });
        }),
        ("TcpExtHandshakeBadAck", "ACK of unsent data", syn_received, |s| {
            send!(s, 1, "A", 1, ack = 77);
            recv!(s, 1, "R", 77);
        }),
        ("TcpExtOutOfWindowRsts", "RST dropped", syn_received, |s| send!(s, 1, "R", 0x4000_0000)),
        ("TcpExtTCPChallengeACK", "challenge ACK sent", syn_received, |s| send!(s, 1, "R", 2)),
        ("TcpExtAckMissing", "no ACK", syn_received, |s| send!(s, 1, "", 1, len = 10)),
        ("TcpExtBeyondWindow", "beyond the window", syn_received, |s| {
            send!(s, 1, "A", 0x2000_0000, ack = 1);
        }),
        ("TcpExtTCPACKSkippedSynRecv", "not answered", syn_received, |s| {
            for _ in 0..2 {
                send!(s, 1, "S", 0, mss = 1000, sack_permitted = true);
            }
        }),
    ]);
}

#[test]
fn an_undo_is_reported_with_its_evidence() {
    fn stamped_and_sent() -> Script {
        let mut s = Script::established(&TcpConfig { timestamps: true, mtu: 1052, ..plain() });
        s.write(20_000);
        assert_eq!(s.drain().len(), 10);
        s
    }
    check(&[
        // F-RTO: the first segment is retransmitted and acknowledged, new data is sent, and the
        // second ACK is for data that was sent once.
        ("TcpExtTCPSpuriousRTOs", "NewData", sent, |s| {
            recv!(s, 200, "A", 1, ack = 1, len = 1000);
            send!(s, 210, "A", 1, ack = 1001);
            recv!(s, 210, "A", 10_001, ack = 1, len = 1000);
            recv!(s, 210, "A", 11_001, ack = 1, len = 1000);
            recv_nothing!(s, 210);
            send!(s, 211, "A", 1, ack = 2001);
            acknowledge_all(s);
            assert_eq!(s.counters.tcp_retrans_segs, 1);
        }),
        ("TcpExtTCPFullUndo", "TimeStamp", stamped_and_sent, |s| {
            recv!(s, 200, "A", 1, ack = 1, len = 1000);
            send!(s, 210, "A", 1, ack = 2001, ts = (PEER_TS + 210, TS_OFFSET));
            acknowledge_all(s);
            assert_eq!(s.counters.tcp_retrans_segs, 1);
        }),
        ("TcpExtTCPDSACKUndo", "Duplicates", sent, |s| {
            for n in 1..=3 {
                send!(s, 100, "A", 1, ack = 1, sack = [(1001, 1001 + n * 1000)]);
            }
            recv!(s, 100, "A", 1, ack = 1, len = 1000);
            send!(s, 110, "A", 1, ack = 4001);
            s.drain();
            send!(s, 120, "A", 1, ack = 4001, sack = [(1, 1001)]);
            acknowledge_all(s);
            assert!(s.counters.tcp_ext_dsack_recv > 0 && s.counters.tcp_ext_fast_retrans == 1);
        }),
    ]);
}

#[test]
fn a_connection_that_times_out_reports_the_reason() {
    let silent = |s: &mut Script| {
        while let Some(at) = s.conn.poll_timeout() {
            s.now = at.max(s.now);
            s.conn.on_timeout(s.now, &mut s.counters);
            s.drain();
        }
        assert_eq!(s.conn.state(), State::Closed);
    };
    type Ended = (&'static str, &'static str, fn() -> Script);
    let cases: [Ended; 6] = [
        ("TcpExtTCPAbortOnTimeout", "state=SYN-SENT", || Script::connecting(&plain())),
        ("TcpExtTCPAbortOnTimeout", "state=SYN-RECEIVED", || Script::syn_received(&plain())),
        ("TcpExtTCPAbortOnTimeout", "state=ESTABLISHED", sent),
        ("TcpExtTCPAbortOnTimeout", "state=ESTABLISHED", || {
            let mut s = sent();
            s.conn.set_user_timeout(Some(Duration::from_millis(300)));
            s
        }),
        ("TcpExtTCPAbortOnTimeout", "state=ESTABLISHED", || {
            let mut s = established();
            let pause = Duration::from_secs(1);
            let settings = KeepAlive { idle: pause, interval: pause, probes: 2 };
            s.conn.set_keep_alive(s.now, Some(settings));
            s
        }),
        ("TcpExtTCPAbortOnLinger", "linger time expired", || {
            let mut s = sent();
            s.close_within(Duration::from_secs(1));
            s
        }),
    ];
    for (name, message, begin) in cases {
        let mut s = begin();
        let lines = logged(|| silent(&mut s));
        assert_eq!(s.counter(name), 1, "{message}");
        assert!(
            lines.iter().any(|line| line.starts_with("DEBUG ") && line.contains(message)),
            "{lines:#?}"
        );
    }
}

// Shows: RFC7323-2.3-6
#[test]
fn a_shift_above_fourteen_is_logged() {
    let config = TcpConfig { window_scaling: true, ..plain() };
    for (shift, is_logged) in [(14, false), (15, true)] {
        let lines = logged(|| {
            let syn = Seg { wscale: Some(shift), ..Script::syn_of(&config) };
            let wire = syn.to_wire();
            Connection::accept(
                Instant::ZERO,
                flow(),
                ISS,
                TS_OFFSET,
                &config,
                &wire.segment(&syn.data),
            );
        });
        assert_eq!(lines.iter().any(|line| line.contains("window scale above 14")), is_logged);
    }
}

#[test]
fn data_that_fills_a_hole_does_not_count_as_out_of_order() {
    // As in Linux: TCPOFOQueue counts only data that is stored above a hole.
    let mut s = Script::established(&plain());
    send!(s, 0, "A", 11, ack = 1, len = 10);
    send!(s, 1, "A", 31, ack = 1, len = 10);
    s.drain();
    assert_eq!(s.counter("TcpExtTCPOFOQueue"), 2);
    // Fills one of two holes.
    send!(s, 2, "A", 1, ack = 1, len = 10);
    s.drain();
    assert_eq!(s.counter("TcpExtTCPOFOQueue"), 2);
    s.conn.set_out_of_order_room(ByteCount::ZERO);
    send!(s, 3, "A", 51, ack = 1, len = 10);
    s.drain();
    assert_eq!((s.counter("TcpExtTCPOFOQueue"), s.counter("TcpExtOFOQuota")), (2, 1));
}
