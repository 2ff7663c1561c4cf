//! Packet scripts: how a station processes the packets of both sides, in virtual time.

mod delayed;
mod figures;
mod freeze;
mod mobiles;
mod properties;
mod roaming;
mod scripts;
mod snoop;
mod trust;

use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::mark::TCP_ECN_MARK;
use airtcp_types::{Instant, Node, Packet};

use super::segment::Segment;
use super::testkit::{Seg, enclose, key};
use super::{FlowKey, Mark, Policy, Station, StationConfig};
use crate::Side;

/// A station under test, its clock, and its output.
struct Script {
    station: Station,
    now: Instant,
    out: Vec<(Instant, Side, Packet)>,
}

impl Script {
    fn new(radio: &str, change: impl FnOnce(&mut StationConfig)) -> Self {
        let radio = radio.parse().unwrap();
        let mut config =
            StationConfig { radio, policy: Policy::TcpEcn, ..StationConfig::default() };
        change(&mut config);
        let station = Station::new(&config).unwrap();
        Self { station, now: Instant::ZERO, out: Vec::new() }
    }

    /// A script after the handshake: the data of both ends starts at 1.
    fn open(radio: &str) -> Self {
        Self::open_with(radio, |_| {})
    }

    fn open_with(radio: &str, change: impl FnOnce(&mut StationConfig)) -> Self {
        let mut script = Self::new(radio, change);
        script.fixed(Seg { flags: "S", ack: 0, ..Seg::data(0, 0) });
        script.run(10);
        script.mobile(Seg { flags: "SA", ..Seg::ack(0, 1) });
        script.run(20);
        script.fixed(Seg::data(1, 0));
        script.mobile(Seg::ack(1, 1));
        script.run(30);
        script.out.clear();
        script
    }

    fn put(&mut self, side: Side, packet: Packet) {
        self.station.handle_packet(self.now, side.port(), packet);
        self.drain();
    }

    fn fixed(&mut self, seg: Seg) {
        self.put(Side::Wired, seg.packet(key().fixed, key().mobile));
    }

    fn mobile(&mut self, seg: Seg) {
        self.put(Side::Wireless, seg.packet(key().mobile, key().fixed));
    }

    fn drain(&mut self) {
        while let Some((port, packet)) = self.station.poll_transmit(self.now) {
            self.out.push((self.now, Side::of(port).unwrap(), packet));
        }
    }

    /// Advances the time to `ms`.
    fn run(&mut self, ms: u64) {
        let until = Instant::from_millis(ms);
        while let Some(at) = self.station.poll_timeout().filter(|at| *at <= until) {
            self.now = at.max(self.now);
            self.station.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(until);
        self.station.handle_timeout(self.now);
        self.drain();
    }

    /// Takes the segments that were sent to a side.
    fn take(&mut self, side: Side) -> Vec<Segment> {
        let (taken, rest) =
            std::mem::take(&mut self.out).into_iter().partition(|out| out.1 == side);
        self.out = rest;
        let taken: Vec<(Instant, Side, Packet)> = taken;
        taken.iter().filter_map(|(_, _, packet)| Segment::read(packet)).collect()
    }

    /// The sequence numbers of the segments sent to the mobile, and whether they are marked.
    fn marks(&mut self) -> Vec<(u32, bool)> {
        let marks = self.take(Side::Wireless);
        marks.iter().map(|segment| (segment.seq.0, segment.reserved & TCP_ECN_MARK != 0)).collect()
    }

    /// The acknowledgements of the segments sent to the fixed host.
    fn acks(&mut self) -> Vec<u32> {
        self.take(Side::Wired).iter().map(|segment| segment.ack.0).collect()
    }
}

/// A datagram that is not TCP.
fn other(len: usize) -> Packet {
    let FlowKey { fixed, mobile } = key();
    Packet::new(enclose(fixed.ip(), mobile.ip(), 0, 17, &vec![0x11; len]))
}
