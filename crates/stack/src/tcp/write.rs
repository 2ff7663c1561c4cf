//! Writing, and the options that control when data is sent.

use airtcp_types::{ByteCount, Instant, SharedBytes};

use super::{Connection, Outlet, State, TcpError};

impl Connection {
    /// Copies as much of `data` as fits into the send buffer, and returns the number of bytes. The
    /// buffer takes its memory from the outlet.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] if the buffer is full; [`TcpError::Shutdown`] after
    /// [`shutdown`](Self::shutdown) or [`close`](Self::close); otherwise the reason why the
    /// connection ended.
    pub fn send(
        &mut self,
        now: Instant,
        data: &[u8],
        outlet: &mut Outlet,
    ) -> Result<usize, TcpError> {
        let n = self.admit(now, data.len())?;
        if n > 0 {
            self.send.write(&data[..n], outlet);
        }
        Ok(n)
    }

    /// Sends as [`send`](Self::send), but copies `data` only if it is short (below 4 KiB):
    /// otherwise the buffer keeps a reference to the memory until all accepted bytes are
    /// acknowledged. The memory limits count the accepted bytes, not the rest of that memory.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_shared(
        &mut self,
        now: Instant,
        mut data: SharedBytes,
        outlet: &mut Outlet,
    ) -> Result<usize, TcpError> {
        let n = self.admit(now, data.len())?;
        if n > 0 {
            data.truncate(n);
            self.send.write_shared(data, outlet);
        }
        Ok(n)
    }

    /// The number of bytes of a write of `len` bytes that the buffer accepts.
    fn admit(&mut self, now: Instant, len: usize) -> Result<usize, TcpError> {
        if let Some(error) = self.closing.error() {
            return Err(error);
        }
        if self.send.is_shut_down() || self.state == State::Closed {
            return Err(TcpError::Shutdown);
        }
        let n = self.send.admit(len);
        if n == 0 && len > 0 {
            return Err(TcpError::WouldBlock);
        }
        if n > 0 {
            self.tally.busy_from(now);
        }
        Ok(n)
    }

    /// Disables or enables Nagle's algorithm. Disabling it also sends the data that is [held
    /// back](Self::set_cork) now. Returns whether data that was held back may be sent now.
    pub fn set_nodelay(&mut self, nodelay: bool) -> bool {
        self.send.set_nodelay(nodelay)
    }

    /// Whether Nagle's algorithm is disabled.
    pub const fn nodelay(&self) -> bool {
        self.send.nodelay()
    }

    /// Sends as [`send`](Self::send), but more data follows soon: data that does not fill a segment
    /// waits for it, for an ACK, or for a time-out, regardless of [`nodelay`](Self::nodelay)
    /// (`MSG_MORE`).
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_more(
        &mut self,
        now: Instant,
        data: &[u8],
        outlet: &mut Outlet,
    ) -> Result<usize, TcpError> {
        let n = self.send(now, data, outlet)?;
        self.send.leave_open();
        Ok(n)
    }

    /// Enables the cork: only full segments are sent (`TCP_CORK`). Disabling it sends the data that
    /// was held back. A FIN overrides the cork. If nothing is in flight, held data is sent after a
    /// time-out.
    pub fn set_cork(&mut self, cork: bool) {
        self.send.set_cork(cork);
    }

    /// Whether only full segments are sent.
    pub fn cork(&self) -> bool {
        self.send.is_corked()
    }

    /// Limits unsent data (`TCP_NOTSENT_LOWAT`): [`send`](Self::send) accepts no data beyond `mark`
    /// bytes of unsent data, and [`readiness`](Self::readiness) reports the connection as not
    /// writable. `None`, the default, is no limit but the send buffer. A limit keeps short the time
    /// that data waits before it is sent.
    pub fn set_not_sent_low_water(&mut self, mark: Option<ByteCount>) {
        self.send.set_low_water(mark);
    }

    /// The limit of unsent data.
    pub fn not_sent_low_water(&self) -> Option<ByteCount> {
        self.send.low_water()
    }

    /// Sets the size of the send buffer and disables its autotuning.
    pub fn set_send_buffer(&mut self, size: ByteCount) {
        self.send.set_size(size);
    }

    /// Sets the maximum size of the receive buffer. The window scale was negotiated in the
    /// handshake and limits the window that can be offered.
    pub fn set_receive_buffer(&mut self, most: ByteCount) {
        self.receive.set_max(most);
    }
}
