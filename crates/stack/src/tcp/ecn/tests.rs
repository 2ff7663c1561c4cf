//! ECN without a connection: the effect of a segment, and its report in the next segment.

use airtcp_types::{ByteCount, ExtSeq, SeqNumber};
use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::options::{AccEcn, TcpOptions};
use airtcp_wire::payload::Payload;

use super::received::FIRST_CEP;
use super::*;

const DATA: &[u8] = &[0; 100];
/// The number of the peer's SYN or SYN-ACK, and the number that acknowledges this end's SYN.
const IRS: SeqNumber = SeqNumber(77);
const FIRST: SeqNumber = SeqNumber(1001);
/// ACE before any packet was marked.
const ACE: u8 = FIRST_CEP as u8;

fn segment(flags: Flags, ecn: u8, payload: &[u8]) -> Segment<'_> {
    Segment {
        seq: IRS,
        ack: FIRST,
        flags,
        reserved: 0,
        ecn,
        window: 0,
        options: TcpOptions::default(),
        payload: Payload::from(payload),
        size: None,
    }
}

fn syn() -> Segment<'static> {
    segment(Flags { syn: true, ..Flags::default() }, NOT_ECT, &[])
}

fn syn_ack(code: u8, ecn: u8) -> Segment<'static> {
    segment(Flags { syn: true, ..Flags::ACK }.with_ace(code), ecn, &[])
}

fn accurate() -> Ecn {
    Ecn::new(Form::Accurate, &syn())
}

/// The feedback of an ACK of `packets` full segments, with `ace`.
fn ack_of(packets: u64, ace: u8) -> Feedback {
    Feedback {
        ace,
        option: None,
        advances: packets > 0,
        is_later: false,
        is_idle: packets == 0,
        bytes: ByteCount(packets * 1000),
        packets,
        unreported: ByteCount::ZERO,
        smss: ByteCount(1000),
    }
}

#[test]
fn without_ecn_nothing_is_marked_or_reported() {
    let mut ecn = Ecn::new(Form::Nothing, &syn());
    ecn.on_segment(&segment(Flags::ACK, CE, DATA), true);
    assert_eq!(ecn.on_new_data(&segment(Flags::ACK, CE, DATA)), News::Nothing);
    let reported = ecn.report();
    assert_eq!((ecn.flags(&reported), ecn.flags_now()), (Flags::ACK, Flags::ACK));
    assert!(!ecn.is_on() && !ecn.marks() && !ecn.take_wish());
    assert_eq!(ecn.option_on_ack(&reported, &TcpOptions::default(), 0), None);
    assert_eq!((ecn.on_ack(&ack_of(3, 7)), ecn.counts()), (ByteCount::ZERO, None));
}

#[test]
fn classic_feedback_echoes_a_mark_until_cwr() {
    let mut ecn = Ecn::new(Form::Classic, &syn());
    assert!(ecn.marks() && !ecn.flags_now().ece);
    let cwr = Flags { cwr: true, ..Flags::ACK };
    for (flags, field, news, ece) in [
        (Flags::ACK, ECT_0, News::Nothing, false),
        (Flags::ACK, CE, News::Marked, true),
        (Flags::ACK, CE, News::Nothing, true),
        (Flags::ACK, ECT_0, News::Nothing, true),
        (cwr, ECT_0, News::SlowsDown, false),
        (cwr, CE, News::SlowsDown, true),
    ] {
        assert_eq!(ecn.on_new_data(&segment(flags, field, DATA)), news);
        assert_eq!(ecn.flags_now().ece, ece);
    }
}

#[test]
fn marks_are_counted_in_ace_and_request_an_ack() {
    let mut ecn = accurate();
    assert_eq!(ecn.ace(), ACE);
    ecn.on_segment(&segment(Flags::ACK, CE, DATA), true);
    assert!(ecn.take_wish() && !ecn.take_wish());
    let reported = ecn.report();
    assert_eq!(ecn.flags(&reported).ace(), ACE + 1);
    // The report has the counters from the time when the ACK became due.
    ecn.on_segment(&segment(Flags::ACK, CE, DATA), true);
    assert_eq!((ecn.flags(&reported).ace(), ecn.flags_now().ace()), (ACE + 1, ACE + 2));
    let counts = ecn.counts().unwrap();
    assert_eq!((counts.received_ce, counts.received_ce_bytes), (2, ByteCount(200)));
}

#[test]
fn an_accecn_option_is_sent_if_it_has_news_and_room() {
    let mut ecn = accurate();
    let none = TcpOptions::default();
    let first = ecn.report();
    assert!(ecn.lacks_room(AccEcn::len_of(3) - 1) && !ecn.lacks_room(AccEcn::len_of(3)));
    assert!(ecn.option_on_ack(&first, &none, 0).is_some());
    assert!(!ecn.lacks_room(0), "it has left");
    assert_eq!(ecn.option_on_ack(&first, &none, 0), None);
    ecn.on_segment(&segment(Flags::ACK, ECT_0, DATA), false);
    let second = ecn.report();
    assert_eq!(ecn.option_on_data(&second, &none, 0), None);
    assert!(ecn.lacks_room(0), "it has not left");
    let option = ecn.option_on_data(&second, &none, 40).unwrap();
    assert_eq!(option.e0b(), Some(101));
}

#[test]
fn where_the_path_has_written_into_the_field_of_the_syn_nothing_is_marked() {
    for (code, marks) in [(0b010, true), (0b011, false), (0b100, false), (0b110, false)] {
        let ecn = Ecn::new(Form::Accurate, &syn_ack(code, NOT_ECT));
        assert_eq!((ecn.marks(), ecn.was_syn_marked()), (marks, code == 0b110));
        let mut passive = accurate();
        assert!(passive.reads_handshake_code(&segment(Flags::ACK.with_ace(code), NOT_ECT, &[])));
        assert_eq!((passive.marks(), passive.was_syn_marked()), (marks, code == 0b110));
    }
}

#[test]
fn only_the_first_ack_of_a_syn_ack_is_read_for_its_code_and_none_with_data() {
    let mut ecn = accurate();
    assert!(!ecn.reads_handshake_code(&segment(Flags::ACK, NOT_ECT, DATA)));
    assert!(ecn.marks(), "ACE of data is a counter");
    assert!(ecn.reads_handshake_code(&segment(Flags::ACK.with_ace(0b010), NOT_ECT, &[])));
    assert!(ecn.reads_handshake_code(&segment(Flags::ACK.with_ace(0b011), NOT_ECT, &[])));
    assert!(ecn.marks());
}

#[test]
fn a_repeated_syn_ack_has_an_answer_for_its_own_field_and_is_counted_once() {
    let mut ecn = Ecn::new(Form::Accurate, &syn_ack(0b010, NOT_ECT));
    let number = ExtSeq::starting_at(IRS);
    assert_eq!(ecn.repeated_code(&syn_ack(0b010, CE), number + 1, FIRST), None);
    assert_eq!(ecn.repeated_code(&syn_ack(0b010, CE), number, FIRST + 1), None);
    assert_eq!(ecn.ace(), ACE);
    for field in [CE, CE] {
        assert_eq!(ecn.repeated_code(&syn_ack(0b010, field), number, FIRST), Some(0b110));
        assert_eq!(ecn.ace(), ACE + 1);
    }
    assert_eq!(ecn.repeated_code(&syn_ack(0b010, ECT_1), number, FIRST), Some(0b011));
}

#[test]
fn reports_are_answered_and_impossible_ones_end_marking() {
    let mut ecn = accurate();
    assert_eq!(ecn.on_ack(&ack_of(2, ACE)), ByteCount::ZERO);
    assert_eq!(ecn.on_ack(&ack_of(2, ACE + 1)), ByteCount(1000));
    // An ACK that may be an old one reports nothing.
    assert_eq!(ecn.on_ack(&ack_of(0, ACE + 2)), ByteCount::ZERO);
    assert!(ecn.marks());
    let mut cleared = accurate();
    assert_eq!(cleared.on_ack(&ack_of(0, 0)), ByteCount::ZERO);
    assert!(!cleared.marks() && cleared.is_on());
}

#[test]
fn when_marking_stops_what_arrives_is_reported_all_the_same() {
    for form in [Form::Classic, Form::Accurate] {
        let mut ecn = Ecn::new(form, &syn());
        let before = ecn.flags_now();
        ecn.stop_marking();
        ecn.on_segment(&segment(Flags::ACK, CE, DATA), false);
        ecn.on_new_data(&segment(Flags::ACK, CE, DATA));
        assert!(!ecn.marks() && ecn.is_on());
        assert_ne!(ecn.flags_now(), before);
    }
}
