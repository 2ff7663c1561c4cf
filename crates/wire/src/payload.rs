//! The data of a segment, possibly in several buffers.

use std::borrow::Cow;

use airtcp_types::{Packet, SharedBytes};

/// A part of the data of a packet: bytes behind its headers, followed by bytes that it shares, or
/// by the data of the packets after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payload<'a> {
    here: &'a [u8],
    beyond: Beyond<'a>,
    /// The number of bytes skipped at the front.
    from: usize,
    len: usize,
}

/// The data after `here`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beyond<'a> {
    Shared(&'a [SharedBytes]),
    /// The bytes of each packet behind headers of this length.
    Packets(&'a [Packet], usize),
}

/// A contiguous part of a payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// Borrowed bytes, which must be copied to keep them.
    Here(&'a [u8]),
    /// Shared bytes, which can be kept without a copy.
    Shared(SharedBytes),
}

impl<'a> Payload<'a> {
    /// Creates the payload of bytes behind the headers and shared bytes.
    pub fn new(here: &'a [u8], shared: &'a [SharedBytes]) -> Self {
        let len = here.len() + shared.iter().map(|part| part.len()).sum::<usize>();
        Self { here, beyond: Beyond::Shared(shared), from: 0, len }
    }

    /// Replaces the data after the first part by `shared`.
    pub fn followed_by(self, shared: &'a [SharedBytes]) -> Self {
        Self::new(self.here, shared)
    }

    /// Replaces the data after the first part by that of `packets`, behind headers of `headers`
    /// bytes.
    pub fn followed_by_packets(self, packets: &'a [Packet], headers: usize) -> Self {
        let more = packets.iter().map(|packet| packet.data.len().saturating_sub(headers));
        let len = self.here.len() + more.sum::<usize>();
        Self { here: self.here, beyond: Beyond::Packets(packets, headers), from: 0, len }
    }

    /// The length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the payload is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the payload without its first `count` bytes.
    pub fn skip(self, count: usize) -> Self {
        let count = count.min(self.len);
        Self { from: self.from + count, len: self.len - count, ..self }
    }

    /// Returns the first `len` bytes.
    pub fn truncate(self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self }
    }

    /// Returns the pieces in order; none is empty.
    pub fn pieces(self) -> impl Iterator<Item = Piece<'a>> {
        let (mut skip, mut left) = (self.from, self.len);
        // Returns the start and the length of the piece to take from a buffer of `len` bytes.
        let mut of = move |len: usize| {
            let from = skip.min(len);
            let taken = left.min(len - from);
            (skip, left) = (skip - from, left - taken);
            (from, taken)
        };
        let (from, taken) = of(self.here.len());
        let here = Piece::Here(&self.here[from..from + taken]);
        let beyond = (0..self.beyond.count()).map(move |index| {
            let (from, taken) = of(self.beyond.len_of(index));
            if taken == 0 { Piece::Here(&[]) } else { self.beyond.piece(index, from, taken) }
        });
        std::iter::once(here).chain(beyond).filter(|piece| !piece.is_empty())
    }

    /// Returns the payload in one buffer; copies if it is in several.
    pub fn contiguous(self) -> Cow<'a, [u8]> {
        match self.here.get(self.from..self.from + self.len) {
            Some(here) => Cow::Borrowed(here),
            None => self.pieces().fold(Vec::with_capacity(self.len), joined).into(),
        }
    }
}

impl<'a> Beyond<'a> {
    const fn count(self) -> usize {
        match self {
            Self::Shared(parts) => parts.len(),
            Self::Packets(packets, _) => packets.len(),
        }
    }

    fn len_of(self, index: usize) -> usize {
        match self {
            Self::Shared(parts) => parts[index].len(),
            Self::Packets(packets, headers) => packets[index].data.len().saturating_sub(headers),
        }
    }

    /// Returns a piece of one buffer, which is long enough.
    fn piece(self, index: usize, from: usize, len: usize) -> Piece<'a> {
        match self {
            Self::Shared(parts) => {
                let mut part = parts[index].clone();
                part.advance(from);
                part.truncate(len);
                Piece::Shared(part)
            }
            Self::Packets(packets, headers) => {
                Piece::Here(&packets[index].data[headers + from..][..len])
            }
        }
    }
}

impl Default for Beyond<'_> {
    fn default() -> Self {
        Self::Shared(&[])
    }
}

fn joined(mut bytes: Vec<u8>, piece: Piece<'_>) -> Vec<u8> {
    bytes.extend_from_slice(&piece);
    bytes
}

impl std::ops::Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Here(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Payload<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::new(bytes, &[])
    }
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes, &[])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shared_bytes_stay_where_they_are() {
        let buffer = Arc::new(b"0123456789".to_vec());
        let shared = [SharedBytes::new(&buffer, 2..5), SharedBytes::new(&buffer, 5..9)];
        let payload = Payload::new(b"ab", &shared).skip(1).truncate(6);
        let pieces: Vec<_> = payload.pieces().collect();
        assert_eq!(pieces[0], Piece::Here(b"b"));
        assert!(pieces[1..].iter().all(|piece| matches!(piece, Piece::Shared(_))));
        assert_eq!(pieces.iter().map(|piece| piece.len()).collect::<Vec<_>>(), [1, 3, 2]);
        assert_eq!(*payload.contiguous(), *b"b23456");
        assert!(matches!(payload.truncate(1).contiguous(), Cow::Borrowed(b"b")));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_bytes_it_names(
            in_packets: bool,
            lens in prop::collection::vec(0usize..5, 1..5),
            cuts in prop::collection::vec((any::<bool>(), 0usize..12), 0..4),
        ) {
            let buffer = Arc::new((0..20).collect::<Vec<u8>>());
            let mut at = 0;
            let mut parts: Vec<_> = lens.iter().map(|len| {
                at += len;
                SharedBytes::new(&buffer, at - len..at)
            }).collect();
            let here = parts.remove(0);
            let with_headers = |part: &SharedBytes| Packet::new([b"head", &part[..]].concat());
            let packets: Vec<_> = parts.iter().map(with_headers).collect();
            let mut payload = match in_packets {
                true => Payload::from(&here[..]).followed_by_packets(&packets, 4),
                false => Payload::new(&here, &parts),
            };
            let mut expected = &buffer[..at];
            for (skip, count) in cuts {
                let count_here = count.min(expected.len());
                (payload, expected) = match skip {
                    true => (payload.skip(count), &expected[count_here..]),
                    false => (payload.truncate(count), &expected[..count_here]),
                };
            }
            prop_assert_eq!(&*payload.contiguous(), expected);
            prop_assert_eq!(payload.len(), expected.len());
            prop_assert!(payload.pieces().all(|piece| !piece.is_empty()));
        }
    }
}
