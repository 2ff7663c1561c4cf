//! Seeded random numbers, with one stream for each cause.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A seeded ChaCha8 stream.
///
/// A run has one seed. Every cause of randomness, such as the loss in one direction of a link, has
/// a stream of its own, so that drawing more for one cause does not change the others.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Creates the stream of `cause` in the run with `seed`.
    pub fn new(seed: u64, cause: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(cause);
        Self(rng)
    }

    /// Draws a uniform number from the whole range.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number from `0.0..1.0`.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws a uniform number from `0..bound`; zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiplication: the bias is below bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws whether an event with probability `share` happens.
    pub fn chance(&mut self, share: f64) -> bool {
        self.next_f64() < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_cause_give_one_stream() {
        let mut one = Stream::new(7, 1);
        let mut same = Stream::new(7, 1);
        let mut other = Stream::new(7, 2);
        let draws: Vec<u64> = (0..8).map(|_| one.next_u64()).collect();
        assert_eq!(draws, (0..8).map(|_| same.next_u64()).collect::<Vec<_>>());
        assert_ne!(draws, (0..8).map(|_| other.next_u64()).collect::<Vec<_>>());
    }

    #[test]
    fn draws_stay_inside_their_bounds() {
        let mut stream = Stream::new(1, 0);
        assert!((0..1_000).all(|_| stream.below(10) < 10));
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&stream.next_f64())));
        assert_eq!(stream.below(0), 0);
    }
}
