//! The messages between two stations, and their bytes.
//!
//! A message is an acknowledgment of RFC 3543 with one vendor extension and an authenticator. Its
//! value begins with the epoch (8 bytes), then for
//!
//! - [`FLOWS`][]: the number of the part (1 byte), the number of parts, records of flows;
//! - [`PACKET`][]: the number of the item (4 bytes), flags, an IP packet;
//! - [`END`][]: the number of the item;
//! - [`RECEIVED`][]: the number of the first missing item, and a bit for each of the 64 items from
//!   there that was received, the lowest one first;
//! - [`ASK`][]: nothing.

use std::net::IpAddr;

use airtcp_wire::mobility::{
    self, Acknowledgment, Ends, Extension, Message, MobilityError, push_vendor,
};

use crate::home::{FLOWS, Key, MAX_PART};

/// The kind of the vendor extension with a packet that waited for the mobile.
pub const PACKET: u16 = 3;
/// The kind of the vendor extension that ends what the old station has kept for the mobile.
pub const END: u16 = 4;
/// The kind of the vendor extension with which the new station acknowledges the others.
pub const RECEIVED: u16 = 5;

/// The kind of the vendor extension with which the new station asks the old one for what it has.
pub const ASK: u16 = 6;

/// The maximum number of parts of the flow list, as for a home agent.
pub(super) const MAX_PARTS: usize = 128;
/// The maximum number of bytes of records in a part.
pub(super) const PART_LEN: usize = MAX_PART - 10;

/// The flags of a packet.
const RECORDED: u8 = 0x01;
const NEW: u8 = 0x02;

/// A part of what the old station sends. Items are numbered from 0: the parts of the flow list, the
/// packets that waited for the mobile, the end, and packets that came later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Item {
    /// Records of flows, and the number of parts.
    Part { parts: u8, records: Vec<u8> },
    /// A packet. `is_recorded`: the record of its flow includes it; `is_new`: the fixed host has
    /// sent its data only once.
    Packet { is_recorded: bool, is_new: bool, data: Vec<u8> },
    /// The end of what was kept.
    End,
}

impl Item {
    /// The bytes that it carries.
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Part { records: data, .. } | Self::Packet { data, .. } => data.len(),
            Self::End => 0,
        }
    }
}

/// The content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Content {
    /// An item, with its number.
    Item(u32, Item),
    /// All items below `next` were received, and `next + n` for each bit `n` of `later`.
    Received { next: u32, later: u64 },
    /// The mobile is at the sender: what does the old station have?
    Ask,
}

/// A message between two stations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Letter {
    /// The home address of the mobile.
    pub(super) home: IpAddr,
    pub(super) epoch: u64,
    pub(super) content: Content,
}

/// The reason why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Invalid {
    /// They have no valid authenticator.
    Unauthenticated,
    /// They have the wrong form.
    Malformed,
}

impl From<MobilityError> for Invalid {
    fn from(_: MobilityError) -> Self {
        Self::Malformed
    }
}

impl Letter {
    /// Returns the bytes of the message, with an authenticator made with `key`.
    pub(super) fn seal(&self, key: &Key) -> Vec<u8> {
        let mut value = self.epoch.to_be_bytes().to_vec();
        let kind = match &self.content {
            Content::Item(no, Item::Part { parts, records }) => {
                value.extend([*no as u8, *parts]);
                value.extend_from_slice(records);
                FLOWS
            }
            Content::Item(no, Item::Packet { is_recorded, is_new, data }) => {
                value.extend(no.to_be_bytes());
                let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
                value.push(flag(*is_recorded, RECORDED) | flag(*is_new, NEW));
                value.extend_from_slice(data);
                PACKET
            }
            Content::Item(no, Item::End) => {
                value.extend(no.to_be_bytes());
                END
            }
            Content::Received { next, later } => {
                value.extend(next.to_be_bytes());
                value.extend(later.to_be_bytes());
                RECEIVED
            }
            Content::Ask => ASK,
        };
        let identifier = (self.epoch >> 32) as u32;
        let head = Acknowledgment { informs: false, home: self.home, identifier };
        let mut message = Message::Acknowledgment(head).emit();
        push_vendor(&mut message, kind, &value);
        key.sign(&mut message, Ends::ForeignHome);
        message
    }

    /// Reads a message; `v6` is the IP version of its addresses.
    pub(super) fn open(bytes: &[u8], v6: bool, key: &Key) -> Result<Self, Invalid> {
        let (message, mut extensions) = mobility::parse(bytes, v6)?;
        let vendor = extensions.next();
        let (Some(Extension::Authentication(authentication)), None) =
            (extensions.next(), extensions.next())
        else {
            return Err(Invalid::Unauthenticated);
        };
        if authentication.ends != Ends::ForeignHome || !key.verifies(&authentication) {
            return Err(Invalid::Unauthenticated);
        }
        let (Message::Acknowledgment(head), Some(Extension::Vendor { kind, value })) =
            (message, vendor)
        else {
            return Err(Invalid::Malformed);
        };
        let (epoch, content) = read(kind, value).ok_or(Invalid::Malformed)?;
        Ok(Self { home: head.home, epoch, content })
    }
}

fn read(kind: u16, value: &[u8]) -> Option<(u64, Content)> {
    let (epoch, rest) = value.split_first_chunk()?;
    let content = match kind {
        FLOWS => {
            let ([part, parts], records) = rest.split_first_chunk()?;
            let is_part = part < parts && usize::from(*parts) <= MAX_PARTS;
            let records = Some(records).filter(|records| is_part && records.len() <= PART_LEN)?;
            Content::Item((*part).into(), Item::Part { parts: *parts, records: records.to_vec() })
        }
        PACKET => {
            let (no, rest) = rest.split_first_chunk()?;
            let (flags, data) = rest.split_first()?;
            if flags & !(RECORDED | NEW) != 0 {
                return None;
            }
            let (is_recorded, is_new) = (flags & RECORDED != 0, flags & NEW != 0);
            let packet = Item::Packet { is_recorded, is_new, data: data.to_vec() };
            Content::Item(u32::from_be_bytes(*no), packet)
        }
        END => Content::Item(u32::from_be_bytes(rest.try_into().ok()?), Item::End),
        RECEIVED => {
            let (next, later) = rest.split_first_chunk()?;
            let later = u64::from_be_bytes(later.try_into().ok()?);
            Content::Received { next: u32::from_be_bytes(*next), later }
        }
        ASK if rest.is_empty() => Content::Ask,
        _ => return None,
    };
    Some((u64::from_be_bytes(*epoch), content))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::home::Algorithm;

    fn key(fill: u8) -> Key {
        Key::new(400, Algorithm::HmacSha256, vec![fill; 16]).unwrap()
    }

    fn letters() -> Vec<Letter> {
        let contents = [
            Content::Item(3, Item::Part { parts: 4, records: vec![7; 20] }),
            Content::Item(4, Item::Packet { is_recorded: true, is_new: false, data: vec![8; 30] }),
            Content::Item(5, Item::Packet { is_recorded: false, is_new: true, data: vec![] }),
            Content::Item(6, Item::End),
            Content::Received { next: 2, later: 0b110 },
            Content::Ask,
        ];
        let homes = ["192.0.2.7", "2001:db8::7"].map(|home| home.parse().unwrap());
        let letter =
            |home| contents.clone().map(|content| Letter { home, epoch: 5 << 40 | 9, content });
        homes.into_iter().flat_map(letter).collect()
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for letter in letters() {
            let bytes = letter.seal(&key(1));
            let v6 = letter.home.is_ipv6();
            assert_eq!(Letter::open(&bytes, v6, &key(1)), Ok(letter));
            assert_eq!(Letter::open(&bytes, v6, &key(2)), Err(Invalid::Unauthenticated));
        }
    }

    #[test]
    fn no_bit_of_a_message_can_be_changed() {
        for letter in letters() {
            let (bytes, v6) = (letter.seal(&key(1)), letter.home.is_ipv6());
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(Letter::open(&changed, v6, &key(1)).is_err(), "bit {bit} of {letter:?}");
            }
            for len in 0..bytes.len() {
                assert!(Letter::open(&bytes[..len], v6, &key(1)).is_err());
            }
        }
    }

    #[test]
    fn values_that_cannot_be_are_malformed() {
        let epoch = [0; 8];
        let cases: [(u16, &[u8]); 11] = [
            (1, &[0; 4]),
            (FLOWS, &[0]),
            (FLOWS, &[4, 4]),
            (FLOWS, &[0, 129]),
            (FLOWS, &[0; PART_LEN + 3]),
            (PACKET, &[0; 4]),
            (PACKET, &[0, 0, 0, 1, 4]),
            (END, &[0; 5]),
            (RECEIVED, &[0; 11]),
            (RECEIVED, &[0; 13]),
            (ASK, &[0; 4]),
        ];
        for (kind, rest) in cases {
            assert_eq!(read(kind, &[&epoch[..], rest].concat()), None, "{kind} {rest:?}");
        }
        assert_eq!(read(END, &epoch[..7]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Letter::open(&bytes, false, &key(1));
            for kind in FLOWS..=ASK {
                let _ = read(kind, &bytes);
            }
        }
    }
}
