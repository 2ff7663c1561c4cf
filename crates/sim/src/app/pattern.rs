//! The data that applications send: a pattern that depends on the position in the stream.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use airtcp_types::{ByteCount, SharedBytes};

/// A prime, so that equal segments do not repeat the same content.
const PERIOD: usize = 8_191;
/// The maximum length of a piece.
pub(crate) const PIECE: usize = 16 * 1024;

static BYTES: LazyLock<Arc<Vec<u8>>> = LazyLock::new(|| {
    let byte = |at: usize| (((at % PERIOD) as u32).wrapping_mul(0x9e37_79b9) >> 24) as u8;
    Arc::new((0..PERIOD + PIECE).map(byte).collect())
});

/// Returns up to [`PIECE`] bytes of the stream, from `offset` on.
pub(crate) fn piece(offset: u64, len: u64) -> &'static [u8] {
    &BYTES[place(offset, len)]
}

/// Returns a piece like [`piece`], for a send buffer that shares this memory without a copy.
pub(crate) fn shared(offset: u64, len: u64) -> SharedBytes {
    SharedBytes::new(&BYTES, place(offset, len))
}

fn place(offset: u64, len: u64) -> Range<usize> {
    let from = (offset % PERIOD as u64) as usize;
    from..from + ByteCount(len).as_usize().min(PIECE)
}

/// Returns the first position at which `bytes`, read from `offset` on, differ from the stream.
pub(crate) fn mismatch(offset: u64, bytes: &[u8]) -> Option<u64> {
    let mut offset = offset;
    for part in bytes.chunks(PIECE) {
        let expected = piece(offset, part.len() as u64);
        if part != expected {
            let same = part.iter().zip(expected).take_while(|(got, sent)| got == sent).count();
            return Some(offset + same as u64);
        }
        offset += part.len() as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_in_the_wrong_place_shows() {
        let long = [piece(5_000, 20_000), piece(5_000 + PIECE as u64, 4_000)].concat();
        assert_eq!(mismatch(5_000, &long), None);
        for wrong in [1u64, 1_448, 14_480, 8_190] {
            assert!(mismatch(5_000 + wrong, &long[..1_448]).is_some(), "moved by {wrong}");
        }
        let mut flipped = long;
        flipped[19_000] ^= 4;
        assert_eq!(mismatch(5_000, &flipped), Some(24_000));
    }
}
