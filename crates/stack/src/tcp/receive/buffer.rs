//! The receive buffer: in-order data that the application has not read.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;

use airtcp_types::{ByteCount, SharedBytes};
use airtcp_wire::payload::{self, Payload};

/// The minimum and the maximum size of an allocated piece (bytes).
const PIECE: (usize, usize) = (2 * 1024, 64 * 1024);
/// Shared bytes of at least this length are not copied. They may keep 64 KiB of memory alive, but
/// only their own length is counted.
const KEPT: usize = 32 * 1024;

/// A queue of bytes in pieces. Bytes are copied in once and out once; growing copies nothing;
/// pieces that were read are freed one by one, except the last. Long shared bytes are not copied
/// in.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    pieces: VecDeque<Piece>,
    /// The number of bytes read from the first piece.
    read: usize,
    len: usize,
}

impl ReceiveBuffer {
    pub(super) fn len(&self) -> ByteCount {
        self.len.into()
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, data: Payload<'_>) {
        self.len += data.len();
        for piece in data.pieces() {
            match piece {
                payload::Piece::Shared(bytes) if bytes.len() >= KEPT => {
                    self.pieces.push_back(Piece::Shared(bytes));
                }
                piece => self.copy(&piece),
            }
        }
    }

    fn copy(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let size = match self.pieces.back_mut() {
                Some(Piece::Own(piece)) if piece.len() < piece.capacity() => {
                    let (now, later) =
                        data.split_at(data.len().min(piece.capacity() - piece.len()));
                    piece.extend_from_slice(now);
                    data = later;
                    continue;
                }
                Some(Piece::Own(piece)) => piece.len() * 2,
                // After a shared piece, only a few bytes may follow.
                _ => 0,
            };
            self.pieces.push_back(Piece::Own(Vec::with_capacity(size.clamp(PIECE.0, PIECE.1))));
        }
    }

    /// Copies up to `buf.len()` bytes to `buf` and removes them; returns the number of bytes.
    pub(super) fn pop(&mut self, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len().min(self.len) {
            let Some(piece) = self.pieces.front() else { break };
            let n = (piece.len() - self.read).min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&piece[self.read..self.read + n]);
            done += n;
            self.read += n;
            if self.read == piece.len() {
                self.read = 0;
                self.drop_first();
            }
        }
        self.len -= done;
        done
    }

    /// Takes the rest of the first non-empty piece without a copy; returns the number of bytes. The
    /// memory of the old `chunk` may be reused.
    pub(super) fn take(&mut self, chunk: &mut Chunk) -> usize {
        let before = std::mem::take(chunk);
        while chunk.is_empty()
            && let Some(piece) = self.pieces.pop_front()
        {
            *chunk = Chunk { piece, read: std::mem::take(&mut self.read) };
        }
        self.len -= chunk.len();
        if self.pieces.is_empty()
            && let Piece::Own(mut spare) = before.piece
        {
            spare.clear();
            self.pieces.push_back(Piece::Own(spare));
        }
        chunk.len()
    }

    /// Removes the first piece, which was read.
    fn drop_first(&mut self) {
        let is_last = self.pieces.len() == 1;
        match self.pieces.front_mut() {
            Some(Piece::Own(piece)) if is_last => piece.clear(),
            _ => drop(self.pieces.pop_front()),
        }
    }

    /// Whether [`shrink`](Self::shrink) would free memory.
    pub(super) fn can_shrink(&self) -> bool {
        self.len == 0 && self.pieces.capacity() > 0
    }

    /// Frees the memory that is kept to avoid an allocation per segment.
    pub(super) fn shrink(&mut self) {
        if self.can_shrink() {
            self.clear();
        }
    }

    /// Copies up to `buf.len()` bytes without removing them; returns the number of bytes.
    pub(super) fn peek(&self, buf: &mut [u8]) -> usize {
        let (mut done, mut skip) = (0, self.read);
        for piece in &self.pieces {
            let n = (piece.len() - skip).min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&piece[skip..skip + n]);
            (done, skip) = (done + n, 0);
            if done == buf.len() {
                break;
            }
        }
        done
    }

    /// Drops all data.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Received data of a stream without a copy, as `TcpStream::read_chunk` returns it.
///
/// A chunk from an offloading device may keep alive the whole packet of 64 KiB in which it arrived:
/// copy data that is kept for long.
#[derive(Default)]
pub struct Chunk {
    piece: Piece,
    /// The number of bytes of the piece that were read before.
    read: usize,
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.piece[self.read..]
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Contiguous bytes.
#[derive(Debug)]
enum Piece {
    Own(Vec<u8>),
    Shared(SharedBytes),
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn long_shared_bytes_are_kept_until_they_are_read_and_short_ones_are_not() {
        let mut packet = Arc::new(vec![7; 40_000]);
        let mut buffer = ReceiveBuffer::default();
        let mut out = vec![0; 50_000];
        for (len, kept) in [(KEPT - 1, false), (KEPT, true), (40_000, true)] {
            buffer.push(Payload::new(b"head", &[SharedBytes::new(&packet, 0..len)]));
            buffer.push(b"tail".into());
            assert_eq!(buffer.len().as_usize(), 8 + len);
            assert_eq!(Arc::get_mut(&mut packet).is_none(), kept);
            assert_eq!(buffer.pop(&mut out[..4 + len]), 4 + len);
            assert!(out[..4] == *b"head" && out[4..4 + len].iter().all(|byte| *byte == 7));
            assert!(Arc::get_mut(&mut packet).is_some(), "it was read");
            assert_eq!((buffer.pop(&mut out), &out[..4]), (4, &b"tail"[..]));
        }
    }

    #[test]
    fn read_data_is_not_copied_and_its_memory_is_reused() {
        let packet = Arc::new(vec![7; KEPT]);
        let mut buffer = ReceiveBuffer::default();
        let mut chunk = Chunk::default();
        assert_eq!(buffer.take(&mut chunk), 0);
        buffer.push(b"head".into());
        buffer.push(Payload::new(&[], &[SharedBytes::new(&packet, 0..KEPT)]));
        buffer.push(b"tail".into());
        assert_eq!(buffer.pop(&mut [0; 1]), 1);
        let own = buffer.pieces[0].as_ptr();
        assert_eq!((buffer.take(&mut chunk), &chunk[..]), (3, &b"ead"[..]));
        assert_eq!(chunk.as_ptr(), own.wrapping_add(1));
        assert_eq!((buffer.take(&mut chunk), chunk.as_ptr()), (KEPT, packet.as_ptr()));
        assert_eq!((buffer.take(&mut chunk), &chunk[..]), (4, &b"tail"[..]));
        assert_eq!((Arc::strong_count(&packet), buffer.len()), (1, ByteCount::ZERO));
        let own = chunk.as_ptr();
        assert_eq!((buffer.take(&mut chunk), &chunk[..]), (0, &b""[..]));
        buffer.push(b"more".into());
        assert_eq!((buffer.take(&mut chunk), &chunk[..], chunk.as_ptr()), (4, &b"more"[..], own));
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut buffer = ReceiveBuffer::default();
        let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let mut read = Vec::new();
        let mut out = [0; 777];
        let mut seen = [0; 777];
        let mut chunk = Chunk::default();
        for part in data.chunks(1448) {
            buffer.push(part.into());
            let peeked = buffer.peek(&mut seen);
            let n = buffer.pop(&mut out);
            assert_eq!(seen[..peeked], out[..n]);
            read.extend_from_slice(&out[..n]);
        }
        while buffer.len() > ByteCount::ZERO {
            let mut rest = vec![0; buffer.len().as_usize() + 1];
            assert_eq!(buffer.peek(&mut rest), buffer.len().as_usize());
            assert_eq!(rest[..rest.len() - 1], data[read.len()..]);
            let n = buffer.pop(&mut out);
            read.extend_from_slice(&out[..n]);
            if rest.len().is_multiple_of(3) {
                buffer.take(&mut chunk);
                read.extend_from_slice(&chunk);
            }
        }
        assert_eq!(read, data);
        assert_eq!(buffer.pop(&mut out), 0);
        assert_eq!(buffer.pieces.len(), 1);
        buffer.shrink();
        assert_eq!(buffer.pieces.capacity(), 0);
    }
}
