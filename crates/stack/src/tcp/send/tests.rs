//! The send half without a connection: windows, room, probes and held data.

use airtcp_recovery::{SenderConfig, Start, WireNeeds};

use super::*;

const FIRST: ExtSeq = ExtSeq(1000);
const SMSS: ByteCount = ByteCount(1000);
const NOW: Instant = Instant::ZERO;

fn half(config: &TcpConfig) -> SendHalf {
    let mut send = SendHalf::new(NOW, FIRST, config);
    let start = Start {
        now: NOW,
        first: FIRST,
        smss: SMSS,
        granted: WireNeeds::NONE,
        handshake_rtt: Some(Duration::from_millis(100)),
        syn_retransmitted: false,
        seed: 1,
    };
    let combination = "newreno/reno".parse().unwrap();
    send.start(Sender::new(&SenderConfig { combination, ..SenderConfig::default() }, &start));
    send
}

/// A send half to which the peer offers `window` bytes.
fn offered(window: u64) -> SendHalf {
    let mut send = half(&TcpConfig::default());
    send.on_window(ExtSeq(1), FIRST, ByteCount(window));
    send
}

fn write(send: &mut SendHalf, len: usize) {
    assert_eq!(send.admit(len), len);
    send.write(&vec![0; len], &mut Outlet::default());
}

/// The ranges that are sent now, and the reason why no more are.
fn drain(send: &mut SendHalf, now: Instant) -> (Vec<SeqRange>, Limit) {
    let mut sent = Vec::new();
    loop {
        match send.decide(now).unwrap() {
            Decision::Send(transmit) => sent.push(transmit.range),
            Decision::Blocked(limit) => return (sent, limit),
        }
    }
}

fn ack(send: &mut SendHalf, now: Instant, ack: ExtSeq) {
    send.on_ack(
        now,
        &Ack {
            ack,
            window_changed: false,
            window_opened: false,
            has_payload: false,
            sack: &[],
            dsack: None,
            echo: None,
            ece: false,
            ce: ByteCount::ZERO,
            echoed: None,
        },
    );
}

#[test]
fn an_older_segment_does_not_change_the_window_and_a_newer_one_may_shrink_it() {
    let mut send = offered(5000);
    assert_eq!(send.on_window(ExtSeq(0), FIRST, ByteCount(9000)), WindowNews::default());
    assert_eq!((send.window(), send.window.edge()), (ByteCount(5000), FIRST + 5000));
    let shrunk = WindowNews { resized: true, opened: false, shrunk: true };
    assert_eq!(send.on_window(ExtSeq(2), FIRST, ByteCount(2000)), shrunk);
    assert!(!send.on_window(ExtSeq(2), FIRST, ByteCount(2000)).resized, "nothing changes");
    write(&mut send, 4000);
    let (sent, limit) = drain(&mut send, NOW);
    assert_eq!(sent.last().unwrap().end, FIRST + 2000);
    assert_eq!(limit, Limit::Rwnd);
    assert!(send.is_window_limited() && !send.is_buffer_limited());
}

#[test]
fn a_closed_window_is_probed_at_pauses_that_double() {
    let mut send = offered(0);
    write(&mut send, 100);
    assert_eq!(drain(&mut send, NOW), (vec![], Limit::Rwnd));
    let rto = send.rto();
    let mut now = NOW;
    for n in 0..4 {
        let at = send.deadline().unwrap();
        assert_eq!(at.since(now), rto * (1 << n));
        send.on_persist_timeout(now);
        assert!(!send.take_probe(), "it is too early");
        send.on_persist_timeout(at);
        assert!(send.take_probe() && !send.take_probe());
        assert_eq!(send.probes_unanswered(), n + 1);
        now = at;
    }
    ack(&mut send, now, FIRST);
    assert_eq!((send.probes_unanswered(), send.silence()), (0, 0));
    send.on_persist_timeout(send.deadline().unwrap());
    let news = send.on_window(ExtSeq(2), FIRST, ByteCount(5000));
    assert!(news.resized && !news.opened, "no time-out sent into it");
    assert!(!send.take_probe(), "it has opened");
    assert_eq!(drain(&mut send, now).0, [SeqRange::new(FIRST, FIRST + 100)]);
}

#[test]
fn refused_writes_are_remembered_until_there_is_room() {
    let mut send = half(&TcpConfig { send_buffer: ByteCount(3000), ..TcpConfig::default() });
    send.on_window(ExtSeq(1), FIRST, ByteCount(60_000));
    assert_eq!(send.admit(5000), 3000);
    send.write(&[0; 3000], &mut Outlet::default());
    assert_eq!(send.admit(1), 0);
    assert_eq!(drain(&mut send, NOW).1, Limit::App);
    assert!(send.is_buffer_limited() && !send.is_writable());
    ack(&mut send, NOW, FIRST + 2000);
    assert!(!send.is_buffer_limited() && send.is_writable());
    assert_eq!(send.buffer().len(), ByteCount(1000));
}

#[test]
fn no_more_is_taken_than_may_wait_to_be_sent() {
    let mut send = offered(0);
    assert_eq!(send.low_water(), None);
    send.set_low_water(Some(ByteCount(1500)));
    assert_eq!((send.admit(9000), send.low_water()), (1500, Some(ByteCount(1500))));
    send.write(&[0; 1500], &mut Outlet::default());
    assert_eq!(send.admit(1), 0);
    send.set_low_water(None);
    assert_eq!(send.admit(1), 1);
}

#[test]
fn a_corked_half_sends_full_segments_until_the_cork_is_drawn() {
    let mut send = offered(60_000);
    send.set_cork(true);
    write(&mut send, 2500);
    assert_eq!(drain(&mut send, NOW).0.last().unwrap().end, FIRST + 2000);
    assert!(send.is_corked());
    send.set_cork(false);
    ack(&mut send, NOW, FIRST + 2000);
    assert_eq!(drain(&mut send, NOW).0, [SeqRange::new(FIRST + 2000, FIRST + 2500)]);
}

#[test]
fn a_fin_has_a_number_and_is_acknowledged_with_it() {
    let mut send = offered(60_000);
    write(&mut send, 500);
    send.shut_down();
    assert_eq!((send.end(), send.buffer().end()), (FIRST + 501, FIRST + 500));
    assert_eq!(drain(&mut send, NOW).0.last().unwrap().end, FIRST + 501);
    ack(&mut send, NOW, FIRST + 500);
    assert!(!send.is_fin_acked() && !send.has_unacknowledged_data());
    ack(&mut send, NOW, FIRST + 501);
    assert!(send.is_fin_acked());
    send.retire();
    assert_eq!((send.una(), send.nxt(), send.deadline()), (FIRST + 501, FIRST + 501, None));
}

#[test]
fn returned_data_is_sent_next_without_the_acknowledged_part() {
    let mut send = offered(60_000);
    write(&mut send, 3000);
    let Some(Decision::Send(first)) = send.decide(NOW) else { panic!("nothing leaves") };
    send.put_back(first);
    ack(&mut send, NOW, FIRST + 400);
    let Some(Decision::Send(again)) = send.decide(NOW) else { panic!("nothing leaves") };
    assert_eq!(again.range, SeqRange::new(FIRST + 400, first.range.end));
    send.put_back(again);
    ack(&mut send, NOW, first.range.end);
    let Some(Decision::Send(next)) = send.decide(NOW) else { panic!("nothing leaves") };
    assert_eq!(next.range.start, first.range.end);
}
