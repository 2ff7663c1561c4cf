//! A reproducible and verifiable stream of bytes.

use std::ops::Range;

/// A byte stream that its seed determines: each byte depends only on its position.
///
/// Lost, duplicated and swapped bytes are detected with their position.
///
/// ```
/// use airtcp_testbed::Pattern;
///
/// let mut bytes = [0; 100];
/// Pattern::new(7).fill(&mut bytes);
/// let mut expected = Pattern::new(7);
/// assert_eq!(expected.check(&bytes[..60]), Ok(()));
/// bytes[80] ^= 1;
/// assert_eq!(expected.check(&bytes[60..]), Err(80));
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    seed: u64,
    position: u64,
    /// The period in bytes after which the stream repeats.
    period: u64,
}

impl Pattern {
    /// Creates the stream of `seed`, from its first byte.
    pub const fn new(seed: u64) -> Self {
        Self::repeating(seed, u64::MAX)
    }

    /// Creates the stream that repeats the first `period` bytes of the stream of `seed`, which need
    /// to be generated only once. Choose a period that no buffer has, such as a prime: a shift by a
    /// whole period is not detected.
    ///
    /// # Panics
    /// If `period` is 0.
    pub const fn repeating(seed: u64, period: u64) -> Self {
        assert!(period > 0, "a period has a byte or more");
        Self { seed, position: 0, period }
    }

    /// Returns the number of bytes generated or checked so far.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Fills `buffer` with the next bytes of the stream.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let mut rest = buffer;
        while !rest.is_empty() {
            let (word, part) = self.word();
            let length = rest.len().min(part.len());
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&word[part][..length]);
            self.position += length as u64;
            rest = later;
        }
    }

    /// Compares `bytes` with the next bytes of the stream.
    ///
    /// # Errors
    /// The position in the stream of the first byte that differs.
    pub fn check(&mut self, bytes: &[u8]) -> Result<(), u64> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (word, part) = self.word();
            let length = rest.len().min(part.len());
            let (now, later) = rest.split_at(length);
            let expected = &word[part][..length];
            if now != expected {
                let equal = now.iter().zip(expected).take_while(|(a, b)| a == b).count();
                return Err(self.position + equal as u64);
            }
            self.position += length as u64;
            rest = later;
        }
        Ok(())
    }

    /// Returns the eight bytes around the position, and the range of them from the position on.
    fn word(&self) -> ([u8; 8], Range<usize>) {
        // SplitMix64 (Steele, Lea and Flood 2014), which supports random access.
        let at = self.position % self.period;
        let index = at / 8 + 1;
        let mut z = self.seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let from = at % 8;
        let to = (from + (self.period - at).min(8)).min(8);
        ((z ^ (z >> 31)).to_le_bytes(), from as usize..to as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_is_cut_does_not_matter() {
        let mut whole = [0; 64];
        Pattern::new(3).fill(&mut whole);
        let mut pieces = [0; 64];
        let mut pattern = Pattern::new(3);
        for piece in pieces.chunks_mut(5) {
            pattern.fill(piece);
        }
        assert_eq!(whole, pieces);
        assert_eq!(pattern.position(), 64);
    }

    #[test]
    fn a_repeating_one_starts_again_at_its_period() {
        for period in [1, 3, 8, 13] {
            let mut bytes = vec![0; 40];
            Pattern::repeating(3, period as u64).fill(&mut bytes);
            let mut first = vec![0; period];
            Pattern::new(3).fill(&mut first);
            let expected: Vec<u8> = first.iter().copied().cycle().take(40).collect();
            assert_eq!(bytes, expected);
            let mut pattern = Pattern::repeating(3, period as u64);
            for piece in bytes.chunks(7) {
                assert_eq!(pattern.check(piece), Ok(()));
            }
        }
    }

    #[test]
    fn a_byte_too_few_is_found() {
        let mut bytes = [0; 64];
        Pattern::new(3).fill(&mut bytes);
        let mut short = bytes.to_vec();
        short.remove(20);
        assert!(Pattern::new(3).check(&short).is_err_and(|at| (20..24).contains(&at)));
    }
}
