//! TCP options: one codec for all crates.
//!
//! Kinds and lengths follow the IANA registry: MSS (RFC 9293 section 3.7.1), window scale and
//! timestamps (RFC 7323), SACK permitted and SACK (RFC 2018), AccECN (RFC 9768). Options are
//! written in Linux's order and with Linux's padding; those of [`extension`] are between window
//! scale and SACK. An option of unknown kind, or with a length that is wrong for its kind, is
//! skipped and counted. An invalid length, below two or beyond the list, ends the list; as in
//! Linux, the options before it are valid.

mod accecn;
pub mod extension;

use std::fmt;

use airtcp_types::SeqNumber;

pub use accecn::{AccEcn, Order};
pub use extension::{Hack, HackAck, HackForm, TxNumbers};

use accecn::{KIND_ORDER_0, KIND_ORDER_1};

/// The maximum length of the options in a TCP header, in bytes.
pub const MAX_LEN: usize = 40;
/// The maximum number of SACK blocks (RFC 2018 section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

const LEN_MSS: usize = 4;
const LEN_WINDOW_SCALE: usize = 3;
const LEN_SACK_PERMITTED: usize = 2;
const LEN_TIMESTAMPS: usize = 10;
const LEN_SACK_BLOCK: usize = 8;

/// The options of one segment.
///
/// ```
/// use airtcp_wire::options::{Timestamps, TcpOptions};
///
/// let syn = TcpOptions {
///     mss: Some(1460),
///     window_scale: Some(7),
///     sack_permitted: true,
///     timestamps: Some(Timestamps { val: 1, ecr: 0 }),
///     ..TcpOptions::default()
/// };
/// let mut bytes = [0; 40];
/// let len = syn.encode(&mut bytes);
/// assert_eq!(len, 20);
/// assert_eq!(TcpOptions::parse(&bytes[..len]), syn);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// The peer's maximum segment size, without headers (bytes).
    pub mss: Option<u16>,
    /// The shift of the peer's window field; values above 14 are reported as received.
    pub window_scale: Option<u8>,
    /// Whether the peer accepts SACK blocks.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<Timestamps>,
    /// The SACK blocks: data that the peer holds above its cumulative ACK, in its order.
    pub sack: SackBlocks,
    /// The number of bytes that arrived with each ECN codepoint (RFC 9768 section 3.2.3).
    pub accecn: Option<AccEcn>,
    /// The checksum of this header (HACK 3); on a SYN, the offer to send it.
    pub hack: Option<Hack>,
    /// The segment that arrived corrupted (HACK 3).
    pub hack_ack: Option<HackAck>,
    /// The number of this transmission, and the echo of the peer's; on a SYN, the offer of both.
    pub tx_numbers: Option<TxNumbers>,
    /// The number of skipped options of unknown kind. Not written.
    pub unknown: u8,
    /// The number of options with an invalid length: wrong for their kind, below two, or beyond the
    /// end of the list. Not written.
    pub malformed: u8,
}

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub val: u32,
    /// TSecr: the last clock value received from the peer; invalid without the ACK flag.
    pub ecr: u32,
}

/// Up to four SACK blocks, in wire order.
///
/// The codec does not validate them: a block may run backwards or lie anywhere.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// No blocks.
    pub const EMPTY: Self =
        Self { blocks: [(SeqNumber(0), SeqNumber(0)); MAX_SACK_BLOCKS], len: 0 };

    /// Appends the block from `start` to `end` (one past its last byte); returns false if full.
    pub fn push(&mut self, start: SeqNumber, end: SeqNumber) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *slot = (start, end);
        self.len += 1;
        true
    }

    /// Returns the blocks as pairs of the first number and the number after the last.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// The number of blocks.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

impl FromIterator<(SeqNumber, SeqNumber)> for SackBlocks {
    /// Collects the first four blocks.
    fn from_iter<I: IntoIterator<Item = (SeqNumber, SeqNumber)>>(iter: I) -> Self {
        let mut blocks = Self::EMPTY;
        for (start, end) in iter.into_iter().take(MAX_SACK_BLOCKS) {
            blocks.push(start, end);
        }
        blocks
    }
}

impl TcpOptions {
    /// Reads an option list: all bytes between the first 20 of a TCP header and the payload.
    ///
    /// If an option occurs twice, the last one is used. No list is an error (RFC 9293 section 3.1,
    /// MUST-6 and MUST-7): an option with unknown kind or wrong length is skipped, and an invalid
    /// length ends the list.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Self {
        const LEN: u8 = LEN_TIMESTAMPS as u8;
        match *bytes {
            [] => Self::default(),
            // The layout of most segments (RFC 7323 appendix A).
            [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, LEN, a, b, c, d, e, f, g, h] => {
                let [val, ecr] = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
                Self { timestamps: Some(Timestamps { val, ecr }), ..Self::default() }
            }
            _ => Self::parse_any(bytes),
        }
    }

    fn parse_any(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        for option in walk(bytes) {
            let taken = option.and_then(|RawOption { kind, body, .. }| options.take(kind, body));
            options.malformed = options.malformed.saturating_add(taken.is_none().into());
        }
        options
    }

    /// Stores one option; `None` if its length is wrong for its kind.
    fn take(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        match kind {
            KIND_MSS => self.mss = Some(u16::from_be_bytes(body.try_into().ok()?)),
            KIND_WINDOW_SCALE => {
                let [shift] = body.try_into().ok()?;
                self.window_scale = Some(shift);
            }
            KIND_SACK_PERMITTED => {
                let [] = body.try_into().ok()?;
                self.sack_permitted = true;
            }
            KIND_TIMESTAMPS => {
                let (words, []) = body.as_chunks::<4>() else { return None };
                let &[val, ecr] = words else { return None };
                self.timestamps =
                    Some(Timestamps { val: u32::from_be_bytes(val), ecr: u32::from_be_bytes(ecr) });
            }
            KIND_SACK => {
                let (words, []) = body.as_chunks::<4>() else { return None };
                let (pairs, []) = words.as_chunks::<2>() else { return None };
                if pairs.is_empty() || pairs.len() > MAX_SACK_BLOCKS {
                    return None;
                }
                self.sack = pairs
                    .iter()
                    .map(|[start, end]| {
                        let [start, end] = [start, end].map(|word| u32::from_be_bytes(*word));
                        (SeqNumber(start), SeqNumber(end))
                    })
                    .collect();
            }
            KIND_ORDER_0 | KIND_ORDER_1 => self.accecn = Some(AccEcn::read(kind, body)),
            _ if self.take_extension(kind, body) => {}
            _ => self.unknown = self.unknown.saturating_add(1),
        }
        Some(())
    }

    /// The number of free bytes beside these options, not counting SACK blocks.
    pub fn room(&self) -> usize {
        MAX_LEN - Self { sack: SackBlocks::EMPTY, ..*self }.encoded_len()
    }

    /// The number of SACK blocks that fit beside the other options.
    pub fn sack_room(&self) -> usize {
        self.room().saturating_sub(4) / LEN_SACK_BLOCK
    }

    /// Returns the AccECN option if it fits beside the other options, not counting SACK blocks.
    fn accecn_that_fits(&self) -> Option<AccEcn> {
        let option = self.accecn?;
        let room = Self { accecn: None, ..*self }.room();
        (option.encoded_len() <= room).then_some(option)
    }

    /// The number of bytes that [`encode`](Self::encode) writes: a multiple of four, at most
    /// [`MAX_LEN`].
    pub fn encoded_len(&self) -> usize {
        let mut scratch = [0; MAX_LEN];
        self.encode(&mut scratch)
    }

    /// Writes the options, padded to a multiple of four bytes; returns the length.
    ///
    /// Order and padding are Linux's (`tcp_options_write`): MSS; SACK permitted and timestamps in
    /// one 12-byte group, or each with two NOPs; AccECN after timestamps, or before a SACK
    /// permitted without timestamps; NOP and window scale; NOPs and SACK. Options that do not fit
    /// are left out: first SACK blocks from the last one on, then AccECN, then those
    /// of [`extension`].
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`encoded_len`](Self::encoded_len); 40 bytes are always enough.
    pub fn encode(&self, buf: &mut [u8]) -> usize {
        let mut writer = Writer { buf, at: 0 };
        if let Some(mss) = self.mss {
            writer.put(&[KIND_MSS, LEN_MSS as u8]);
            writer.put(&mss.to_be_bytes());
        }
        if let Some(Timestamps { val, ecr }) = self.timestamps {
            match self.sack_permitted {
                true => writer.put(&[KIND_SACK_PERMITTED, LEN_SACK_PERMITTED as u8]),
                false => writer.put(&[KIND_NOP, KIND_NOP]),
            }
            writer.put(&[KIND_TIMESTAMPS, LEN_TIMESTAMPS as u8]);
            writer.put(&val.to_be_bytes());
            writer.put(&ecr.to_be_bytes());
        }
        if let Some(accecn) = self.accecn_that_fits() {
            accecn.put(&mut writer);
        }
        if self.timestamps.is_none() && self.sack_permitted {
            writer.put(&[KIND_NOP, KIND_NOP, KIND_SACK_PERMITTED, LEN_SACK_PERMITTED as u8]);
        }
        if let Some(shift) = self.window_scale {
            writer.put(&[KIND_NOP, KIND_WINDOW_SCALE, LEN_WINDOW_SCALE as u8, shift]);
        }
        self.put_extensions(&mut writer);
        let room = (MAX_LEN - writer.at).saturating_sub(4) / LEN_SACK_BLOCK;
        let blocks = &self.sack.as_slice()[..self.sack.len().min(room)];
        if !blocks.is_empty() {
            let len = 2 + blocks.len() * LEN_SACK_BLOCK;
            writer.put(&[KIND_NOP, KIND_NOP, KIND_SACK, len as u8]);
            for (start, end) in blocks {
                writer.put(&start.0.to_be_bytes());
                writer.put(&end.0.to_be_bytes());
            }
        }
        writer.at
    }
}

/// An option in the list.
struct RawOption<'a> {
    kind: u8,
    /// The offset of its kind.
    at: usize,
    /// The bytes after its length.
    body: &'a [u8],
}

/// Iterates over the options without NOPs; `None` is an option with an invalid length, which ends
/// the list.
fn walk(bytes: &[u8]) -> impl Iterator<Item = Option<RawOption<'_>>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while bytes.get(at) == Some(&KIND_NOP) {
            at += 1;
        }
        let &kind = bytes.get(at).filter(|kind| **kind != KIND_END)?;
        let option = read_option(bytes, kind, at);
        at = option.as_ref().map_or(bytes.len(), |option| at + 2 + option.body.len());
        Some(option)
    })
}

fn read_option(bytes: &[u8], kind: u8, at: usize) -> Option<RawOption<'_>> {
    let len = usize::from(*bytes.get(at + 1)?);
    // A length below two gives a range that ends before it starts, for which `get` returns `None`.
    Some(RawOption { kind, at, body: bytes.get(at + 2..at + len)? })
}

/// A write cursor.
struct Writer<'a> {
    buf: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.buf[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    fn put_if_room(&mut self, bytes: &[u8]) {
        if self.at + bytes.len() <= MAX_LEN {
            self.put(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(options: &TcpOptions) -> Vec<u8> {
        let mut buf = [0xaa; MAX_LEN];
        let len = options.encode(&mut buf);
        assert_eq!(len, options.encoded_len());
        buf[..len].to_vec()
    }

    const TS: Timestamps = Timestamps { val: 0x0102_0304, ecr: 0x0506_0708 };

    #[test]
    fn a_syn_is_packed_as_linux_packs_it() {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(TS),
            ..Default::default()
        };
        let expected = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7].to_vec();
        assert_eq!(encoded(&options), expected);
        let options = TcpOptions { timestamps: None, ..options };
        assert_eq!(encoded(&options), [2, 4, 0x05, 0xb4, 1, 1, 4, 2, 1, 3, 3, 7]);
    }

    #[test]
    fn an_ack_is_packed_as_linux_packs_it() {
        let sack = [(SeqNumber(1), SeqNumber(2))].into_iter().collect();
        let options = TcpOptions { timestamps: Some(TS), sack, ..Default::default() };
        let expected = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(encoded(&options), expected);
    }

    // Shows: RFC2018-4-7
    #[test]
    fn with_timestamps_three_blocks_fit() {
        let sack = (0..4).map(|n| (SeqNumber(n * 10), SeqNumber(n * 10 + 5))).collect();
        let options = TcpOptions { timestamps: Some(TS), sack, ..Default::default() };
        assert_eq!(options.sack_room(), 3);
        let read = TcpOptions::parse(&encoded(&options));
        assert_eq!(read.sack.as_slice(), &sack.as_slice()[..3]);
        let options = TcpOptions { timestamps: None, ..options };
        assert_eq!(TcpOptions::parse(&encoded(&options)), options);
    }

    // Shows: RFC9293-MUST-6, RFC9293-MUST-64
    #[test]
    fn unknown_kinds_are_skipped_and_counted() {
        let read = TcpOptions::parse(&[254, 4, 9, 9, 14, 2, 3, 3, 5, 0, 77]);
        assert_eq!(read, TcpOptions { window_scale: Some(5), unknown: 2, ..Default::default() });
    }

    // Shows: RFC9293-MUST-4
    #[test]
    fn no_operation_mss_and_the_end_are_understood() {
        let read = TcpOptions::parse(&[1, 2, 4, 5, 0xb4, 1, 0, 2, 4, 0, 9]);
        assert_eq!(read, TcpOptions { mss: Some(1460), ..Default::default() });
    }

    // Shows: RFC9293-MUST-7
    #[test]
    fn a_length_that_cannot_be_costs_the_option_or_what_follows_it() {
        let read = |option: &[u8]| {
            let list = [&[2, 4, 0x05, 0xb4], option, &[3, 3, 5]].concat();
            let read = TcpOptions::parse(&list);
            assert_eq!((read.mss, read.malformed), (Some(1460), 1), "{option:?}");
            assert_eq!(
                TcpOptions { mss: None, window_scale: None, malformed: 0, ..read },
                TcpOptions::default()
            );
            read.window_scale
        };
        let wrong_for_its_kind = [
            &[2, 3, 0][..],
            &[3, 4, 0, 0],
            &[4, 3, 0],
            &[8, 6, 0, 0, 0, 0],
            &[5, 2],
            &[5, 6, 0, 0, 0, 0],
        ];
        for option in wrong_for_its_kind {
            assert_eq!(read(option), Some(5), "{option:?}");
        }
        for option in [&[99, 0][..], &[99, 1], &[2, 0], &[99, 6], &[8, 200, 1, 1]] {
            assert_eq!(read(option), None, "{option:?}");
        }
        // Only a kind, or only a kind and a length.
        for cut in [&[2][..], &[1, 1, 8], &[8, 10]] {
            assert_eq!(TcpOptions::parse(cut), TcpOptions { malformed: 1, ..Default::default() });
        }
    }

    fn options() -> impl Strategy<Value = TcpOptions> {
        let block = any::<(u32, u32)>().prop_map(|(a, b)| (SeqNumber(a), SeqNumber(b)));
        let timestamps = any::<(u32, u32)>().prop_map(|(val, ecr)| Timestamps { val, ecr });
        (
            any::<Option<u16>>(),
            any::<Option<u8>>(),
            any::<bool>(),
            prop::option::of(timestamps),
            prop::collection::vec(block, 0..=MAX_SACK_BLOCKS),
            extension::tests::extensions(),
            prop::option::of(accecn::tests::accecn()),
        )
            .prop_map(
                |(mss, window_scale, sack_permitted, timestamps, blocks, extensions, accecn)| {
                    TcpOptions {
                        mss,
                        window_scale,
                        sack_permitted,
                        timestamps,
                        sack: blocks.into_iter().collect(),
                        accecn,
                        ..extensions
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(options in options()) {
            let bytes = encoded(&options);
            prop_assert!(bytes.len() <= MAX_LEN && bytes.len().is_multiple_of(4));
            let read = TcpOptions::parse(&bytes);
            let kept = options.sack.len().min(options.sack_room());
            let sack = options.sack.as_slice()[..kept].iter().copied().collect();
            // AccECN is left out only if it does not fit.
            let others = TcpOptions { accecn: None, ..options };
            let accecn = options.accecn.filter(|accecn| {
                AccEcn::len_of(accecn.counters().len()) <= others.room()
            });
            prop_assert_eq!(read, TcpOptions { sack, accecn, ..options });
        }

        // Shows: RFC9293-MUST-68, RFC9293-MUST-69
        #[test]
        fn what_is_written_has_lengths_and_is_padded_in_front_and_not_behind(options in options()) {
            let bytes = encoded(&options);
            let mut rest = &bytes[..];
            while let [kind, after @ ..] = rest {
                prop_assert_ne!(*kind, 0, "an end of the list: {:?}", bytes);
                let len = if *kind == 1 { 1 } else { usize::from(after[0]) };
                prop_assert!(len <= rest.len());
                rest = &rest[len..];
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..=60)) {
            prop_assert!(encoded(&TcpOptions::parse(&bytes)).len() <= MAX_LEN);
        }
    }
}
