//! A receiver behind a base station: figures 1 to 4 of TCP-ECN, as seen by the mobile host. X is 1,
//! and segments have 1000 bytes.

use super::*;

const X1: u32 = 1001;
const X2: u32 = 2001;
const X3: u32 = 3001;
const X4: u32 = 4001;

fn aware() -> TcpConfig {
    TcpConfig { mark_aware: Some(MarkAware::default()), ..plain() }
}

fn without_sack() -> TcpConfig {
    TcpConfig { sack: false, ..aware() }
}

#[test]
fn figure_1_after_a_congestion_loss_the_duplicate_ack_leaves_at_once() {
    let mut s = Script::established(&aware());
    send!(s, 10, "A", 1, ack = 1, len = 1000);
    recv!(s, 10, "A", 1, ack = X1);
    send!(s, 20, "A", X2, ack = 1, len = 1000, marked = true);
    recv!(s, 20, "A", 1, ack = X1, sack = [(X2, X3)]);
    recv_nothing!(s, 1_000);
}

#[test]
fn figure_2_after_a_loss_on_the_radio_it_is_withheld() {
    let mut s = Script::established(&aware());
    send!(s, 10, "A", X1, ack = 1, len = 1000);
    send!(s, 20, "A", X2, ack = 1, len = 1000);
    recv_nothing!(s, 100);
    send!(s, 100, "A", 1, ack = 1, len = 1000);
    recv!(s, 100, "A", 1, ack = X3);
    recv_nothing!(s, 1_000);
    assert_eq!(s.counters.tcp_ext_dup_acks_withheld, 2);
    assert_eq!(s.counters.tcp_ext_withholding_ended, 0);
}

#[test]
fn figure_3_a_congestion_loss_and_then_one_on_the_radio() {
    let mut s = Script::established(&aware());
    // X did not reach the base station, and X + 1 is lost on the radio.
    send!(s, 10, "A", X2, ack = 1, len = 1000, marked = true);
    recv!(s, 10, "A", 1, ack = 1, sack = [(X2, X3)]);
    send!(s, 20, "A", 1, ack = 1, len = 1000);
    recv!(s, 20, "A", 1, ack = X1, sack = [(X2, X3)]);
    // The base station has no more missing segments.
    send!(s, 30, "A", X3, ack = 1, len = 1000);
    recv_nothing!(s, 40);
    send!(s, 40, "A", X1, ack = 1, len = 1000);
    recv!(s, 40, "A", 1, ack = X4);
}

#[test]
fn figure_4_a_loss_on_the_radio_and_then_one_by_congestion_look_like_one_by_congestion() {
    let mut s = Script::established(&aware());
    // X is lost on the radio, and X + 1 did not reach the base station: the mark cannot distinguish
    // them.
    send!(s, 10, "A", X2, ack = 1, len = 1000, marked = true);
    recv!(s, 10, "A", 1, ack = 1, sack = [(X2, X3)]);
}

#[test]
fn without_the_setting_no_ack_is_withheld() {
    let mut s = Script::established(&plain());
    send!(s, 10, "A", X1, ack = 1, len = 1000);
    recv!(s, 10, "A", 1, ack = 1, sack = [(X1, X2)]);
}

#[test]
fn when_withholding_ends_one_ack_has_all_blocks_and_later_acks_are_immediate() {
    let mut s = Script::established(&aware());
    send!(s, 10, "A", X1, ack = 1, len = 1000);
    send!(s, 30, "A", X3, ack = 1, len = 1000);
    recv_nothing!(s, 159);
    recv!(s, 160, "A", 1, ack = 1, sack = [(X3, X4), (X1, X2)]);
    recv_nothing!(s, 200);
    send!(s, 200, "A", X4, ack = 1, len = 1000);
    recv!(s, 200, "A", 1, ack = 1, sack = [(X3, X4 + 1000), (X1, X2)]);
    // The next hole is another one.
    send!(s, 210, "A", 1, ack = 1, len = 1000);
    recv!(s, 210, "A", 1, ack = X2, sack = [(X3, X4 + 1000)]);
    send!(s, 220, "A", X4 + 1000, ack = 1, len = 1000);
    recv_nothing!(s, 369);
    recv!(s, 370, "A", 1, ack = X2, sack = [(X3, X4 + 2000)]);
}

#[test]
fn without_sack_three_duplicates_report_the_hole() {
    let mut s = Script::established(&without_sack());
    send!(s, 10, "A", X1, ack = 1, len = 1000);
    recv_nothing!(s, 159);
    (0..3).for_each(|_| recv!(s, 160, "A", 1, ack = 1));
    recv_nothing!(s, 1_000);
}

#[test]
fn a_marked_segment_and_a_fin_end_it() {
    for (flags, marked, end) in [("A", true, X4), ("FA", false, X4 + 1)] {
        for (config, copies) in [(aware(), 1), (without_sack(), 3)] {
            let mut s = Script::established(&config);
            send!(s, 10, "A", X1, ack = 1, len = 1000);
            recv_nothing!(s, 20);
            let mut seg = seg!("A", X3, ack = 1, len = 1000, marked = marked);
            seg.flags = flags;
            s.send_at(20, seg);
            let mut expected = seg!("A", 1, ack = 1);
            if config.sack {
                expected.sack = vec![(X3, end), (X1, X2)];
            }
            (0..copies).for_each(|_| s.recv_at(20, &expected));
            recv_nothing!(s, 1_000);
            assert_eq!(s.counters.tcp_ext_withholding_ended, 1);
        }
    }
}

#[test]
fn dsacks_and_other_needed_acks_are_not_withheld() {
    let mut s = Script::established(&aware());
    send!(s, 10, "A", X1, ack = 1, len = 1000);
    recv_nothing!(s, 10);
    // A DSACK.
    send!(s, 20, "A", X1, ack = 1, len = 1000);
    recv!(s, 20, "A", 1, ack = 1, sack = [(X1, X2), (X1, X2)]);
    // A keepalive.
    send!(s, 30, "A", 0, ack = 1);
    recv!(s, 30, "A", 1, ack = 1, sack = [(X1, X2)]);
    recv!(s, 160, "A", 1, ack = 1, sack = [(X1, X2)]);
    // A challenge.
    send!(s, 1_040, "S", 7);
    recv!(s, 1_040, "A", 1, ack = 1, sack = [(X1, X2)]);
}

#[test]
fn a_window_update_is_sent_while_acks_are_withheld() {
    let mut s = Script::established(&TcpConfig { initial_window: ByteCount(3000), ..aware() });
    send!(s, 10, "A", 1, ack = 1, len = 1000);
    recv!(s, 10, "A", 1, ack = X1);
    send!(s, 20, "A", X1, ack = 1, len = 1000);
    recv!(s, 20, "A", 1, ack = X2);
    send!(s, 30, "A", X2 + 500, ack = 1, len = 10);
    recv_nothing!(s, 30);
    assert_eq!(s.read().len(), 2000);
    recv!(s, 30, "A", 1, ack = X2, sack = [(X2 + 500, X2 + 510)]);
}
