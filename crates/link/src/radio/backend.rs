//! The interface between a base station and its radio.

use std::fmt;

use airtcp_types::{Instant, Node, Packet};

use super::{AirCounters, FrameNo};
use crate::{Counters, SpecError, Way};

/// The number that a station gives to a mobile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MobileNo(pub u16);

impl MobileNo {
    /// All mobiles that have not joined. They share a queue and a channel.
    pub const OTHERS: Self = Self(0);
}

/// The radio's view of a mobile at an instant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reception {
    /// Whether the mobile is expected to receive a frame. Outages that the radio cannot foresee do
    /// not count.
    pub is_in_reach: bool,
    /// Whether the connection is about to break (TCP-ECN 7.1.2).
    pub is_fading: bool,
    /// Whether a frame sent now can be received.
    pub is_connected: bool,
    /// The received power, in watts.
    pub power: f64,
}

/// A frame that was taken back from the radio. It may have arrived all the same, if its link ACK
/// was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsent {
    /// The number of the frame, by which the receiver identifies a copy.
    pub no: FrameNo,
    /// Whether a copy has arrived, for an emulated receiver: a real one identifies the copy by its
    /// number, and its sender sets `false`.
    pub arrived: bool,
}

/// A radio as a base station uses it, with a queue for each mobile.
///
/// As a [`Node`], port 0 is the station's side and port 1 the mobiles' side, and packets are those
/// of [`MobileNo::OTHERS`]. A number that has not joined stands for [`MobileNo::OTHERS`].
pub trait Backend: Node + fmt::Debug + Send + Sync {
    /// Gives a mobile a queue and a channel of its own. `words` are those of a radio's description
    /// that differ for this mobile. A mobile that has joined before keeps its queue.
    /// [`MobileNo::OTHERS`] always has the radio's description.
    ///
    /// # Errors
    ///
    /// The first word that is unknown, or not the property of a mobile. Nothing is changed.
    fn join(&mut self, now: Instant, mobile: MobileNo, words: &str) -> Result<(), SpecError>;

    /// Removes a mobile; returns the packets queued for it, as [`drain`](Self::drain) does. Packets
    /// that it has queued are dropped. Its frames in transmission, and those that have arrived and
    /// were not polled, become frames of [`MobileNo::OTHERS`], to whose counters its own are added.
    fn leave(&mut self, now: Instant, mobile: MobileNo) -> Vec<(Unsent, Packet)>;

    /// Queues a packet towards a mobile. Returns the frame's number, or `None` if the mobile's
    /// queue is full and the packet is dropped.
    fn pass(&mut self, now: Instant, to: MobileNo, packet: Packet) -> Option<FrameNo>;

    /// Queues a packet that was taken back, with its former number: a receiver that has it drops
    /// the copy. Returns what [`pass`](Self::pass) returns.
    fn pass_again(
        &mut self,
        now: Instant,
        to: MobileNo,
        unsent: Unsent,
        packet: Packet,
    ) -> Option<FrameNo>;

    /// Processes a packet that `from` sends to the station.
    fn receive(&mut self, now: Instant, from: MobileNo, packet: Packet);

    /// Returns the next packet that has crossed the radio, with its direction and its mobile.
    fn poll_delivered(&mut self, now: Instant) -> Option<(Way, MobileNo, Packet)>;

    /// Whether the queue of a mobile accepts another packet at `now`.
    fn has_room(&mut self, now: Instant, to: MobileNo) -> bool;

    /// Removes the packets queued for a mobile that are `wanted`, in the order in which they were
    /// passed; not the one in transmission. Those that have not arrived are removed from the
    /// counter of received packets, and [`holds`](Self::holds) is false for all of them. A packet
    /// that is not wanted must not be wanted later.
    fn drain(
        &mut self,
        now: Instant,
        of: MobileNo,
        wanted: &dyn Fn(&Packet) -> bool,
    ) -> Vec<(Unsent, Packet)>;

    /// Whether a frame of the station may still arrive: it is queued, in transmission, or will be
    /// retransmitted.
    fn holds(&self, frame: FrameNo) -> bool;

    /// Returns how a mobile is received at `now`.
    fn reception(&self, now: Instant, of: MobileNo) -> Reception;

    /// Puts a mobile out of reach, whatever the radio's description says, or ends that.
    fn set_connected(&mut self, now: Instant, of: MobileNo, is_connected: bool);

    /// Whether frames that are lost on the radio are retransmitted.
    fn repairs(&self) -> bool;

    /// Makes the queues towards the mobiles mark ECN-capable packets with CE (RFC 3168), each by
    /// CoDel's control law with the parameters of RFC 8289. Other packets are not changed, and none
    /// is dropped.
    fn mark_congestion(&mut self);

    /// Enables or disables events, as [`Link::set_events`](crate::Link::set_events) does.
    fn set_events(&mut self, on: bool);

    /// Returns the number of packets queued or in transmission in one direction, and the bytes of
    /// those queued; of one mobile, or of all.
    fn queued(&self, way: Way, of: Option<MobileNo>) -> (usize, usize);

    /// Returns the packet counters of one direction. Packets that were given up count as
    /// `channel_lost`, or as `disconnected` if the mobile was out of reach at the end of the last
    /// try.
    fn counters(&self, way: Way) -> &Counters;

    /// Returns the frame counters of one direction; of one mobile since it joined, or of all.
    fn air_counters(&self, way: Way, of: Option<MobileNo>) -> AirCounters;
}
