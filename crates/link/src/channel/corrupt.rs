//! Corruption of packets, and whether checksums detect it.

use airtcp_types::rng::Stream;
use airtcp_types::{Checksum, Packet};
use airtcp_wire::is_accepted;

use super::loss::Bursts;
use crate::ip;
use crate::ledger::Damage;
use crate::spec::CorruptSpec;

/// Bit errors: each bit is flipped independently with a probability.
#[derive(Clone, Debug)]
pub(super) struct BitErrors {
    rate: f64,
    /// The logarithm of the probability that a bit is not flipped.
    log_whole: f64,
    stream: Stream,
}

impl BitErrors {
    pub(super) fn new(rate: f64, stream: Stream) -> Self {
        Self { rate, log_whole: libm::log1p(-rate), stream }
    }

    /// Draws once per packet, whatever its length: the result seeds the bit errors of the packet.
    pub(super) fn draw(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// The number of intact bits before the next error, which is geometrically distributed.
    fn gap(&self, share: f64) -> f64 {
        libm::floor(libm::log(1.0 - share) / self.log_whole)
    }

    /// Whether any bit of `len` bytes is hit. This is rarely so, and only then is a random stream
    /// created.
    fn strikes(&self, key: u64, len: usize) -> bool {
        let bits = len as f64 * 8.0;
        // The probability is at most bits times rate; this test needs no logarithm.
        share(key) <= bits * self.rate && self.gap(share(key)) < bits
    }

    fn flip(&self, key: u64, data: &mut [u8]) {
        let bits = data.len() as f64 * 8.0;
        let mut at = self.gap(share(key));
        let mut stream = Stream::new(key, 0);
        while at < bits {
            flip(data, at as usize);
            at += 1.0 + self.gap(stream.next_f64());
        }
    }
}

/// Maps a draw to `0.0..1.0`.
fn share(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1u64 << 53) as f64
}

/// Corruption per packet, in the header or in the payload.
#[derive(Clone, Debug)]
pub(super) struct Corruption {
    spec: CorruptSpec,
    bursts: Bursts,
    stream: Stream,
}

impl Corruption {
    pub(super) fn new(spec: CorruptSpec, mut stream: Stream) -> Self {
        // The starts of runs have a stream of their own, so that they are drawn once per packet.
        let starts = Stream::new(stream.next_u64(), 0);
        Self { spec, bursts: Bursts::new(spec.share.probability(), spec.run, starts), stream }
    }

    /// Returns the key from which the corruption of the next packet is derived, if it is corrupted.
    pub(super) fn draw(&mut self) -> Option<u64> {
        let key = self.stream.next_u64();
        self.bursts.hits_next().then_some(key)
    }

    /// Flips bits of a packet whose headers are `header` bytes long.
    fn flip(&self, key: u64, data: &mut [u8], header: usize) {
        let mut stream = Stream::new(key, 0);
        let in_header = self.spec.header.map(|share| stream.chance(share.probability()));
        let region = match in_header {
            Some(true) => 0..header,
            Some(false) => header..data.len(),
            None => 0..data.len(),
        };
        let bits = region.len() as u64 * 8;
        let length = u64::from(self.spec.bits).min(bits);
        if length == 0 {
            return;
        }
        let first = region.start as u64 * 8 + stream.below(bits - length + 1);
        for bit in first..first + length {
            let edge = bit == first || bit + 1 == first + length;
            if edge || stream.chance(0.5) {
                flip(data, bit as usize);
            }
        }
    }
}

fn flip(data: &mut [u8], bit: usize) {
    if let Some(byte) = data.get_mut(bit / 8) {
        *byte ^= 0x80 >> (bit % 8);
    }
}

/// Applies both kinds of corruption; returns the damage, if any bit changed.
pub(super) fn apply(
    errors: Option<(&BitErrors, u64)>,
    corruption: Option<(&Corruption, u64)>,
    packet: &mut Packet,
) -> Option<Damage> {
    let errors = errors.filter(|(errors, key)| errors.strikes(*key, packet.len()));
    if errors.is_none() && corruption.is_none() {
        return None;
    }
    // A packet that is not IP has no header.
    let header = ip::header_len(&packet.data).unwrap_or(0).min(packet.len());
    let original = packet.data.clone();
    if let Some((errors, key)) = errors {
        errors.flip(key, &mut packet.data);
    }
    if let Some((corruption, key)) = corruption {
        corruption.flip(key, &mut packet.data, header);
    }
    // Both causes may have flipped the same bit, which then is unchanged.
    let differ = |range: std::ops::Range<usize>| -> u32 {
        let pairs = original[range.clone()].iter().zip(&packet.data[range]);
        pairs.map(|(one, other)| (one ^ other).count_ones()).sum()
    };
    let (in_header, in_payload) = (differ(0..header), differ(header..original.len()));
    if in_header + in_payload == 0 {
        return None;
    }
    // An offload's promise of a valid checksum held before this corruption.
    packet.checksum = Checksum::Full;
    // Checked even for a few flips: a link before this one may also have corrupted the packet, and
    // two flips may cancel out in a checksum.
    let unnoticed = is_accepted(&packet.data);
    Some(Damage { bits: in_header + in_payload, header: in_header > 0, unnoticed })
}
