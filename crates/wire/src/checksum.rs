//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use std::net::IpAddr;

use airtcp_types::SharedBytes;
use multiversion::multiversion;

/// A running one's complement sum, from which the Internet checksum is computed.
///
/// The sum is kept in native byte order and in words of four bytes: RFC 1071 section 2 (B) shows
/// that the byte order matters only at the end.
///
/// ```
/// use airtcp_wire::checksum::Sum;
///
/// // RFC 1071 section 3's example: the sum is ddf2, the checksum its complement.
/// let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
/// let mut sum = Sum::new();
/// sum.add_bytes(&bytes);
/// assert_eq!(sum.finish(), !0xddf2);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// The one's complement sum of native-order 16-bit words, not yet folded.
    words: u64,
    /// Whether an odd number of bytes has been added, so that the next byte is a low byte.
    odd: bool,
}

impl Sum {
    /// Creates an empty sum.
    #[inline]
    pub const fn new() -> Self {
        Self { words: 0, odd: false }
    }

    /// Adds bytes that follow those already added.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        self.add_native(sum_native(bytes));
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds a 16-bit word.
    pub fn add_word(&mut self, word: u16) {
        self.add_bytes(&word.to_be_bytes());
    }

    /// Adds the pseudo-header of RFC 9293 section 3.1 (IPv4) or RFC 8200 section 8.1 (IPv6).
    ///
    /// `len` is the length of the transport header and its payload. Addresses of different families
    /// have no pseudo-header; the sum of both is one that no receiver accepts.
    #[inline]
    pub fn add_pseudo_header(&mut self, src: IpAddr, dst: IpAddr, protocol: u8, len: usize) {
        let sum_address = |address| match address {
            IpAddr::V4(v4) => sum_words(&v4.octets()),
            IpAddr::V6(v6) => sum_words(&v6.octets()),
        };
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let rest = sum_words(&len.to_be_bytes()) + sum_words(&[0, 0, 0, protocol]);
        self.add_native(fold(sum_address(src) + sum_address(dst) + rest));
    }

    /// Returns the sum folded to 16 bits without complement: the value of the checksum field in a
    /// packet whose checksum a device completes.
    #[inline]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// Returns the checksum: the complement of the sum.
    #[inline]
    pub fn finish(self) -> u16 {
        !self.folded()
    }

    /// Adds the native-order sum of bytes that follow those already added.
    #[inline]
    fn add_native(&mut self, part: u16) {
        // RFC 1071 section 2 (B): at an odd offset, each byte is in the other half of its word.
        let part = if self.odd { part.swap_bytes() } else { part };
        let (sum, carry) = self.words.overflowing_add(part.into());
        self.words = sum + u64::from(carry);
    }
}

/// Returns the checksum of `bytes`.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = Sum::new();
    sum.add_bytes(bytes);
    sum.finish()
}

/// Whether the checksum in `bytes` is correct.
#[inline]
pub fn verify(bytes: &[u8]) -> bool {
    checksum(bytes) == 0
}

/// Like [`verify`], for an IPv4 header: at least 20 bytes, and a multiple of four.
#[inline]
pub(crate) fn verify_v4_header(header: &[u8]) -> bool {
    // Summing a constant number of bytes takes few instructions.
    let Some((fixed, options)) = header.split_first_chunk::<20>() else { return false };
    fold(sum_words(fixed) + sum_words(options)) == u16::MAX
}

/// Whether the checksum of a transport segment with its pseudo-header is correct.
#[inline]
pub fn verify_transport(src: IpAddr, dst: IpAddr, protocol: u8, segment: &[u8]) -> bool {
    verify_transport_of(src, dst, protocol, segment, &[])
}

/// Like [`verify_transport`], for a segment whose last part is stored elsewhere.
#[inline]
pub fn verify_transport_of(
    src: IpAddr,
    dst: IpAddr,
    protocol: u8,
    segment: &[u8],
    tail: &[SharedBytes],
) -> bool {
    let len = segment.len() + tail.iter().map(|part| part.len()).sum::<usize>();
    let mut sum = Sum::new();
    sum.add_pseudo_header(src, dst, protocol, len);
    sum.add_bytes(segment);
    tail.iter().for_each(|part| sum.add_bytes(part));
    sum.finish() == 0
}

/// Returns the checksum after a 16-bit word changed from `old` to `new` (RFC 1624 equation 3).
///
/// The word is at an even offset from the start of the sum.
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    // HC' = ~(~HC + ~m + m')
    !add(add(!checksum, !old), new)
}

/// Like [`update`], for two bytes at any `offset` from the start of the sum.
///
/// At an odd offset the two bytes are in two words; swapping both gives the same sum.
pub fn update_at(checksum: u16, offset: usize, old: [u8; 2], new: [u8; 2]) -> u16 {
    let (old, new) = (u16::from_be_bytes(old), u16::from_be_bytes(new));
    if offset.is_multiple_of(2) {
        update(checksum, old, new)
    } else {
        update(checksum, old.swap_bytes(), new.swap_bytes())
    }
}

/// Adds two words in one's complement.
fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Returns the native-order sum of `bytes`; an odd last byte is padded with zero.
///
/// Because 2^16 is 1 modulo 2^16 - 1, the halves of longer words can be folded at any time.
fn sum_native(bytes: &[u8]) -> u16 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let total = if blocks.is_empty() { 0 } else { sum_blocks(blocks) };
    let last = match *rest.as_chunks::<4>().1 {
        [a, b, c] => [a, b, c, 0],
        [a, b] => [a, b, 0, 0],
        [a] => [a, 0, 0, 0],
        _ => [0; 4],
    };
    fold(total + sum_words(rest) + sum_words(&last))
}

/// Returns the sum of all four-byte words, without the last one to three bytes.
#[inline(always)]
fn sum_words(bytes: &[u8]) -> u64 {
    bytes.as_chunks().0.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// The number of bytes added in one step, each four to a sum of their own, so that the compiler
/// vectorises the loop.
const BLOCK: usize = 64;

/// Returns the sum of all four-byte words. No slice is long enough to overflow it.
#[multiversion(targets("x86_64+avx2"))]
fn sum_blocks(blocks: &[[u8; BLOCK]]) -> u64 {
    let mut sums = [0u64; BLOCK / 4];
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum += u64::from(u32::from_ne_bytes(*word));
        }
    }
    sums.iter().sum()
}

/// Folds a one's complement sum to 16 bits.
#[inline]
fn fold(mut sum: u64) -> u16 {
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 32) + (sum & 0xffff_ffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 section 4.1, in network byte order, one word at a time.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_known_ipv4_header_sums_up() {
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum(&header), 0xb861);
        header[10..12].copy_from_slice(&0xb861u16.to_be_bytes());
        assert!(verify(&header));
        header[3] ^= 1;
        assert!(!verify(&header));
    }

    #[test]
    fn carries_out_of_the_top_are_kept() {
        assert_eq!(checksum(&[0xff; 64]), naive(&[0xff; 64]));
        let mut sum = Sum::new();
        for _ in 0..10 {
            sum.add_bytes(&[0xff; 33]);
        }
        assert_eq!(sum.finish(), naive(&[0xff; 330]));
    }

    #[test]
    fn the_pseudo_header_is_the_rfcs() {
        let (src, dst) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut sum = Sum::new();
        sum.add_pseudo_header(src, dst, 6, 20);
        assert_eq!(sum.finish(), naive(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 6, 0, 20]));
    }

    proptest! {
        #[test]
        fn any_bytes_sum_as_the_naive_way(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            prop_assert_eq!(checksum(&bytes), naive(&bytes));
        }

        #[test]
        fn pieces_sum_as_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            cuts in prop::collection::vec(0usize..200, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut sum = Sum::new();
            for pair in cuts.windows(2) {
                sum.add_bytes(&bytes[pair[0]..pair[1]]);
            }
            prop_assert_eq!(sum.finish(), naive(&bytes));
        }

        #[test]
        fn an_update_is_a_recomputation(
            mut bytes in prop::collection::vec(any::<u8>(), 4..64),
            at in any::<prop::sample::Index>(),
            new in any::<[u8; 2]>(),
        ) {
            // A header is never all zero, the case in which RFC 1624 and RFC 1071 give different
            // zeros.
            bytes[0] = 0x45;
            let offset = 1 + at.index(bytes.len() - 2);
            let before = checksum(&bytes);
            let old = [bytes[offset], bytes[offset + 1]];
            bytes[offset..offset + 2].copy_from_slice(&new);
            prop_assert_eq!(update_at(before, offset, old, new), checksum(&bytes));
        }
    }
}
