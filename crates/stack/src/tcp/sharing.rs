//! Sharing of path measurements between connections to the same peer (RFC 9040): the part of one
//! connection.

use airtcp_recovery::Learned;
use airtcp_types::{ByteCount, Instant};

use super::Connection;

/// The state of a connection that shares its measurements.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// Whether the sender has started with the known measurements.
    has_begun: bool,
    /// The sender's measurements when it was dropped.
    last: Option<(ByteCount, Learned)>,
}

/// The path measurements that a connection reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathNews {
    /// Payload bytes that have been delivered.
    pub(crate) delivered: ByteCount,
    /// Whether data is in flight.
    pub(crate) is_busy: bool,
    pub(crate) learned: Learned,
}

impl Connection {
    /// Whether it starts with the measurements of other connections, and reports its own.
    pub(crate) const fn shares_path(&self) -> bool {
        self.sharing.is_some()
    }

    /// Whether it is about to send its first data and has not yet started with the measurements of
    /// other connections.
    pub(crate) fn wants_path(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.has_begun)
            && self.send.sender().is_some()
            && self.send.end() > self.send.nxt()
    }

    /// Starts with the measurements of other connections: the handshake uses them for its timer,
    /// and later, before the first data is sent, the sender uses them.
    pub(crate) fn begin_with(&mut self, now: Instant, known: &Learned) {
        match &mut self.handshake {
            Some(handshake) => known.rtt.iter().for_each(|rtt| handshake.inherit(rtt)),
            None => {
                self.send.inherit(now, known);
                self.sharing.iter_mut().for_each(|sharing| sharing.has_begun = true);
            }
        }
    }

    /// Returns the path measurements to report.
    pub(crate) fn path_news(&mut self) -> Option<PathNews> {
        let sharing = self.sharing.as_mut()?;
        let (delivered, learned) = self.send.hand_on().or_else(|| sharing.last.take())?;
        Some(PathNews { delivered, is_busy: self.send.is_outstanding(), learned })
    }

    /// Keeps the measurements of the sender, which is about to be dropped.
    pub(super) fn keep_path_news(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.last = self.send.hand_on().or(sharing.last);
        }
    }
}
