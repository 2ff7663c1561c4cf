//! A home agent by scripts: packets in, packets out, in virtual time.

mod foreign;
mod handoff;
mod lengths;
mod properties;
mod registration;
mod relay;
mod storage;
mod strangers;

use std::net::SocketAddr;

use airtcp_types::{FlowId, Node};
use airtcp_wire::mobility::{
    self, Acknowledgment, Authentication, Ends, Extension, Message, Reply, Request, Revocation,
};
use airtcp_wire::{ip, tunnel, udp};

use super::forward::port;
use super::*;

/// The time at the origin: 2026-01-01.
fn origin() -> u64 {
    mobility::timestamp(Duration::from_secs(1_767_225_600))
}

/// The identification of a request `millis` after the origin.
fn id(millis: u64) -> u64 {
    mobility::timestamp(Duration::from_secs(1_767_225_600) + Duration::from_millis(millis))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn key(spi: u32) -> Key {
    let algorithm = if spi.is_multiple_of(2) { Algorithm::HmacSha256 } else { Algorithm::HmacMd5 };
    Key::new(spi, algorithm, vec![spi as u8; 16]).unwrap()
}

fn config() -> HomeConfig {
    let mobile = |name: &str, home: &str, spi| HomeMobile {
        name: name.to_owned(),
        address: address(home),
        key: key(spi),
    };
    let station = |name: &str, care_of: &str, spi| HomeStation {
        name: name.to_owned(),
        address: address(care_of),
        key: key(spi),
    };
    HomeConfig {
        addresses: vec![address("192.0.2.1"), address("2001:db8::1")],
        mobiles: vec![
            mobile("van", "192.0.2.7", 300),
            mobile("van", "2001:db8::7", 300),
            mobile("bus", "192.0.2.8", 301),
        ],
        stations: vec![
            station("north", "198.51.100.1", 400),
            station("south", "198.51.100.2", 401),
            station("north", "2001:db8:1::1", 402),
            station("south", "2001:db8:1::2", 403),
        ],
        lifetime: Duration::from_secs(600),
        mtu: 1_500,
    }
}

/// A request, with what a test changes.
#[derive(Clone)]
struct Asked {
    request: Request,
    from: SocketAddr,
    mobile: Key,
    station: Option<Key>,
}

/// The request of the first mobile for a care-of address, at `millis`.
fn ask(care_of: &str, millis: u64) -> Asked {
    let care_of = address(care_of);
    let v6 = care_of.is_ipv6();
    let config = config();
    let station = config.stations.into_iter().find(|station| station.address == care_of);
    let request = Request {
        flags: 0,
        lifetime: 300,
        home: config.mobiles[usize::from(v6)].address,
        home_agent: config.addresses[usize::from(v6)],
        care_of,
        identification: id(millis),
    };
    let from = SocketAddr::new(care_of, 5_000);
    Asked { request, from, mobile: key(300), station: station.map(|station| station.key) }
}

impl Asked {
    fn message(&self) -> Vec<u8> {
        let mut message = Message::Request(self.request).emit();
        self.mobile.sign(&mut message, Ends::MobileHome);
        if let Some(station) = &self.station {
            station.sign(&mut message, Ends::ForeignHome);
        }
        message
    }

    fn packet(&self) -> Packet {
        datagram(self.from, &self.message())
    }
}

/// A datagram to the home agent.
fn datagram(from: SocketAddr, message: &[u8]) -> Packet {
    let v6 = from.is_ipv6();
    let remote = SocketAddr::new(config().addresses[usize::from(v6)], port(v6));
    udp::emit(&FlowId { local: from, remote }, 64, message)
}

/// A datagram of `len` bytes from a host of the Internet.
fn data(to: &str, len: usize) -> Packet {
    data_from(if address(to).is_ipv6() { "2001:db8:9::9" } else { "203.0.113.9" }, to, len)
}

fn data_from(from: &str, to: &str, len: usize) -> Packet {
    let (from, to) = (address(from), address(to));
    let flow = FlowId { local: SocketAddr::new(from, 9), remote: SocketAddr::new(to, 9) };
    let header = tunnel::overhead(to.is_ipv6()) + udp::HEADER_LEN;
    udp::emit(&flow, 63, &vec![7; len - header])
}

struct Script {
    agent: HomeAgent,
    now: Instant,
}

impl Script {
    fn new() -> Self {
        let agent = HomeAgent::new(config(), Instant::ZERO, origin()).unwrap();
        Self { agent, now: Instant::ZERO }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.now = Instant::from_millis(millis);
        self.agent.handle_timeout(self.now);
        self
    }

    fn sent(&mut self) -> Vec<Packet> {
        let now = self.now;
        std::iter::from_fn(|| self.agent.poll_transmit(now)).map(|(_, packet)| packet).collect()
    }

    fn give(&mut self, packet: Packet) -> Vec<Packet> {
        self.agent.handle_packet(self.now, PortId(0), packet);
        self.sent()
    }

    fn store(&mut self) -> Vec<Packet> {
        if let Some((number, _)) = self.agent.poll_store() {
            self.agent.stored(self.now, number);
        }
        self.sent()
    }

    /// Sends a request, stores what it changes, and returns the replies.
    fn ask(&mut self, asked: &Asked) -> Vec<Read> {
        let mut sent = self.give(asked.packet());
        sent.extend(self.store());
        sent.iter().map(Read::of).collect()
    }

    /// Sends a request that is answered by one reply.
    #[track_caller]
    fn code(&mut self, asked: &Asked) -> u8 {
        let read = self.ask(asked);
        assert_eq!(read.len(), 1, "{read:?}");
        read[0].reply().code
    }
}

/// A message that the home agent sent.
#[derive(Clone, PartialEq, Debug)]
struct Read {
    to: SocketAddr,
    message: Message,
    vendor: Vec<(u16, Vec<u8>)>,
    hints: Vec<(u16, Vec<u8>)>,
    /// The ends of the authenticators, whose keys are checked by [`Self::is_signed`].
    ends: Vec<Ends>,
    bytes: Vec<u8>,
}

impl Read {
    #[track_caller]
    fn of(packet: &Packet) -> Self {
        let outer = ip::parse(&packet.data).unwrap();
        assert_eq!(outer.protocol, ip::UDP, "{packet:?}");
        let datagram = udp::parse(outer.payload).unwrap();
        assert!(datagram.is_intact(outer.src, outer.dst));
        let v6 = outer.src.is_ipv6();
        assert_eq!(datagram.src_port, port(v6));
        let (message, extensions) = mobility::parse(datagram.payload, v6).unwrap();
        let (mut vendor, mut hints, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for extension in extensions {
            match extension {
                Extension::Vendor { kind, value } => vendor.push((kind, value.to_vec())),
                Extension::Hint { kind, value } => hints.push((kind, value.to_vec())),
                Extension::Authentication(of) => ends.push(of.ends),
                Extension::Other(_) => panic!("{extension:?}"),
            }
        }
        let to = SocketAddr::new(outer.dst, datagram.dst_port);
        Self { to, message, vendor, hints, ends, bytes: datagram.payload.to_vec() }
    }

    fn authentication(&self, ends: Ends) -> Option<Authentication<'_>> {
        let (_, mut extensions) = mobility::parse(&self.bytes, self.to.is_ipv6()).unwrap();
        extensions.find_map(|extension| match extension {
            Extension::Authentication(of) if of.ends == ends => Some(of),
            _ => None,
        })
    }

    fn is_signed(&self, ends: Ends, key: &Key) -> bool {
        self.authentication(ends).is_some_and(|of| key.verifies(&of))
    }

    #[track_caller]
    fn reply(&self) -> Reply {
        let Message::Reply(reply) = self.message else { panic!("{self:?}") };
        reply
    }

    #[track_caller]
    fn revocation(&self) -> Revocation {
        let Message::Revocation(revocation) = self.message else { panic!("{self:?}") };
        revocation
    }
}

/// The exit of the tunnel that a packet entered, if it is the only one and unchanged.
#[track_caller]
fn exit(sent: &[Packet], inner: &Packet) -> IpAddr {
    assert_eq!(sent.len(), 1, "{sent:?}");
    let read = tunnel::decapsulate(&sent[0].data).unwrap();
    assert_eq!(read.packet.data, inner.data);
    assert_eq!(read.entry, config().addresses[usize::from(read.exit.is_ipv6())]);
    read.exit
}
