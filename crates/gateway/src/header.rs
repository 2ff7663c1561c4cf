//! The header of a carrier connection.
//!
//! The near gateway's request is a version, a kind, and fields that depend on the kind:
//!
//! | kind | fields |
//! |---|---|
//! | 1, connect | a host as in SOCKS5 (1 and 4 bytes, 3, a length and a name, or 4 and 16 bytes), a port |
//! | 2, control | the instance of the near gateway, 8 bytes |
//! | 3, listen | an address and a port of the far gateway's machine, as for connect |
//! | 4, accept | as for listen |
//!
//! The far gateway replies with the version and a code: 0 for success, or the code of a refusal.
//! Program data may follow the request at once, without waiting for the reply; program data in the
//! other direction follows the reply. The reply to a control request is followed by the instance of
//! the far gateway, 8 bytes, and then the echo of each heartbeat, 8 bytes. A port stays open for as
//! long as the connection of its listen request; an accept request is answered when a program has
//! connected to the port. All numbers are big-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::destination::is_name;
use crate::{Destination, HostAddress, Refusal};

/// The header version of this implementation.
const VERSION: u8 = 1;

const CONNECT: u8 = 1;
const CONTROL: u8 = 2;
const LISTEN: u8 = 3;
const ACCEPT: u8 = 4;

const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The length of a [`reply`] (bytes).
pub(crate) const REPLY: usize = 2;

/// The purpose of a carrier connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Carries a connection to this destination.
    Connect(Destination),
    /// Carries heartbeats; with the instance of the near gateway.
    Control(u64),
    /// Opens a port of the far gateway's machine.
    Listen(SocketAddr),
    /// Carries the next connection to a port that was opened.
    Accept(SocketAddr),
}

/// The result of decoding the first bytes of a carrier connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A complete request, and its length in bytes.
    Request(Request, usize),
    /// An incomplete request; it has at least this number of bytes.
    Short(usize),
}

/// The reason why bytes are not a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// The version is unknown.
    #[error("version {0} of the header is not known: both gateways have to be of the same version")]
    Version(u8),
    /// The kind is unknown.
    #[error("a request of kind {0} is not known")]
    Kind(u8),
    /// The kind of address is unknown.
    #[error("an address of kind {0} is not known")]
    Address(u8),
    /// The name is empty, or contains bytes that no host name has.
    #[error("the name of the destination is not a host name")]
    Name,
    /// The port is 0.
    #[error("the port of the destination is 0")]
    Port,
}

impl Request {
    /// Appends the encoded request to `out`: at most 261 bytes.
    ///
    /// # Errors
    /// [`HeaderError::Name`] or [`HeaderError::Port`], for a destination that was not made by
    /// [`Destination::new`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), HeaderError> {
        let (kind, to) = match self {
            Self::Control(instance) => {
                out.extend([VERSION, CONTROL]);
                out.extend(instance.to_be_bytes());
                return Ok(());
            }
            Self::Connect(to) => (CONNECT, to),
            Self::Listen(at) => (LISTEN, &Destination::from(*at)),
            Self::Accept(at) => (ACCEPT, &Destination::from(*at)),
        };
        if to.port == 0 {
            return Err(HeaderError::Port);
        }
        match &to.host {
            HostAddress::Ip(IpAddr::V4(ip)) => {
                out.extend([VERSION, kind, IPV4]);
                out.extend(ip.octets());
            }
            HostAddress::Ip(IpAddr::V6(ip)) => {
                out.extend([VERSION, kind, IPV6]);
                out.extend(ip.octets());
            }
            HostAddress::Name(name) if is_name(name) => {
                // `is_name` limits the length to 255 bytes.
                out.extend([VERSION, kind, NAME, name.len() as u8]);
                out.extend(name.as_bytes());
            }
            HostAddress::Name(_) => return Err(HeaderError::Name),
        }
        out.extend(to.port.to_be_bytes());
        Ok(())
    }

    /// Decodes a request from the first bytes of a carrier connection.
    ///
    /// A reader that reads no more than [`Decoded::Short`] asks for leaves the program's data
    /// unread.
    ///
    /// # Errors
    /// `bytes` are not the start of a request.
    pub fn decode(bytes: &[u8]) -> Result<Decoded, HeaderError> {
        if let Some(&version) = bytes.first().filter(|&&version| version != VERSION) {
            return Err(HeaderError::Version(version));
        }
        let Some(&kind) = bytes.get(1) else { return Ok(Decoded::Short(2)) };
        match kind {
            CONTROL => Ok(bytes[2..].first_chunk().map_or(Decoded::Short(10), |instance| {
                Decoded::Request(Self::Control(u64::from_be_bytes(*instance)), 10)
            })),
            CONNECT | LISTEN | ACCEPT => Self::decode_connect(bytes, kind),
            kind => Err(HeaderError::Kind(kind)),
        }
    }

    fn decode_connect(bytes: &[u8], request: u8) -> Result<Decoded, HeaderError> {
        // The byte after the address kind is a name's length, or the first byte of an address.
        let (Some(&kind), Some(&length)) = (bytes.get(2), bytes.get(3)) else {
            return Ok(Decoded::Short(4));
        };
        let (start, length) = match kind {
            IPV4 => (3, 4),
            IPV6 => (3, 16),
            NAME if request == CONNECT => (4, usize::from(length)),
            kind => return Err(HeaderError::Address(kind)),
        };
        let end = start + length;
        let Some(port) = bytes.get(end..end + 2) else { return Ok(Decoded::Short(end + 2)) };
        let address = &bytes[start..end];
        let host = match (kind, address.first_chunk::<4>(), address.first_chunk::<16>()) {
            (IPV4, Some(octets), _) => HostAddress::Ip(Ipv4Addr::from(*octets).into()),
            (IPV6, _, Some(octets)) => HostAddress::Ip(Ipv6Addr::from(*octets).into()),
            _ => {
                let name = std::str::from_utf8(address).ok().filter(|name| is_name(name));
                HostAddress::Name(name.ok_or(HeaderError::Name)?.to_owned())
            }
        };
        let port = u16::from_be_bytes([port[0], port[1]]);
        if port == 0 {
            return Err(HeaderError::Port);
        }
        let request = match (request, host) {
            (LISTEN, HostAddress::Ip(ip)) => Self::Listen(SocketAddr::new(ip, port)),
            (ACCEPT, HostAddress::Ip(ip)) => Self::Accept(SocketAddr::new(ip, port)),
            (_, host) => Self::Connect(Destination { host, port }),
        };
        Ok(Decoded::Request(request, end + 2))
    }
}

/// Encodes the far gateway's reply.
pub(crate) fn reply(outcome: Result<(), &Refusal>) -> [u8; REPLY] {
    [VERSION, outcome.err().map_or(0, Refusal::code)]
}

/// Decodes a reply.
///
/// # Errors
/// The refusal in the reply; [`Refusal::NoGateway`] if a gateway of this version did not send it.
pub(crate) fn read_reply(reply: [u8; REPLY]) -> Result<(), Refusal> {
    match reply {
        [VERSION, 0] => Ok(()),
        [VERSION, code] => Err(Refusal::from_code(code)),
        [version, _] => Err(Refusal::NoGateway(format!(
            "what answers there speaks version {version} of the header, not {VERSION}: both ends have to be of the \
             same version"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn destination() -> impl Strategy<Value = Destination> {
        let host = prop_oneof![
            any::<[u8; 4]>().prop_map(|ip| HostAddress::Ip(ip.into())),
            any::<[u8; 16]>().prop_map(|ip| HostAddress::Ip(ip.into())),
            prop::collection::vec(prop::sample::select(b"abcXYZ019-._".to_vec()), 1..=255)
                .prop_map(|name| HostAddress::Name(String::from_utf8(name).unwrap())),
        ];
        (host, 1..=u16::MAX).prop_map(|(host, port)| Destination { host, port })
    }

    fn request() -> impl Strategy<Value = Request> {
        let at = || (any::<IpAddr>(), 1..=u16::MAX).prop_map(SocketAddr::from);
        prop_oneof![
            destination().prop_map(Request::Connect),
            at().prop_map(Request::Listen),
            at().prop_map(Request::Accept),
            any::<u64>().prop_map(Request::Control)
        ]
    }

    /// Reads as the far gateway does: no byte more than requested.
    fn read(bytes: &[u8]) -> Result<Decoded, HeaderError> {
        let mut wanted = 0;
        loop {
            match Request::decode(&bytes[..wanted])? {
                Decoded::Short(more) if more <= bytes.len() => {
                    assert!(wanted < more, "{more} bytes are no progress");
                    wanted = more;
                }
                decoded => return Ok(decoded),
            }
        }
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(request in request(), data: Vec<u8>) {
            let mut bytes = Vec::new();
            request.encode(&mut bytes).unwrap();
            let length = bytes.len();
            prop_assert!(length <= 261);
            bytes.extend(data);
            prop_assert_eq!(read(&bytes), Ok(Decoded::Request(request.clone(), length)));
            prop_assert_eq!(Request::decode(&bytes), Ok(Decoded::Request(request, length)));
        }

        #[test]
        fn a_cut_request_asks_for_what_it_lacks(request in request(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            request.encode(&mut bytes).unwrap();
            let cut = cut.index(bytes.len());
            let Ok(Decoded::Short(wanted)) = Request::decode(&bytes[..cut]) else {
                return Err(TestCaseError::fail("not short"));
            };
            prop_assert!(cut < wanted && wanted <= bytes.len());
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(mut bytes: Vec<u8>, begins_well: bool, request in 0_u8..6, kind in 0_u8..6) {
            if begins_well && bytes.len() > 2 {
                bytes[..3].copy_from_slice(&[VERSION, request, kind]);
            }
            match read(&bytes) {
                Ok(Decoded::Request(request, length)) => {
                    let mut again = Vec::new();
                    request.encode(&mut again).unwrap();
                    prop_assert_eq!(&again, &bytes[..length]);
                }
                Ok(Decoded::Short(wanted)) => prop_assert!(bytes.len() < wanted && wanted <= 261),
                Err(_) => {}
            }
        }
    }

    #[test]
    fn what_is_no_request_is_named() {
        assert_eq!(Request::decode(b"GET / "), Err(HeaderError::Version(b'G')));
        assert_eq!(Request::decode(&[1, 9]), Err(HeaderError::Kind(9)));
        assert_eq!(Request::decode(&[1, 1, 2, 0]), Err(HeaderError::Address(2)));
        assert_eq!(Request::decode(&[1, 3, 3, 1]), Err(HeaderError::Address(3)));
        assert_eq!(Request::decode(&[1, 1, 3, 0, 0, 80]), Err(HeaderError::Name));
        assert_eq!(Request::decode(&[1, 1, 3, 1, b' ', 0, 80]), Err(HeaderError::Name));
        assert_eq!(Request::decode(&[1, 1, 1, 192, 0, 2, 1, 0, 0]), Err(HeaderError::Port));
        let wrong = |host, port| Request::Connect(Destination { host, port });
        let name = |name: &str| HostAddress::Name(name.to_owned());
        let mut out = Vec::new();
        assert_eq!(wrong(name("a b"), 1).encode(&mut out), Err(HeaderError::Name));
        assert_eq!(wrong(name(&"a".repeat(256)), 1).encode(&mut out), Err(HeaderError::Name));
        assert_eq!(wrong(name("a"), 0).encode(&mut out), Err(HeaderError::Port));
        assert!(out.is_empty());
    }

    #[test]
    fn a_reply_says_the_refusal() {
        assert_eq!(read_reply(reply(Ok(()))), Ok(()));
        for refusal in [
            Refusal::Refused,
            Refusal::HostUnreachable,
            Refusal::NetworkUnreachable,
            Refusal::TimedOut,
            Refusal::NotAllowed,
            Refusal::NoSuchName,
            Refusal::Busy,
            Refusal::PortInUse,
            Refusal::CannotListen,
        ] {
            assert_eq!(read_reply(reply(Err(&refusal))), Err(refusal));
        }
        for unknown in [*b"HT", [VERSION, 99], [VERSION, 8]] {
            assert!(matches!(read_reply(unknown), Err(Refusal::NoGateway(_))));
        }
    }
}
