//! Receive buffers, and the count of the memory that connections use.

use airtcp_types::ByteCount;

/// The maximum number of free buffers kept.
const KEPT: usize = 2_048;
/// The bytes that a connection can hold in each direction regardless of the memory limit, so that
/// it makes progress.
pub(crate) const FLOOR: u64 = 64 * 1024;

/// The free receive buffers, and the bytes held by all connections of an endpoint.
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

    /// Returns a buffer filled with `bytes`.
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

    /// Changes the count of one connection from `before` to `after`.
    pub(crate) const fn recount(&mut self, before: u64, after: u64) {
        self.held = (self.held + after).saturating_sub(before);
    }

    pub(crate) const fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of bytes that a connection holding `own` bytes can still take.
    pub(crate) fn room(&self, own: u64) -> u64 {
        self.limit.saturating_sub(self.held).max(FLOOR.saturating_sub(own))
    }
}
