//! Shares measurements of the path between connections to one peer (RFC 9040): the part of one
//! connection.

use airtcp_recovery::Learned;
use airtcp_types::{ByteCount, Instant};

use super::Connection;

/// Of a connection that shares what it learns.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// It has begun with what was known.
    has_begun: bool,
    /// What the sender knew when there was nothing left to send.
    last: Option<(ByteCount, Learned)>,
}

/// What a connection reports of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathNews {
    /// Payload bytes that have arrived.
    pub(crate) delivered: ByteCount,
    /// Something is in flight.
    pub(crate) is_busy: bool,
    pub(crate) learned: Learned,
}

impl Connection {
    /// Whether it starts with what others have learned of the path, and hands on what it learns.
    pub(crate) const fn shares_path(&self) -> bool {
        self.sharing.is_some()
    }

    /// Whether its first data is about to leave, and it has not yet begun with what others have
    /// learned.
    pub(crate) fn wants_path(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.has_begun)
            && self.send.sender().is_some()
            && self.send.end() > self.send.nxt()
    }

    /// Begins with what others have learned of the path: in the handshake with its timer, and then,
    /// before the first data leaves, with the sender.
    pub(crate) fn begin_with(&mut self, now: Instant, known: &Learned) {
        match &mut self.handshake {
            Some(handshake) => known.rtt.iter().for_each(|rtt| handshake.inherit(rtt)),
            None => {
                self.send.inherit(now, known);
                self.sharing.iter_mut().for_each(|sharing| sharing.has_begun = true);
            }
        }
    }

    /// What it reports of the path.
    pub(crate) fn path_news(&mut self) -> Option<PathNews> {
        let sharing = self.sharing.as_mut()?;
        let (delivered, learned) = self.send.hand_on().or_else(|| sharing.last.take())?;
        Some(PathNews { delivered, is_busy: self.send.is_outstanding(), learned })
    }

    /// Keeps what the sender knows, which is about to go.
    pub(super) fn keep_path_news(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.last = self.send.hand_on().or(sharing.last);
        }
    }
}
