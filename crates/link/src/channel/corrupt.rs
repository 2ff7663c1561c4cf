//! Bits flipped in packets, and the truth about what a checksum can notice of it.

use airtcp_types::rng::Stream;
use airtcp_types::{Checksum, Packet};

use super::loss::Bursts;
use crate::spec::CorruptSpec;
use crate::{Counters, ip};

/// Each bit is flipped by itself with a probability.
#[derive(Clone, Debug)]
pub(super) struct BitErrors {
    /// The logarithm of the probability that a bit is not flipped.
    log_whole: f64,
    stream: Stream,
}

impl BitErrors {
    pub(super) fn new(rate: f64, stream: Stream) -> Self {
        Self { log_whole: libm::log1p(-rate), stream }
    }

    /// One draw per packet, whatever its length: it seeds all that befalls the packet.
    pub(super) fn draw(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// Whole bits before the next error: geometric.
    fn gap(&self, share: f64) -> f64 {
        libm::floor(libm::log(1.0 - share) / self.log_whole)
    }

    fn first(&self, key: u64) -> f64 {
        self.gap((key >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Whether any bit of so many bytes is hit. Most packets' are not, and need no stream of their own.
    fn strikes(&self, key: u64, len: usize) -> bool {
        self.first(key) < len as f64 * 8.0
    }

    fn flip(&self, key: u64, data: &mut [u8], flipped: &mut Flipped) {
        let bits = data.len() as f64 * 8.0;
        let mut at = self.first(key);
        let mut stream = Stream::new(key, 0);
        while at < bits {
            flipped.flip(data, at as usize);
            at += 1.0 + self.gap(stream.next_f64());
        }
    }
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
        // The starts of runs have a stream of their own, so that their draws are one per packet.
        let starts = Stream::new(stream.next_u64(), 0);
        Self { spec, bursts: Bursts::new(spec.share.probability(), spec.run, starts), stream }
    }

    /// The key of what befalls the next packet, if it is corrupted.
    pub(super) fn draw(&mut self) -> Option<u64> {
        let key = self.stream.next_u64();
        self.bursts.hits_next().then_some(key)
    }

    fn flip(&self, key: u64, data: &mut [u8], flipped: &mut Flipped) {
        let mut stream = Stream::new(key, 0);
        let header = flipped.header.min(data.len());
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
                flipped.flip(data, bit as usize);
            }
        }
    }
}

/// What was drawn for one packet.
pub(super) struct Flips {
    pub(super) errors: Option<u64>,
    pub(super) corruption: Option<Option<u64>>,
}

struct Flipped {
    /// Bytes of the headers before anything was flipped; none in what is not IP.
    header: usize,
    any: bool,
    in_header: bool,
}

impl Flipped {
    fn flip(&mut self, data: &mut [u8], bit: usize) {
        if let Some(byte) = data.get_mut(bit / 8) {
            *byte ^= 0x80 >> (bit % 8);
            self.any = true;
            self.in_header |= bit / 8 < self.header;
        }
    }
}

/// Flips what was drawn, and counts it.
pub(super) fn apply(
    flips: Flips,
    errors: Option<&BitErrors>,
    corruption: Option<&Corruption>,
    packet: &mut Packet,
    counters: &mut Counters,
) {
    let strikes = |(errors, key): &(&BitErrors, u64)| errors.strikes(*key, packet.len());
    let error_key = errors.zip(flips.errors).filter(strikes);
    let corrupt_key = corruption.zip(flips.corruption.flatten());
    if error_key.is_none() && corrupt_key.is_none() {
        return;
    }
    let header = ip::header_len(&packet.data).unwrap_or(0);
    let mut flipped = Flipped { header, any: false, in_header: false };
    let original = packet.data.clone();
    if let Some((errors, key)) = error_key {
        errors.flip(key, &mut packet.data, &mut flipped);
    }
    if let Some((corruption, key)) = corrupt_key {
        corruption.flip(key, &mut packet.data, &mut flipped);
    }
    // Two causes may have flipped the same bit, and so nothing.
    if !flipped.any || original == packet.data {
        return;
    }
    // What vouched for the packet did so before the air had it.
    packet.checksum = Checksum::Full;
    counters.corrupted += 1;
    counters.corrupted_header += u64::from(flipped.in_header);
    let unnoticed = ip::is_accepted(&original) && ip::is_accepted(&packet.data);
    counters.corrupted_unnoticed += u64::from(unnoticed);
}
