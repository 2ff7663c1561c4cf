//! The data of a segment, which may lie in several places.

use std::borrow::Cow;

use airtcp_types::SharedBytes;

/// A part of the bytes of a packet: those that stand behind its headers, and then those it shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Payload<'a> {
    here: &'a [u8],
    shared: &'a [SharedBytes],
    /// Left out at the front, and the length of the rest.
    from: usize,
    len: usize,
}

/// A stretch of a payload that lies in one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// It is to be copied.
    Here(&'a [u8]),
    /// It may be kept as it is.
    Shared(SharedBytes),
}

impl<'a> Payload<'a> {
    /// What stands behind the headers, and what is shared.
    pub fn new(here: &'a [u8], shared: &'a [SharedBytes]) -> Self {
        let len = here.len() + shared.iter().map(|part| part.len()).sum::<usize>();
        Self { here, shared, from: 0, len }
    }

    /// With more that is shared behind it.
    pub fn followed_by(self, shared: &'a [SharedBytes]) -> Self {
        Self::new(self.here, shared)
    }

    /// In bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Without its first `count` bytes.
    pub fn skip(self, count: usize) -> Self {
        let count = count.min(self.len);
        Self { from: self.from + count, len: self.len - count, ..self }
    }

    /// Its first `len` bytes.
    pub fn truncate(self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self }
    }

    /// Its pieces, in order; none is empty.
    pub fn pieces(self) -> impl Iterator<Item = Piece<'a>> {
        let (mut skip, mut left) = (self.from, self.len);
        // How much of a place of `len` bytes is to be left out, and then taken.
        let mut of = move |len: usize| {
            let from = skip.min(len);
            let taken = left.min(len - from);
            (skip, left) = (skip - from, left - taken);
            (from, taken)
        };
        let (from, taken) = of(self.here.len());
        let here = Piece::Here(&self.here[from..from + taken]);
        let shared = self.shared.iter().map(move |part| {
            let (from, taken) = of(part.len());
            if taken == 0 {
                return Piece::Here(&[]);
            }
            let mut part = part.clone();
            part.advance(from);
            part.truncate(taken);
            Piece::Shared(part)
        });
        std::iter::once(here).chain(shared).filter(|piece| !piece.is_empty())
    }

    /// All of it in one place, copied where it was not.
    pub fn contiguous(self) -> Cow<'a, [u8]> {
        match self.here.get(self.from..self.from + self.len) {
            Some(here) => Cow::Borrowed(here),
            None => self.pieces().fold(Vec::with_capacity(self.len), joined).into(),
        }
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
            let mut payload = Payload::new(&here, &parts);
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
