//! Turns a fuzzer's bytes into values, one by one.

/// Bytes to consume; an empty feed returns zeros.
pub(crate) struct Feed<'a>(pub(crate) &'a [u8]);

impl<'a> Feed<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// An index below `count`.
    pub(crate) fn choice(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count.max(1)
    }

    /// The next `len` bytes, or as many as are left.
    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
