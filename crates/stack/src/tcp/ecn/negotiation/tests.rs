use airtcp_types::SeqNumber;
use airtcp_wire::options::TcpOptions;
use airtcp_wire::payload::Payload;

use super::*;

/// A SYN, or with `ack` a SYN-ACK, with these ECN flags in a packet with this ECN field.
fn syn(ace: u8, ecn: u8, ack: bool) -> Segment<'static> {
    let flags = Flags { syn: true, ack, ..Flags::default() };
    Segment {
        seq: SeqNumber(0),
        ack: SeqNumber(0),
        flags: flags.with_ace(ace),
        reserved: 0,
        ecn,
        window: 0,
        options: TcpOptions::default(),
        payload: Payload::default(),
        size: None,
    }
}

fn of(mode: EcnMode) -> Negotiation {
    Negotiation::new(mode, false)
}

/// The flags of the first four SYNs of `mode`.
fn syns(mode: EcnMode) -> [u8; 4] {
    [1, 2, 3, 4].map(|sent| of(mode).syn(sent).ace())
}

// Shows: RFC9768-3.1.1-1, RFC9768-3.1.3-2, RFC9768-3.1.4.1-1, RFC9768-3.1.4.1-2, RFC9768-3.1.5-3
#[test]
fn a_syn_asks_for_what_the_mode_says_and_later_ones_for_nothing() {
    for mode in EcnMode::ALL {
        let expected = match mode {
            EcnMode::Off | EcnMode::Passive | EcnMode::PassiveAccurate => [0; 4],
            EcnMode::Active | EcnMode::ActiveAccurate => [0b011, 0, 0, 0],
            EcnMode::Accurate => [0b111, 0b111, 0, 0],
        };
        assert_eq!(syns(mode), expected, "{mode}");
    }
    let needed = |mode| Negotiation::new(mode, true).syn(1).ace();
    assert_eq!([EcnMode::Off, EcnMode::Passive].map(needed), [0, 0b011]);
    assert_eq!([EcnMode::PassiveAccurate, EcnMode::Accurate].map(needed), [0b011, 0b111]);
}

// Shows: RFC9768-3.1.1-2, RFC9768-3.1.1-3, RFC9768-3.1.1-4, RFC9768-3.1.2-2, RFC9768-3.1.2-3
// Shows: RFC9768-3.1.3-1, RFC9768-3.1.3-4
#[test]
fn a_syn_is_answered_as_table_2_has_it() {
    for mode in [EcnMode::Accurate, EcnMode::ActiveAccurate, EcnMode::PassiveAccurate] {
        for ecn in [NOT_ECT, ECT_1, ECT_0, CE] {
            let answer = |ace| {
                let mut negotiation = of(mode);
                let form = negotiation.on_syn(&syn(ace, ecn, false), false);
                (form, negotiation.syn_ack(0).ace())
            };
            // The first block of the table, and RFC 9768 section 3.1.3: undefined codes count
            // as 111.
            let code = [0b010, 0b011, 0b100, 0b110]
                [[NOT_ECT, ECT_1, ECT_0, CE].iter().position(|&one| one == ecn).unwrap()];
            for ace in [0b001, 0b010, 0b100, 0b101, 0b110, 0b111] {
                assert_eq!(answer(ace), (Form::Accurate, code), "{mode} {ace:03b} {ecn:02b}");
            }
            // The third block of the table. Without AccECN, a SYN with ECT shows a path that
            // changes the field.
            let classic = match ecn {
                NOT_ECT => (Form::Classic, 0b001),
                _ => (Form::Nothing, 0b000),
            };
            assert_eq!(answer(0b011), classic, "{mode} {ecn:02b}");
            assert_eq!(answer(0b000), (Form::Nothing, 0b000), "{mode} {ecn:02b}");
        }
    }
}

// Shows: RFC9768-3.1.5-10
#[test]
fn one_that_knows_ecn_alone_answers_a_syn_for_accecn_as_one_for_ecn() {
    for (mode, form) in [
        (EcnMode::Off, Form::Nothing),
        (EcnMode::Passive, Form::Classic),
        (EcnMode::Active, Form::Classic),
    ] {
        let mut negotiation = of(mode);
        assert_eq!(negotiation.on_syn(&syn(0b111, NOT_ECT, false), false), form);
        let expected = if form == Form::Classic { 0b001 } else { 0b000 };
        assert_eq!(negotiation.syn_ack(0).ace(), expected);
    }
}

// Shows: RFC9768-3.1.1-5, RFC9768-3.1.2-1, RFC9768-3.1.2-4, RFC9768-3.1.3-3
#[test]
fn a_syn_ack_is_taken_as_table_2_has_it() {
    for ecn in [NOT_ECT, ECT_1, ECT_0, CE] {
        let taken = |mode, ace| of(mode).on_syn_ack(&syn(ace, ecn, true));
        let accurate = (0..8).map(|ace| taken(EcnMode::Accurate, ace)).collect::<Vec<_>>();
        use Form::{Accurate, Classic, Nothing};
        let table = [Nothing, Classic, Accurate, Accurate, Accurate, Accurate, Accurate, Nothing];
        assert_eq!(accurate, table);
        for mode in [EcnMode::Active, EcnMode::ActiveAccurate] {
            let classic = (0..8).map(|ace| taken(mode, ace)).collect::<Vec<_>>();
            let granted = |ace: usize| if matches!(ace, 0b001 | 0b101) { Classic } else { Nothing };
            assert_eq!(classic, (0..8).map(granted).collect::<Vec<_>>());
        }
        for mode in [EcnMode::Off, EcnMode::Passive, EcnMode::PassiveAccurate] {
            assert!((0..8).all(|ace| taken(mode, ace) == Nothing), "{mode}: nothing was asked for");
        }
    }
}

#[test]
fn codes_of_an_unchanged_ecn_field() {
    let unchanged: Vec<u8> = (0..8).filter(|&code| is_unchanged(code)).collect();
    assert_eq!(unchanged, [0b000, 0b001, 0b010, 0b101, 0b111]);
    for ecn in [NOT_ECT, ECT_1, ECT_0, CE] {
        assert_eq!(echoed(echo_of(ecn)), Some(ecn));
    }
}

// Shows: RFC9768-3.1.5-1, RFC9768-3.1.5-4, RFC9768-3.1.5-5, RFC9768-3.1.5-7, RFC9768-3.1.5-8
// Shows: RFC9768-3.1.5-9
#[test]
fn the_first_syn_decides_and_the_latest_is_reported() {
    let repeated = |first, then, ecn| {
        let mut negotiation = of(EcnMode::Accurate);
        let form = negotiation.on_syn(&syn(first, NOT_ECT, false), false);
        let says = negotiation.on_repeated_syn(&syn(then, ecn, false));
        assert_eq!(negotiation.agreed(), form);
        (says, negotiation.syn_ack(0).ace())
    };
    assert_eq!(repeated(0b111, 0b111, CE), (Repeat::Same, 0b110));
    assert_eq!(repeated(0b111, 0b000, ECT_0), (Repeat::Plain, 0b100));
    assert_eq!(repeated(0b111, 0b011, NOT_ECT).0, Repeat::Contradiction);
    assert_eq!(repeated(0b011, 0b111, NOT_ECT).0, Repeat::Contradiction);
    assert_eq!(repeated(0b011, 0b011, NOT_ECT), (Repeat::Same, 0b001));
    assert_eq!(repeated(0b011, 0b000, NOT_ECT), (Repeat::Plain, 0b000));
    for then in [0b000, 0b011, 0b111] {
        assert_eq!(repeated(0b000, then, NOT_ECT), (Repeat::Same, 0b000));
    }
    // An end without AccECN treats 111 as a request for ECN.
    let mut passive = of(EcnMode::Passive);
    passive.on_syn(&syn(0b011, NOT_ECT, false), false);
    assert_eq!(passive.on_repeated_syn(&syn(0b111, NOT_ECT, false)), Repeat::Same);
}

// Shows: RFC9768-3.2.3.2.2-2
#[test]
fn after_two_time_outs_a_syn_ack_grants_nothing_and_the_form_stays() {
    let mut negotiation = of(EcnMode::PassiveAccurate);
    negotiation.on_syn(&syn(0b111, NOT_ECT, false), false);
    let answers = [0, 1, 2, 3].map(|timeouts| negotiation.syn_ack(timeouts).ace());
    assert_eq!(answers, [0b010, 0b010, 0b000, 0b000]);
    assert!(negotiation.is_plain() && negotiation.agreed() == Form::Accurate);
}

// Shows: RFC9768-3.1.2-5
#[test]
fn where_both_open_at_once_the_poorer_of_both_wishes_is_agreed_on() {
    let crossed = |mode, ace| of(mode).on_syn(&syn(ace, NOT_ECT, false), true);
    assert_eq!(crossed(EcnMode::Accurate, 0b111), Form::Accurate);
    assert_eq!(crossed(EcnMode::Accurate, 0b011), Form::Classic);
    assert_eq!(crossed(EcnMode::Accurate, 0b000), Form::Nothing);
    assert_eq!(crossed(EcnMode::ActiveAccurate, 0b111), Form::Classic);
    assert_eq!(crossed(EcnMode::PassiveAccurate, 0b111), Form::Nothing);
    let contradicts = |first, ace| {
        let mut negotiation = of(EcnMode::Accurate);
        negotiation.on_syn(&syn(first, NOT_ECT, false), true);
        negotiation.on_crossing_syn_ack(&syn(ace, NOT_ECT, true))
    };
    let all = |first| (0..8).filter(|&ace| contradicts(first, ace)).collect::<Vec<u8>>();
    assert_eq!((all(0b111), all(0b011), all(0b000)), (vec![1], vec![2, 3, 4, 6], vec![]));
}
