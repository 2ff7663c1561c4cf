//! Two stations by scripts: a mobile moves from one to the other, in virtual time.

mod attacks;
mod driver;
mod moves;

use airtcp_types::SeqNumber;
use airtcp_wire::tcp::View;

use super::*;
use crate::home::Algorithm;
use crate::station::testkit::{Seg, key, key_of};
use crate::{Policy, StationConfig};

/// The addresses of the stations.
const AT: [IpAddr; 2] = [
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)),
    IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 2)),
];

/// The address of the mobile of flow 0.
fn home() -> IpAddr {
    key().mobile.ip()
}

fn secret(fill: u8) -> Key {
    Key::new(400, Algorithm::HmacSha256, vec![fill; 16]).unwrap()
}

fn station(peer: usize, room: u64) -> Handoff {
    let config = StationConfig { policy: Policy::TcpEcn, ..StationConfig::default() };
    let peers = vec![(AT[peer], secret(7))];
    let config_of = HandoffConfig { peers, room: ByteCount(room), mobiles: 2 };
    Handoff::new(Station::new(&config).unwrap(), config_of)
}

/// The sequence number, the acknowledgement and the window of a segment.
type Sent = (u32, u32, u16);

/// Two stations, and what they sent. Messages pass when the script says so.
struct Script {
    now: Instant,
    stations: [Handoff; 2],
    out: [[Vec<Sent>; 2]; 2],
}

impl Script {
    /// Flow 0 is open at the first station: the data of both ends starts at 1.
    fn new() -> Self {
        Self::with_room(1 << 20)
    }

    fn with_room(room: u64) -> Self {
        let stations = [station(1, room), station(0, room)];
        let mut script = Self { now: Instant::ZERO, stations, out: Default::default() };
        script.fixed(0, Seg { flags: "S", ack: 0, ..Seg::data(0, 0) });
        script.run(10);
        script.mobile(0, Seg { flags: "SA", ts: Some((5, 6)), ..Seg::ack(0, 1) });
        script.run(20);
        script.fixed(0, Seg::data(1, 1_000));
        script.mobile(0, Seg { ts: Some((7, 8)), ..Seg::ack(1, 1) });
        script.run(30);
        script.mobile(0, Seg { ts: Some((9, 8)), window: 700, ..Seg::ack(1, 1_001) });
        script.run(40);
        script.out = Default::default();
        script
    }

    fn put(&mut self, at: usize, side: Side, packet: Packet) {
        self.stations[at].handle_packet(self.now, side.port(), packet);
        self.drain();
    }

    fn fixed(&mut self, at: usize, seg: Seg) {
        self.put(at, Side::Wired, seg.packet(key().fixed, key().mobile));
    }

    fn mobile(&mut self, at: usize, seg: Seg) {
        self.put(at, Side::Wireless, seg.packet(key().mobile, key().fixed));
    }

    fn drain(&mut self) {
        for (station, out) in self.stations.iter_mut().zip(&mut self.out) {
            while let Some((port, packet)) = station.poll_transmit(self.now) {
                let view = View::checked(&packet.data).unwrap();
                let fields = view.fields();
                let sent = (fields.seq().0, fields.ack().0, fields.window());
                out[usize::from(port.0)].push(sent);
            }
        }
    }

    /// Advances the time to `ms`. Messages do not pass.
    fn run(&mut self, ms: u64) {
        let until = Instant::from_millis(ms);
        loop {
            let next = self.stations.iter().filter_map(Node::poll_timeout).min();
            self.now = next.filter(|at| *at <= until).unwrap_or(until).max(self.now);
            for station in &mut self.stations {
                station.handle_timeout(self.now);
            }
            self.drain();
            if next.is_none_or(|at| at > until) {
                return;
            }
        }
    }

    /// Takes the messages of a station.
    fn messages(&mut self, of: usize) -> Vec<Vec<u8>> {
        let now = self.now;
        let station = &mut self.stations[of];
        std::iter::from_fn(|| station.poll_message(now)).map(|(_, message)| message).collect()
    }

    /// Gives a station messages of the other one.
    fn give(&mut self, to: usize, messages: &[Vec<u8>]) {
        for message in messages {
            self.stations[to].handle_message(self.now, AT[1 - to], message);
        }
        self.drain();
    }

    /// Passes messages until there are no more.
    fn exchange(&mut self) {
        loop {
            let messages = [0, 1].map(|of| self.messages(of));
            if messages.iter().all(Vec::is_empty) {
                return;
            }
            for (of, messages) in messages.iter().enumerate() {
                self.give(1 - of, messages);
            }
        }
    }

    /// The first station loses the mobile; the fixed host sends 1001 to 2001, which waits.
    fn lose(&mut self) {
        self.stations[0].station_mut().disconnect(self.now);
        self.fixed(0, Seg::data(1_001, 1_000));
        assert_eq!(self.take(0, Side::Wired), [(1, 1_001, 0)], "the window is closed");
    }

    fn leave(&mut self, at: usize, epoch: u64) {
        self.stations[at].leave(self.now, home(), epoch, AT[1 - at]).unwrap();
        self.drain();
    }

    fn arrive(&mut self, at: usize, epoch: u64) {
        self.stations[at].arrive(self.now, home(), epoch, Some(AT[1 - at])).unwrap();
        self.drain();
    }

    /// Takes what a station has sent to a side.
    fn take(&mut self, of: usize, side: Side) -> Vec<Sent> {
        std::mem::take(&mut self.out[of][side as usize])
    }

    /// The sequence numbers that a station has sent to the mobile.
    fn received(&mut self, of: usize) -> Vec<u32> {
        self.take(of, Side::Wireless).into_iter().map(|(seq, ..)| seq).collect()
    }

    fn state(&self, of: usize) -> HandoffState {
        self.stations[of].state(home()).unwrap().1
    }

    /// The number of flows, and of packets that wait.
    fn kept(&self, of: usize) -> (usize, usize) {
        let status = self.stations[of].station().status(self.now);
        (status.flows + status.frozen + status.unproven, status.held)
    }
}
