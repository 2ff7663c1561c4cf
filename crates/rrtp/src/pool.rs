//! Memory for what waits: used again, and counted.

use airtcp_types::ByteCount;

/// So many buffers are kept for later.
const KEPT: usize = 2_048;
/// What one connection may hold in each direction however little memory there is: it goes on.
pub(crate) const FLOOR: u64 = 64 * 1024;

/// The buffers that received payloads wait in, and what all connections of an endpoint hold.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    free: Vec<Vec<u8>>,
    limit: u64,
    held: u64,
}

impl Pool {
    pub(crate) const fn new(limit: ByteCount) -> Self {
        Self { free: Vec::new(), limit: limit.0, held: 0 }
    }

    /// A buffer with these bytes.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        buffer
    }

    pub(crate) fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.free.len() < KEPT {
            buffer.clear();
            self.free.push(buffer);
        }
    }

    /// Corrects what one connection holds from `before` to `after`.
    pub(crate) const fn recount(&mut self, before: u64, after: u64) {
        self.held = (self.held + after).saturating_sub(before);
    }

    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// What a connection that holds `own` may still take.
    pub(crate) fn room(&self, own: u64) -> u64 {
        self.limit.saturating_sub(self.held).max(FLOOR.saturating_sub(own))
    }
}
