//! Packets for property tests: valid packets of both IP versions, and damaged ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::rows::number::{
    AUTH, DESTINATION, ESP, FRAGMENT, HOP_BY_HOP, MOBILITY, ROUTING, TCP, UDP,
};
use super::rows::{self, Extension};
use crate::ip;

/// Damage to a packet.
#[derive(Clone, Debug)]
enum Damage {
    Flip(Index, u8),
    Truncate(Index),
    Append(Vec<u8>),
    /// Replaces the low byte of the length field, and optionally clears the high byte.
    Length(u8, bool),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => any::<Index>().prop_map(Damage::Truncate),
        1 => vec(any::<u8>(), 1..12).prop_map(Damage::Append),
        1 => (prop_oneof![Just(0), any::<u8>()], any::<bool>())
            .prop_map(|(low, is_short)| Damage::Length(low, is_short)),
    ]
}

fn apply(packet: &mut Vec<u8>, damage: Damage) {
    match damage {
        _ if packet.is_empty() => {}
        // Half of the flipped bits are in the headers.
        Damage::Flip(at, bit) => {
            let len = if bit % 2 == 0 { packet.len() } else { packet.len().min(48) };
            packet[at.index(len)] ^= 1 << bit;
        }
        Damage::Truncate(at) => packet.truncate(at.index(packet.len() + 1)),
        Damage::Append(bytes) => packet.extend(bytes),
        Damage::Length(low, is_short) => {
            let at = if packet[0] >> 4 == 4 { 2 } else { 4 };
            if let Some(field) = packet.get_mut(at..at + 2) {
                field[0] *= u8::from(!is_short);
                field[1] = low;
            }
        }
    }
}

fn extension() -> impl Strategy<Value = Extension> {
    let raw = |kind: u8| {
        (0u8..3, vec(any::<u8>(), 22), prop_oneof![3 => Just(0u8), 1 => any::<u8>()]).prop_map(
            move |(len, content, left)| {
                let mut bytes = [&[0, len, 0, left], &content[..20]].concat();
                bytes.truncate(8 * (1 + usize::from(len)));
                (kind, bytes)
            },
        )
    };
    let authentication = (1u8..6, vec(any::<u8>(), 26)).prop_map(|(len, content)| {
        let bytes = [&[0, len][..], &content].concat();
        (AUTH, bytes[..4 * (2 + usize::from(len))].to_vec())
    });
    let atomic = any::<u8>().prop_map(|id| (FRAGMENT, vec![0, 0, 0, 0, 0, 0, 0, id]));
    prop_oneof![
        2 => raw(HOP_BY_HOP),
        4 => raw(DESTINATION),
        2 => raw(ROUTING),
        2 => atomic,
        1 => (0u16..3, any::<bool>()).prop_map(|(at, more)| rows::fragment(8 * at, more)),
        1 => authentication,
    ]
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![1]),
        Just(vec![1, 1]),
        any::<[u8; 2]>().prop_map(|mss| [&[2, 4], &mss[..]].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        Just(vec![4, 2]),
        any::<[u8; 8]>().prop_map(|stamps| [&[8, 10], &stamps[..]].concat()),
        vec(any::<[u8; 8]>(), 1..=4).prop_map(|blocks| {
            [&[5, 2 + 8 * blocks.len() as u8], &blocks.concat()[..]].concat()
        }),
        (select(vec![172u8, 174]), vec(any::<u8>(), 0..14)).prop_map(|(kind, body)| [
            &[kind, 2 + body.len() as u8],
            &body[..]
        ]
        .concat()),
    ];
    vec(option, 0..5).prop_map(|options| {
        let mut list = options.concat();
        list.truncate(40);
        list.resize(list.len().next_multiple_of(4), 0);
        list
    })
}

fn payload(is_v6: bool) -> impl Strategy<Value = (u8, Vec<u8>)> {
    let data = || vec(any::<u8>(), 0..40);
    let segment = (options(), data(), any::<[u8; 16]>()).prop_map(move |(list, data, fields)| {
        let segment = rows::tcp_edited(is_v6, &[], |segment| {
            segment.clear();
            segment.extend(&fields[..12]);
            segment.extend([(5 + list.len() as u8 / 4) << 4 | fields[12] & 0x0f]);
            segment.extend(&fields[13..]);
            segment.extend([0; 4]);
            segment.extend(list);
            segment.extend(data);
        });
        (TCP, segment)
    });
    let beyond = prop_oneof![3 => Just(vec![]), 1 => vec(any::<u8>(), 1..4)];
    let datagram = (data(), beyond, 0u8..8).prop_map(move |(data, beyond, field)| {
        let mut datagram = rows::udp(is_v6, &data, &beyond);
        match field {
            // Removes the checksum, or the length.
            0 | 1 => datagram[6..8].fill(0),
            2 => datagram[4..6].fill(0),
            _ => {}
        }
        (UDP, datagram)
    });
    let other = select(vec![ip::ICMP, ip::ICMPV6, ip::NO_NEXT_HEADER, ESP, AUTH, MOBILITY, 132]);
    let other = (prop_oneof![other, any::<u8>()], data());
    prop_oneof![4 => segment, 2 => datagram, 1 => other]
}

fn whole() -> impl Strategy<Value = Vec<u8>> {
    let extensions = prop_oneof![
        2 => vec(extension(), 0..4),
        1 => (0usize..11, extension()).prop_map(|(count, last)| {
            let mut extensions = vec![rows::options(DESTINATION); count];
            extensions.push(last);
            extensions
        }),
    ];
    let v6 = (extensions, payload(true))
        .prop_map(|(extensions, (protocol, payload))| rows::v6(&extensions, protocol, &payload));
    let field = prop_oneof![3 => Just([0x40, 0]), 1 => any::<[u8; 2]>(), 1 => Just([0x20, 0])];
    let v4 = (0usize..4, field, payload(false)).prop_map(|(words, field, (protocol, payload))| {
        let mut packet = rows::v4(&vec![1; 4 * words], protocol, &payload);
        packet[6..8].copy_from_slice(&field);
        packet
    });
    prop_oneof![v4, v6]
}

/// Packets of both IP versions, most of them damaged; most IPv4 headers have a correct checksum
/// nevertheless.
pub(super) fn packets() -> impl Strategy<Value = Vec<u8>> {
    (whole(), vec(damage(), 0..4), prop_oneof![5 => Just(true), 1 => Just(false)]).prop_map(
        |(mut packet, damages, is_sealed)| {
            damages.into_iter().for_each(|damage| apply(&mut packet, damage));
            if is_sealed && packet.len() >= 20 && packet[0] >> 4 == 4 {
                rows::seal(&mut packet);
            }
            packet
        },
    )
}
