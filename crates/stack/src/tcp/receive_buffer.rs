//! What arrived in order and the application has not read.

use std::collections::VecDeque;

use airtcp_types::ByteCount;

/// The smallest and the largest piece that is allocated.
const PIECE: (usize, usize) = (2 * 1024, 64 * 1024);

/// A queue of bytes in pieces: bytes are copied in once and out once, growth copies nothing, and
/// what was read is given back to the allocator piece by piece.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first piece was read.
    read: usize,
    len: usize,
}

impl ReceiveBuffer {
    pub(super) fn len(&self) -> ByteCount {
        self.len.into()
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, mut data: &[u8]) {
        self.len += data.len();
        while !data.is_empty() {
            let room = self.pieces.back().map_or(0, |piece| piece.capacity() - piece.len());
            if room == 0 {
                let last = self.pieces.back().map_or(0, Vec::capacity);
                self.pieces.push_back(Vec::with_capacity((last * 2).clamp(PIECE.0, PIECE.1)));
                continue;
            }
            let (now, later) = data.split_at(room.min(data.len()));
            if let Some(piece) = self.pieces.back_mut() {
                piece.extend_from_slice(now);
            }
            data = later;
        }
    }

    /// Takes up to `buf.len()` bytes out; gives how many.
    pub(super) fn pop(&mut self, buf: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buf.len() {
            let Some(piece) = self.pieces.front() else { break };
            let n = (piece.len() - self.read).min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&piece[self.read..self.read + n]);
            done += n;
            self.read += n;
            if self.read == piece.len() {
                self.pieces.pop_front();
                self.read = 0;
            }
        }
        self.len -= done;
        if self.len == 0 {
            self.pieces.shrink_to(0);
        }
        done
    }

    /// Copies up to `buf.len()` bytes, which stay; gives how many.
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

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut buffer = ReceiveBuffer::default();
        let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let mut read = Vec::new();
        let mut out = [0; 777];
        let mut seen = [0; 777];
        for part in data.chunks(1448) {
            buffer.push(part);
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
        }
        assert_eq!(read, data);
        assert_eq!(buffer.pop(&mut out), 0);
        assert!(buffer.pieces.is_empty());
    }
}
