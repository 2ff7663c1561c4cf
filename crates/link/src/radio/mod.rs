//! A radio: two stations that share an IEEE 802.11b channel, with link-layer retransmission.
//!
//! A [`Radio`] is a [`Node`](airtcp_types::Node): port 0 is the base station's side, port 1 the
//! mobile's. Each end has a queue of frames. Before each try an end waits until the air has been
//! idle for DIFS and its backoff has counted down (both at once collide); a try is RTS and CTS
//! where they are on, the frame, and the link ACK, and all of it is time on the air. Frames, link
//! ACKs, RTS and CTS are lost by the words of [`RadioSpec`]; what is done about it is [`Arq`]:
//!
//! | | a frame that is lost |
//! | --- | --- |
//! | `off` | is lost: no link ACKs |
//! | `mac` | is sent again at once, up to `tries` times in all, with a backoff that doubles |
//! | `mac+link` | goes to the tail of the station's queue after that, up to `passes` times in all (TCP-ECN 7.1.1); the mobile's end does as `mac` |
//! | `head` | goes to the head of the queue one round trip of the radio later, while others go on (DCR 4.1); as often as `mac+link` in all |
//!
//! A frame whose link ACK was lost arrives twice, and is delivered once: its number tells. Frames
//! that go to the tail, or wait for their turn at the head, are overtaken:
//! [`Counters::reordered`](crate::Counters::reordered) says how many were.
//!
//! A `plain` radio has nothing of 802.11: it is a link each way, in which a frame takes its
//! packet's time at the rate, and nobody waits for or collides with the other end. That is the
//! radio of ns-2's simple topologies, and of DCR 4.1.
//!
//! A mobile that is out of reach, by its path, by the schedule or by [`Radio::set_connected`],
//! hears nothing: the tries are made all the same.

mod air;
mod counters;
mod end;
mod frame;
mod part;
mod power;
mod spec;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use counters::AirCounters;
pub use part::PARTS;
pub use power::Position;
pub use spec::{Preamble, RadioSpec};
pub use state::Radio;

/// The number of a frame: in the order in which an end took the packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameNo(pub u64);

/// The mode of link-layer retransmission. See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arq {
    /// Nothing.
    Off,
    /// The MAC's tries.
    Mac,
    /// The MAC's tries, then the tail of the queue.
    #[default]
    MacLink,
    /// One try, then the head of the queue.
    Head,
}

impl Arq {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 4] =
        [("off", Self::Off), ("mac", Self::Mac), ("mac+link", Self::MacLink), ("head", Self::Head)];

    /// Its name.
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

/// A name that is none of [`Arq::ALL`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no ARQ mode: off, mac, mac+link or head")]
pub struct UnknownArq(String);

impl FromStr for Arq {
    type Err = UnknownArq;

    fn from_str(text: &str) -> Result<Self, UnknownArq> {
        let found = Self::ALL.into_iter().find(|(name, _)| *name == text);
        found.map(|(_, arq)| arq).ok_or_else(|| UnknownArq(text.to_owned()))
    }
}
