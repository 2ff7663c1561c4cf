//! Writing, and the options that control when data is sent.

use airtcp_types::{ByteCount, Instant, SharedBytes};

use super::{Connection, Outlet, State, TcpError};

impl Connection {
    /// Copies as much of `data` as there is room for into the send buffer, whose memory is the
    /// outlet's, and gives how much.
    ///
    /// # Errors
    ///
    /// [`TcpError::WouldBlock`] without room; [`TcpError::Shutdown`] after
    /// [`shutdown`](Self::shutdown) or [`close`](Self::close); else why the connection ended.
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

    /// As [`send`](Self::send), but `data` is not copied into the send buffer unless it is short
    /// (below 4 KiB): the buffer holds the memory that `data` is a part of until all that was taken
    /// is acknowledged. Limits of memory count the bytes taken, and not the rest of that memory.
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

    /// How much of a write of `len` bytes there is room for.
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

    /// Turns Nagle's algorithm off or on. Off, what is [held back](Self::set_cork) at the moment
    /// leaves, too. Gives whether something that was held back may leave now.
    pub fn set_nodelay(&mut self, nodelay: bool) -> bool {
        self.send.set_nodelay(nodelay)
    }

    /// Whether Nagle's algorithm is disabled.
    pub const fn nodelay(&self) -> bool {
        self.send.nodelay()
    }

    /// As [`send`](Self::send), but more follows soon: what does not fill a segment waits for it,
    /// for an ACK, or for a time-out, whatever [`nodelay`](Self::nodelay) says (`MSG_MORE`).
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

    /// Lets only full segments leave from now on (`TCP_CORK`), or lets what was held back leave. A
    /// FIN ends it, and a time-out without anything on its way lets what is there leave.
    pub fn set_cork(&mut self, cork: bool) {
        self.send.set_cork(cork);
    }

    /// Whether only full segments are sent.
    pub fn cork(&self) -> bool {
        self.send.is_corked()
    }

    /// Has [`send`](Self::send) take no more, and [`readiness`](Self::readiness) tell of no room,
    /// while so much was written and not sent yet (`TCP_NOTSENT_LOWAT`); `None`, the default,
    /// leaves that to the send buffer. The peer's ACKs then find what is there to be sent no older
    /// than it has to be.
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

    /// Sets the most the receive buffer grows to. The window scale was agreed on when the
    /// connection was opened: the window that is offered is at most what it can tell.
    pub fn set_receive_buffer(&mut self, most: ByteCount) {
        self.receive.set_max(most);
    }
}
