//! The four cases of TCP-ECN 6.2.1.2, figures 1 to 4. Segments have 1000 bytes; the first, X,
//! starts at 1.

use super::*;

const X: u32 = 1;
const X1: u32 = 1_001;
const X2: u32 = 2_001;
const X3: u32 = 3_001;

fn data(seq: u32) -> Seg {
    Seg::data(seq, 1_000)
}

/// A radio on which both tries of the first frame's first pass fail, and all later ones succeed:
/// the first frame goes behind all others.
fn with_a_loss() -> Script {
    Script::open("tries 2 down 30ms 2560us")
}

#[test]
fn figure_1_a_segment_after_a_congestion_loss_is_marked_and_its_duplicate_acks_pass() {
    let mut script = Script::open("");
    script.fixed(data(X));
    script.run(40);
    script.mobile(Seg::ack(1, X1));
    script.run(50);
    script.fixed(data(X2));
    script.run(60);
    assert_eq!(script.marks(), [(X, false), (X2, true)]);
    (0..3).for_each(|_| script.mobile(Seg::ack(1, X1)));
    script.run(90);
    assert_eq!(script.acks(), [X1; 4]);
}

#[test]
fn figure_2_segments_after_a_loss_on_the_radio_are_not_marked() {
    let mut script = with_a_loss();
    script.fixed(data(X));
    script.fixed(data(X1));
    script.fixed(data(X2));
    script.run(100);
    assert_eq!(script.marks(), [(X1, false), (X2, false), (X, false)], "X went to the tail");
}

#[test]
fn figure_3_after_the_hole_is_filled_there_is_no_mark() {
    let mut script = Script::open("");
    // X is lost before the station.
    script.fixed(data(X1));
    script.fixed(data(X2));
    script.run(40);
    assert_eq!(script.marks(), [(X1, true), (X2, true)]);
    script.fixed(data(X));
    script.fixed(data(X3));
    script.run(60);
    assert_eq!(script.marks(), [(X, false), (X3, false)]);
}

#[test]
fn figure_4_duplicate_acks_for_what_the_radio_still_has_are_discarded() {
    let mut script = with_a_loss();
    script.fixed(data(X));
    // Other packets, behind which X is queued after its first pass.
    (0..10).for_each(|_| script.put(Side::Wired, other(1_000)));
    // X + 1 is lost before the station.
    script.fixed(data(X2));
    let came = |script: &Script| {
        script.out.iter().any(|(_, side, packet)| {
            let is_x2 = |segment: Segment| segment.seq.0 == X2;
            *side == Side::Wireless && Segment::read(packet).is_some_and(is_x2)
        })
    };
    let mut ms = 30;
    while !came(&script) {
        ms += 1;
        script.run(ms);
        assert!(ms < 200, "it never comes");
    }
    assert_eq!(script.marks(), [(X2, true)], "so the mobile takes X for lost on the wired side");
    // The mobile's duplicate ACK is sent before X is retransmitted.
    script.mobile(Seg { sack: vec![(X2, X3)], ..Seg::ack(1, X) });
    script.run(200);
    assert!(script.acks().is_empty(), "X needs nobody's help");
    assert_eq!(script.marks(), [(X, false)]);
    assert_eq!(script.station.counters().hidden, 1);
    script.mobile(Seg { sack: vec![(X2, X3)], ..Seg::ack(1, X1) });
    (0..2).for_each(|_| script.mobile(Seg { sack: vec![(X2, X3)], ..Seg::ack(1, X1) }));
    script.run(300);
    assert_eq!(script.acks(), [X1; 3], "X + 1 is the fixed host's to repair");
}

#[test]
fn once_the_radio_gives_a_segment_up_its_duplicate_acks_pass() {
    let mut script = Script::open("down 30ms 200ms");
    script.fixed(data(X));
    script.run(230);
    assert!(script.marks().is_empty());
    script.fixed(data(X1));
    script.run(240);
    assert_eq!(script.marks(), [(X1, false)]);
    script.mobile(Seg::ack(1, X));
    script.run(250);
    assert_eq!(script.acks(), [X]);
}
