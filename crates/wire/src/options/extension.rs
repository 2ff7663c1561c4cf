//! The options of this project's sender strategies: HACK, HACK-ACK, and transmission numbers.
//!
//! HACK's options are written as in the paper (HACK 3) with kinds 14 and 15, or with the
//! experimental kind of RFC 6994, for paths and peers that use these kinds as in RFC 1146.
//! Transmission numbers always use the experimental kind. Kind 254 is also read.
//!
//! ```text
//! HACK           14  4  checksum
//! HACK           253 6  "HC"  checksum          after two NOPs
//! HACK-ACK       15  6  sequence number         after two NOPs
//! HACK-ACK       253 8  "HA"  sequence number
//! Tx numbers     253 4  "TN"                    offer, on a SYN
//!                253 8  "TN"  echo              segment without data
//!                253 12 "TN"  number  echo      segment with data
//! ```
//!
//! All start and end at a multiple of four bytes, so that HACK's checksum is an aligned 16-bit word
//! of the header. The ExIDs are this project's choice and not registered with IANA. A transmission
//! number has 32 bits and is never zero; an echo of zero means that none has been received yet.
//!
//! An option of kind 14 or 15 with another length is one of RFC 1146, and an unknown ExID belongs
//! to another experiment: both are skipped as unknown.

use std::num::NonZeroU32;

use airtcp_types::SeqNumber;

use super::{TcpOptions, Writer, walk};

const KIND_HACK: u8 = 14;
const KIND_HACK_ACK: u8 = 15;
/// RFC 4727 section 2.1, RFC 6994.
const KIND_EXPERIMENT: u8 = 253;
const KIND_EXPERIMENT_2: u8 = 254;

/// HACK's ExID (RFC 6994 section 3), "HC" in ASCII.
pub const EXID_HACK: [u8; 2] = *b"HC";
/// HACK-ACK's ExID, "HA" in ASCII.
pub const EXID_HACK_ACK: [u8; 2] = *b"HA";
/// The ExID of transmission numbers, "TN" in ASCII.
pub const EXID_TX_NUMBERS: [u8; 2] = *b"TN";

/// The encoding of HACK's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HackForm {
    /// Kinds 14 and 15, as in the paper.
    #[default]
    Kinds,
    /// The experimental kind with an ExID (RFC 6994).
    ExId,
}

impl HackForm {
    /// The bytes that the checksum option occupies in every segment with data.
    pub const fn overhead(self) -> usize {
        match self {
            Self::Kinds => 4,
            Self::ExId => 8,
        }
    }
}

/// HACK: a checksum of the header that contains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hack {
    /// The encoding of the option.
    pub form: HackForm,
    /// The checksum (see [`header_checksum`](crate::header_checksum)); zero on a SYN.
    pub checksum: u16,
}

/// HACK-ACK: a segment arrived with an intact header and corrupted data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HackAck {
    /// The encoding of the option.
    pub form: HackForm,
    /// The sequence number of the corrupted segment.
    pub corrupted: SeqNumber,
}

/// The number of this transmission, and the echo of the peer's last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxNumbers {
    /// The number of the transmission that this segment is.
    pub number: Option<NonZeroU32>,
    /// The number of the segment that triggered this one, or of the last one received.
    pub echo: Option<NonZeroU32>,
}

impl TxNumbers {
    /// The bytes that the option occupies in every segment with data.
    pub const LEN: usize = 12;
}

impl TcpOptions {
    /// Stores one of these options; returns false for any other.
    pub(super) fn take_extension(&mut self, kind: u8, body: &[u8]) -> bool {
        let word = |body: [u8; 4]| NonZeroU32::new(u32::from_be_bytes(body));
        match (kind, body) {
            (KIND_HACK, &[a, b]) => {
                let checksum = u16::from_be_bytes([a, b]);
                self.hack = Some(Hack { form: HackForm::Kinds, checksum });
            }
            (KIND_HACK_ACK, &[a, b, c, d]) => {
                let corrupted = SeqNumber(u32::from_be_bytes([a, b, c, d]));
                self.hack_ack = Some(HackAck { form: HackForm::Kinds, corrupted });
            }
            (KIND_EXPERIMENT | KIND_EXPERIMENT_2, &[x, y, ref rest @ ..]) => match ([x, y], rest) {
                (EXID_HACK, &[a, b]) => {
                    let checksum = u16::from_be_bytes([a, b]);
                    self.hack = Some(Hack { form: HackForm::ExId, checksum });
                }
                (EXID_HACK_ACK, &[a, b, c, d]) => {
                    let corrupted = SeqNumber(u32::from_be_bytes([a, b, c, d]));
                    self.hack_ack = Some(HackAck { form: HackForm::ExId, corrupted });
                }
                (EXID_TX_NUMBERS, &[]) => self.tx_numbers = Some(TxNumbers::default()),
                (EXID_TX_NUMBERS, &[a, b, c, d]) => {
                    self.tx_numbers = Some(TxNumbers { number: None, echo: word([a, b, c, d]) });
                }
                (EXID_TX_NUMBERS, &[a, b, c, d, e, f, g, h]) => {
                    let (number, echo) = (word([a, b, c, d]), word([e, f, g, h]));
                    self.tx_numbers = Some(TxNumbers { number, echo });
                }
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    /// Writes those of these options that are set and fit.
    pub(super) fn put_extensions(&self, writer: &mut Writer<'_>) {
        const NOP: u8 = super::KIND_NOP;
        if let Some(Hack { form, checksum }) = self.hack {
            let [a, b] = checksum.to_be_bytes();
            let [x, y] = EXID_HACK;
            match form {
                HackForm::Kinds => writer.put_if_room(&[KIND_HACK, 4, a, b]),
                HackForm::ExId => {
                    writer.put_if_room(&[NOP, NOP, KIND_EXPERIMENT, 6, x, y, a, b]);
                }
            }
        }
        if let Some(HackAck { form, corrupted }) = self.hack_ack {
            let [a, b, c, d] = corrupted.0.to_be_bytes();
            let [x, y] = EXID_HACK_ACK;
            match form {
                HackForm::Kinds => {
                    writer.put_if_room(&[NOP, NOP, KIND_HACK_ACK, 6, a, b, c, d]);
                }
                HackForm::ExId => {
                    writer.put_if_room(&[KIND_EXPERIMENT, 8, x, y, a, b, c, d]);
                }
            }
        }
        if let Some(TxNumbers { number, echo }) = self.tx_numbers {
            let word = |n: Option<NonZeroU32>| n.map_or(0, NonZeroU32::get).to_be_bytes();
            let [x, y] = EXID_TX_NUMBERS;
            let ([a, b, c, d], [e, f, g, h]) = (word(number), word(echo));
            match (number, echo) {
                (None, None) => writer.put_if_room(&[KIND_EXPERIMENT, 4, x, y]),
                (None, Some(_)) => writer.put_if_room(&[KIND_EXPERIMENT, 8, x, y, e, f, g, h]),
                (Some(_), _) => {
                    writer.put_if_room(&[KIND_EXPERIMENT, 12, x, y, a, b, c, d, e, f, g, h]);
                }
            }
        }
    }
}

/// Returns the offset of HACK's two-byte checksum in an option list, if there is one.
///
/// A device that edits a header in transit has to update it along with the TCP checksum.
///
/// ```
/// use airtcp_wire::options::extension::checksum_at;
///
/// assert_eq!(checksum_at(&[1, 1, 1, 1, 14, 4, 0xab, 0xcd]), Some(6));
/// assert_eq!(checksum_at(&[3, 3, 7, 0]), None);
/// ```
pub fn checksum_at(options: &[u8]) -> Option<usize> {
    let mut found = None;
    for option in walk(options).flatten() {
        found = match (option.kind, option.body) {
            (KIND_HACK, [_, _]) => Some(option.at + 2),
            (KIND_EXPERIMENT | KIND_EXPERIMENT_2, &[x, y, _, _]) if [x, y] == EXID_HACK => {
                Some(option.at + 4)
            }
            _ => found,
        };
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Timestamps;

    fn encoded(options: &TcpOptions) -> Vec<u8> {
        let mut buf = [0xaa; super::super::MAX_LEN];
        let len = options.encode(&mut buf);
        buf[..len].to_vec()
    }

    fn form() -> impl Strategy<Value = HackForm> {
        prop_oneof![Just(HackForm::Kinds), Just(HackForm::ExId)]
    }

    /// Options that a segment can have: a HACK-ACK has no data and therefore no HACK checksum.
    pub(crate) fn extensions() -> impl Strategy<Value = TcpOptions> {
        let numbers = any::<(Option<NonZeroU32>, Option<NonZeroU32>)>()
            .prop_map(|(n, e)| TxNumbers { number: n, echo: e });
        (form(), any::<u8>(), any::<(u16, u32)>(), prop::option::of(numbers)).prop_map(
            |(form, which, (checksum, seq), tx_numbers)| TcpOptions {
                hack: (which % 3 == 1).then_some(Hack { form, checksum }),
                hack_ack: (which % 3 == 2).then_some(HackAck { form, corrupted: SeqNumber(seq) }),
                tx_numbers,
                ..TcpOptions::default()
            },
        )
    }

    #[test]
    fn hacks_options_are_the_papers() {
        let hack = Some(Hack { form: HackForm::Kinds, checksum: 0xabcd });
        assert_eq!(encoded(&TcpOptions { hack, ..Default::default() }), [14, 4, 0xab, 0xcd]);
        let corrupted = SeqNumber(0x0102_0304);
        let hack_ack = Some(HackAck { form: HackForm::Kinds, corrupted });
        let special = TcpOptions { hack_ack, ..Default::default() };
        assert_eq!(encoded(&special), [1, 1, 15, 6, 1, 2, 3, 4]);
    }

    #[test]
    fn the_experimental_forms_are_rfc_6994s() {
        let form = HackForm::ExId;
        let hack = Some(Hack { form, checksum: 0xabcd });
        let expected = [1, 1, 253, 6, b'H', b'C', 0xab, 0xcd];
        assert_eq!(encoded(&TcpOptions { hack, ..Default::default() }), expected);
        let hack_ack = Some(HackAck { form, corrupted: SeqNumber(0x0102_0304) });
        let expected = [253, 8, b'H', b'A', 1, 2, 3, 4];
        assert_eq!(encoded(&TcpOptions { hack_ack, ..Default::default() }), expected);
        let read = TcpOptions::parse(&[254, 6, b'H', b'C', 7, 8]);
        assert_eq!(read.hack, Some(Hack { form, checksum: 0x0708 }));
    }

    #[test]
    fn transmission_numbers_take_as_little_as_they_can() {
        let written = |number, echo| {
            let [number, echo] = [number, echo].map(NonZeroU32::new);
            let tx_numbers = Some(TxNumbers { number, echo });
            encoded(&TcpOptions { tx_numbers, ..Default::default() })
        };
        assert_eq!(written(0, 0), [253, 4, b'T', b'N']);
        assert_eq!(written(0, 5), [253, 8, b'T', b'N', 0, 0, 0, 5]);
        assert_eq!(written(3, 0), [253, 12, b'T', b'N', 0, 0, 0, 3, 0, 0, 0, 0]);
        assert_eq!(written(3, 5).len(), TxNumbers::LEN);
    }

    #[test]
    fn what_rfc_1146_had_those_kinds_for_is_unknown_and_no_error() {
        let read = TcpOptions::parse(&[14, 3, 1, 15, 5, 1, 2, 3, 253, 4, 0xf9, 0x89]);
        assert_eq!(read, TcpOptions { unknown: 3, ..Default::default() });
    }

    #[test]
    fn a_special_ack_has_room_for_two_blocks_beside_timestamps() {
        let timestamps = Some(Timestamps::default());
        for form in [HackForm::Kinds, HackForm::ExId] {
            let hack_ack = Some(HackAck { form, corrupted: SeqNumber(1) });
            let options = TcpOptions { timestamps, hack_ack, ..Default::default() };
            assert_eq!(options.sack_room(), 2);
        }
    }

    proptest! {
        #[test]
        fn the_checksum_is_found_at_an_even_place(
            extensions in extensions(),
            ts in any::<bool>(),
        ) {
            let timestamps = ts.then(Timestamps::default);
            let options = TcpOptions { timestamps, window_scale: Some(3), ..extensions };
            let bytes = encoded(&options);
            match (checksum_at(&bytes), options.hack) {
                (Some(at), Some(hack)) => {
                    prop_assert!(at.is_multiple_of(2));
                    prop_assert_eq!(&bytes[at..at + 2], &hack.checksum.to_be_bytes());
                }
                (at, hack) => prop_assert!(at.is_none() && hack.is_none()),
            }
        }

        #[test]
        fn the_checksum_found_is_the_one_that_is_read(
            bytes in prop::collection::vec(
                prop_oneof![Just(14u8), Just(4), Just(1), any::<u8>()],
                0..40,
            ),
        ) {
            let read = TcpOptions::parse(&bytes);
            let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            let found = checksum_at(&bytes).map(word);
            prop_assert_eq!(read.hack.map(|hack| hack.checksum), found);
        }
    }
}
