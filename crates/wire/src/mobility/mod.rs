//! The messages of Mobile IP: registration (RFC 5944 section 3) and its revocation (RFC 3543).
//!
//! A message is the payload of a UDP datagram: fixed fields, then [extensions](Extensions). RFC
//! 5944 defines it for IPv4. With IPv6 the fields are the same, with addresses of 16 bytes, and the
//! port is another: that is no standard.
//!
//! ```
//! use airtcp_wire::mobility::{self, Ends, Extension, Message, Reply, code};
//!
//! let [home, home_agent] = ["192.0.2.7".parse()?, "192.0.2.1".parse()?];
//! let code = code::ACCEPTED;
//! let reply = Message::Reply(Reply { code, lifetime: 60, home, home_agent, identification: 1 });
//! let mut bytes = reply.emit();
//! mobility::push_authentication(&mut bytes, Ends::MobileHome, 256, 1, |_| [7]);
//!
//! let (read, mut extensions) = mobility::parse(&bytes, false)?;
//! assert_eq!(read, reply);
//! let Some(Extension::Authentication(authentication)) = extensions.next() else { panic!() };
//! assert_eq!((authentication.spi, authentication.authenticator), (256, &[7][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod extension;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

pub use extension::{
    Authentication, Ends, Extension, Extensions, VENDOR, push_authentication, push_hint,
    push_vendor,
};

/// The UDP port for IPv4 (RFC 5944 section 1.8).
pub const PORT: u16 = 434;
/// The UDP port for IPv6, which no standard assigns.
pub const V6_PORT: u16 = 7434;

const REQUEST: u8 = 1;
const REPLY: u8 = 3;
const REVOCATION: u8 = 7;
const ACKNOWLEDGMENT: u8 = 15;

/// The codes of a reply (RFC 5944 section 3.4, RFC 3024 section 3.4).
pub mod code {
    /// The registration is accepted.
    pub const ACCEPTED: u8 = 0;
    /// The registration is accepted, and replaces the one before: one care-of address at a time.
    pub const NO_SIMULTANEOUS: u8 = 1;
    /// The home agent does not permit the registration.
    pub const PROHIBITED: u8 = 129;
    /// The mobile's authentication failed.
    pub const MOBILE_AUTHENTICATION: u8 = 131;
    /// The foreign agent's authentication failed.
    pub const FOREIGN_AUTHENTICATION: u8 = 132;
    /// The identification is too old, too far from the home agent's time, or was used.
    pub const IDENTIFICATION: u8 = 133;
    /// A field is invalid.
    pub const POORLY_FORMED: u8 = 134;
    /// The request names another home agent.
    pub const HOME_AGENT: u8 = 136;
    /// There is no reverse tunnel (RFC 3024).
    pub const REVERSE_TUNNEL: u8 = 137;
    /// The requested encapsulation is not IP within IP.
    pub const ENCAPSULATION: u8 = 139;

    /// The foreign agent does not permit the registration.
    pub const FOREIGN_PROHIBITED: u8 = 65;
    /// The foreign agent has no room.
    pub const FOREIGN_RESOURCES: u8 = 66;
    /// The authentication of the mobile to the foreign agent failed.
    pub const FOREIGN_MOBILE_AUTHENTICATION: u8 = 67;
    /// The lifetime is longer than the foreign agent permits; the reply has the longest one.
    pub const FOREIGN_LIFETIME: u8 = 69;
    /// To the foreign agent, a field of the request is invalid.
    pub const FOREIGN_POORLY_FORMED: u8 = 70;
    /// The reply of the home agent is invalid.
    pub const FOREIGN_POORLY_FORMED_REPLY: u8 = 71;
    /// The foreign agent does not have the requested encapsulation.
    pub const FOREIGN_ENCAPSULATION: u8 = 72;
    /// The foreign agent has no reverse tunnel (RFC 3024).
    pub const FOREIGN_REVERSE_TUNNEL: u8 = 74;
    /// The care-of address is not that of the foreign agent.
    pub const FOREIGN_CARE_OF: u8 = 77;
    /// The home agent did not reply.
    pub const FOREIGN_TIMEOUT: u8 = 78;
}

/// The flags of a request (RFC 5944 section 3.3).
pub mod flag {
    /// S: keep earlier care-of addresses.
    pub const SIMULTANEOUS: u8 = 0x80;
    /// B: forward broadcasts of the home network.
    pub const BROADCAST: u8 = 0x40;
    /// D: the mobile itself takes packets out of the tunnel.
    pub const DECAPSULATES: u8 = 0x20;
    /// M: minimal encapsulation.
    pub const MINIMAL: u8 = 0x10;
    /// G: generic routing encapsulation.
    pub const GRE: u8 = 0x08;
    /// T: reverse tunnel (RFC 3024).
    pub const REVERSE: u8 = 0x02;
}

/// The reason why bytes are not a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MobilityError {
    /// There are fewer bytes than the message has.
    #[error("message is cut short")]
    Truncated,
    /// The type is none of those in [`Message`].
    #[error("message type {0} is unknown")]
    Type(u8),
    /// The extension with this type ends beyond the message, or is shorter than its fields.
    #[error("extension of type {0} has an invalid length")]
    Extension(u8),
    /// An extension with this type is unknown and must not be skipped (RFC 5944 section 1.8).
    #[error("extension of type {0} is unknown and must not be skipped")]
    Unknown(u8),
    /// A critical extension of this vendor is unknown (RFC 3115 section 2.1).
    #[error("critical extension of vendor {0} is unknown")]
    Vendor(u32),
}

/// A message. The addresses of a message are all of one IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Registration Request.
    Request(Request),
    /// Registration Reply.
    Reply(Reply),
    /// Registration Revocation.
    Revocation(Revocation),
    /// Registration Revocation Acknowledgment.
    Acknowledgment(Acknowledgment),
}

/// Registration Request (RFC 5944 section 3.3): asks the home agent to send packets elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The [flags](flag).
    pub flags: u8,
    /// The requested lifetime in seconds; 0 ends the registration, 65,535 is no limit.
    pub lifetime: u16,
    /// The mobile's home address.
    pub home: IpAddr,
    /// The home agent's address.
    pub home_agent: IpAddr,
    /// The address to which packets are to be sent.
    pub care_of: IpAddr,
    /// The time of the request, as a [`timestamp`].
    pub identification: u64,
}

/// Registration Reply (RFC 5944 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The [code].
    pub code: u8,
    /// The granted lifetime in seconds.
    pub lifetime: u16,
    /// The mobile's home address.
    pub home: IpAddr,
    /// The home agent's address.
    pub home_agent: IpAddr,
    /// That of the request; with [`code::IDENTIFICATION`], the upper half is the agent's time.
    pub identification: u64,
}

/// Registration Revocation (RFC 3543 section 3.3): an agent has ended a registration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revocation {
    /// Whether the home agent sends it (A).
    pub is_from_home: bool,
    /// Whether the mobile is to be informed (I).
    pub informs: bool,
    /// The mobile's home address.
    pub home: IpAddr,
    /// The home agent's address.
    pub home_agent: IpAddr,
    /// The foreign agent's address.
    pub foreign_agent: IpAddr,
    /// The number that the acknowledgment repeats.
    pub identifier: u32,
}

/// Registration Revocation Acknowledgment (RFC 3543 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acknowledgment {
    /// Whether the mobile was informed (I).
    pub informs: bool,
    /// The mobile's home address.
    pub home: IpAddr,
    /// The identifier of the revocation.
    pub identifier: u32,
}

/// Converts the time since 1970 to a timestamp: seconds since 1900 in the upper half, fractions of
/// 2^-32 s in the lower one (RFC 5905 section 6). It wraps every 136 years, next in 2036.
pub fn timestamp(since_1970: Duration) -> u64 {
    const FROM_1900_TO_1970: u64 = 2_208_988_800;
    let seconds = since_1970.as_secs().wrapping_add(FROM_1900_TO_1970);
    let fraction = (u64::from(since_1970.subsec_nanos()) << 32) / 1_000_000_000;
    seconds << 32 | fraction
}

/// Reads a message and checks all its extensions; `v6` is the version of the packet around it.
///
/// # Errors
/// [`MobilityError`].
pub fn parse(bytes: &[u8], v6: bool) -> Result<(Message, Extensions<'_>), MobilityError> {
    let mut reader = Reader { rest: bytes, v6 };
    let [kind] = reader.take()?;
    let message = match kind {
        REQUEST => {
            let [flags] = reader.take()?;
            Message::Request(Request {
                flags,
                lifetime: u16::from_be_bytes(reader.take()?),
                home: reader.address()?,
                home_agent: reader.address()?,
                care_of: reader.address()?,
                identification: u64::from_be_bytes(reader.take()?),
            })
        }
        REPLY => {
            let [code] = reader.take()?;
            Message::Reply(Reply {
                code,
                lifetime: u16::from_be_bytes(reader.take()?),
                home: reader.address()?,
                home_agent: reader.address()?,
                identification: u64::from_be_bytes(reader.take()?),
            })
        }
        REVOCATION => {
            let [_, flags, _] = reader.take()?;
            Message::Revocation(Revocation {
                is_from_home: flags & 0x80 != 0,
                informs: flags & 0x40 != 0,
                home: reader.address()?,
                home_agent: reader.address()?,
                foreign_agent: reader.address()?,
                identifier: u32::from_be_bytes(reader.take()?),
            })
        }
        ACKNOWLEDGMENT => {
            let [_, flags, _] = reader.take()?;
            Message::Acknowledgment(Acknowledgment {
                informs: flags & 0x80 != 0,
                home: reader.address()?,
                identifier: u32::from_be_bytes(reader.take()?),
            })
        }
        other => return Err(MobilityError::Type(other)),
    };
    let extensions = Extensions::checked(bytes, bytes.len() - reader.rest.len())?;
    Ok((message, extensions))
}

impl Message {
    /// Returns the bytes of the message without extensions. An address that is not of the home
    /// address's version is written as the unspecified address.
    pub fn emit(&self) -> Vec<u8> {
        let flag = |is_set: bool, mask: u8| if is_set { mask } else { 0 };
        let (head, home, others, tail) = match self {
            Self::Request(of) => {
                let [high, low] = of.lifetime.to_be_bytes();
                let id = of.identification.to_be_bytes().to_vec();
                ([REQUEST, of.flags, high, low], of.home, vec![of.home_agent, of.care_of], id)
            }
            Self::Reply(of) => {
                let [high, low] = of.lifetime.to_be_bytes();
                let id = of.identification.to_be_bytes().to_vec();
                ([REPLY, of.code, high, low], of.home, vec![of.home_agent], id)
            }
            Self::Revocation(of) => {
                let flags = flag(of.is_from_home, 0x80) | flag(of.informs, 0x40);
                let id = of.identifier.to_be_bytes().to_vec();
                let others = vec![of.home_agent, of.foreign_agent];
                ([REVOCATION, 0, flags, 0], of.home, others, id)
            }
            Self::Acknowledgment(of) => {
                let id = of.identifier.to_be_bytes().to_vec();
                ([ACKNOWLEDGMENT, 0, flag(of.informs, 0x80), 0], of.home, Vec::new(), id)
            }
        };
        let mut bytes = head.to_vec();
        for address in std::iter::once(home).chain(others) {
            match (home, address) {
                (_, IpAddr::V4(v4)) if home.is_ipv4() => bytes.extend(v4.octets()),
                (IpAddr::V4(_), _) => bytes.extend(Ipv4Addr::UNSPECIFIED.octets()),
                (_, IpAddr::V6(v6)) => bytes.extend(v6.octets()),
                (_, IpAddr::V4(_)) => bytes.extend(Ipv6Addr::UNSPECIFIED.octets()),
            }
        }
        bytes.extend(tail);
        bytes
    }
}

/// Reads fields from the start of what is left.
struct Reader<'a> {
    rest: &'a [u8],
    v6: bool,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MobilityError> {
        let (field, rest) = self.rest.split_first_chunk().ok_or(MobilityError::Truncated)?;
        self.rest = rest;
        Ok(*field)
    }

    fn address(&mut self) -> Result<IpAddr, MobilityError> {
        match self.v6 {
            true => self.take::<16>().map(IpAddr::from),
            false => self.take::<4>().map(IpAddr::from),
        }
    }
}
