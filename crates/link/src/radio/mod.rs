//! A radio: a base station and its mobiles, which share an IEEE 802.11b channel with link-layer
//! retransmission.
//!
//! [`Backend`] is the interface of a radio for a base station; [`Radio`] implements it by
//! emulation. A [`Radio`] is also a [`Node`](airtcp_types::Node): port 0 is the base station's
//! side, port 1 the mobiles'. Before each try an end waits until the medium has been idle for DIFS
//! and its backoff has counted down; two ends that start at the same time collide. A try consists
//! of RTS and CTS (if enabled), the frame and the link ACK; they all take air time.
//! [`RadioSpec`] describes the loss of frames, link ACKs, RTS and CTS. [`Arq`] selects the
//! recovery:
//!
//! | | a lost frame |
//! | --- | --- |
//! | `off` | is dropped: there are no link ACKs |
//! | `mac` | is retransmitted at once, up to `tries` transmissions in all, with a backoff that doubles |
//! | `mac+link` | after that goes to the tail of the station's queue, up to `passes` times in all (TCP-ECN 7.1.1); the mobile's end uses `mac` |
//! | `head` | goes to the head of the queue one round trip of the radio later, while other frames are sent (DCR 4.1); as many transmissions in all as with `mac+link` |
//!
//! A frame whose link ACK was lost arrives twice. Its number identifies it, so it is delivered
//! once, also if it was taken back from the queue and passed again. Frames that go to the tail, or
//! wait for their turn at the head, are overtaken:
//! [`Counters::reordered`](crate::Counters::reordered) counts them, for each mobile.
//!
//! Each mobile that has [joined](Backend::join) has a queue of its own at each end, and may have
//! its own errors and path; the others share one queue. Mobiles take turns with equal air time,
//! which includes their retransmissions: a mobile with a bad channel does not reduce the share of
//! the others. Not modelled: at the mobiles' end their frames also take turns, and do not contend
//! with each other.
//!
//! A `plain` radio has nothing of 802.11: it is a link in each direction, in which a frame takes
//! its packet's time at the rate; the ends do not wait for each other or collide. This is the radio
//! of ns-2's simple topologies, and of DCR 4.1.
//!
//! A mobile is out of reach by its path, by the schedule or by [`Backend::set_connected`]. It then
//! receives nothing, but the tries are made.

mod air;
mod backend;
mod counters;
mod emulated;
mod end;
mod frame;
mod mobile;
mod part;
mod power;
mod queues;
mod spec;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use backend::{Backend, MobileNo, Reception, Unsent};
pub use counters::AirCounters;
pub use part::PARTS;
pub use power::Position;
pub use spec::{Preamble, RadioSpec};
pub use state::Radio;

/// The number of a frame, in the order in which an end accepted the packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameNo(pub u64);

/// The mode of link-layer retransmission. See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arq {
    /// No retransmission.
    Off,
    /// Retransmission by the MAC.
    Mac,
    /// Retransmission by the MAC, then again from the tail of the queue.
    #[default]
    MacLink,
    /// One try, then again from the head of the queue.
    Head,
}

impl Arq {
    /// All modes, with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("off", Self::Off), ("mac", Self::Mac), ("mac+link", Self::MacLink), ("head", Self::Head)];

    /// Returns the mode's name.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }

    /// Whether a receiver acknowledges each frame before the next one is sent.
    const fn acknowledges(self) -> bool {
        matches!(self, Self::Mac | Self::MacLink)
    }
}

impl fmt::Display for Arq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not in [`Arq::ALL`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no ARQ mode: use off, mac, mac+link or head")]
pub struct UnknownArq(String);

impl FromStr for Arq {
    type Err = UnknownArq;

    fn from_str(text: &str) -> Result<Self, UnknownArq> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, arq)| arq).ok_or_else(|| UnknownArq(text.to_owned()))
    }
}
