//! Encoding and decoding of packets.

use proptest::prelude::*;

use super::*;

fn lost() -> LostWriter {
    let mut lost = LostWriter::default();
    lost.push(7, 1, true);
    lost
}

fn packets(lost: &LostWriter) -> Vec<Packet<'_>> {
    let cookie = Cookie { made: 1 << 40, mac: u64::MAX };
    let params = Params { packet_size: 1400, window: 99 };
    let data = Data {
        number: 1,
        transmission: 2,
        sent: 3,
        fin: true,
        pause: false,
        rate_bit: true,
        recovery_bit: true,
        train: Train::Last,
        nonce: true,
        payload: b"payload",
    };
    let report = Report {
        kind: ReportKind::Ack,
        next: 4,
        nonce_sum: true,
        limit: 5,
        newest: 6,
        echo: Some((7, 8)),
        lost: Lost::default(),
        feedback: None,
    };
    let feedback = Feedback {
        since: 1,
        send_gap: 2,
        receive_gap: 3,
        train_gap: Some(5),
        congested: true,
        counts: Counts { first_counted: 6, congestive: 7, wireless: 8, received: 9 },
    };
    let sack = Report { kind: ReportKind::Sack, lost: lost.lost(), ..report };
    let nack = Report { kind: ReportKind::Nack, ..sack };
    let fed = Report { kind: ReportKind::Feedback, feedback: Some(feedback), ..report };
    let bodies = [
        Body::Syn { sent: 9 },
        Body::SynEcho { cookie, echo: 9 },
        Body::Start { cookie, attempt: 2, params },
        Body::StartEcho { params },
        Body::Data(data),
        Body::Report(Report { kind: ReportKind::Cack, echo: None, ..report }),
        Body::Report(report),
        Body::Report(nack),
        Body::Report(sack),
        Body::Report(fed),
        Body::Ping { next: 1, sent: 2 },
        Body::Close { code: 3 },
        Body::Versions,
    ];
    bodies.map(|body| Packet { connection: 0xdead_beef_0123, rtt: 1_234, body }).to_vec()
}

#[test]
fn what_is_written_is_read() {
    let lost = lost();
    for packet in packets(&lost) {
        let mut bytes = vec![0xaa; 3];
        assert_eq!(packet.encode(&mut bytes), bytes.len() - 3);
        assert_eq!(Packet::decode(&bytes[3..]), Ok(packet));
    }
}

#[test]
fn no_reply_is_larger_than_what_asked_for_it() {
    let lost = lost();
    let sizes =
        packets(&lost).iter().map(|packet| packet.encode(&mut Vec::new())).collect::<Vec<_>>();
    let [syn, syn_echo, start, start_echo] = [sizes[0], sizes[1], sizes[2], sizes[3]];
    assert!(syn >= syn_echo && start >= start_echo, "{sizes:?}");
    let close = Packet { connection: 0, rtt: 0, body: Body::Close { code: 1 } };
    assert!(start >= close.encode(&mut Vec::new()));
}

#[test]
fn any_flipped_bit_is_detected() {
    let lost = lost();
    for packet in packets(&lost) {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Packet::decode(&bytes), Err(Malformed::Checksum), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn another_version_is_distinguished_from_damage() {
    let mut bytes = Vec::new();
    Packet { connection: 5, rtt: 0, body: Body::Syn { sent: 1 } }.encode(&mut bytes);
    bytes[0] = (VERSION + 1) << 4;
    let sum = checksum(&bytes);
    bytes[12..16].copy_from_slice(&sum.to_be_bytes());
    let other = Malformed::Version { version: VERSION + 1, syn: true, connection: 5 };
    assert_eq!(Packet::decode(&bytes), Err(other));
}

#[test]
fn numbers_are_expanded_to_the_nearest() {
    assert_eq!(expand(5, 3), 3);
    assert_eq!(expand(u64::from(u32::MAX), 2), (1 << 32) + 2);
    assert_eq!(expand((1 << 32) + 1, u32::MAX), u64::from(u32::MAX));
    assert_eq!(expand(0, u32::MAX), 0, "there is nothing below zero");
}

proptest! {
    #[test]
    fn nothing_makes_the_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), fix: bool) {
        if fix && bytes.len() >= HEADER {
            bytes[0] = VERSION << 4 | bytes[0] & 15;
            let sum = checksum(&bytes);
            bytes[12..16].copy_from_slice(&sum.to_be_bytes());
        }
        if let Ok(packet) = Packet::decode(&bytes) {
            let mut again = Vec::new();
            packet.encode(&mut again);
            prop_assert_eq!(Packet::decode(&again), Ok(packet));
        }
    }

    #[test]
    fn a_round_trip_time_is_kept_to_a_thousandth(micros in 0u64..1 << 42) {
        let kept = decode_rtt(encode_rtt(micros));
        prop_assert!(kept <= micros && micros - kept <= micros >> 10, "{kept}");
    }
}
