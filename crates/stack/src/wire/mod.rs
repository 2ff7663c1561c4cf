//! Reading and writing packets.
//!
//! Headers go through smoltcp's wire views, always over lengths that were checked first; TCP options
//! and checksums are [`airtcp_types`]' own. Whatever arrives, reading gives a value or a
//! [`ParseError`], never a panic.

pub mod fragment;
pub mod icmp;
pub mod ip;
pub mod payload;
pub mod run;
pub mod tcp;
pub mod udp;

#[cfg(test)]
mod tests;

use airtcp_types::options::OptionError;

/// Why bytes are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// There are fewer bytes than the header has, or says there are.
    #[error("packet is cut short")]
    Truncated,
    /// The IP version is neither 4 nor 6.
    #[error("IP version {0} is unknown")]
    Version(u8),
    /// A length field contradicts another, or the header it counts.
    #[error("length field makes no sense")]
    Length,
    /// The IPv4 header's checksum is wrong.
    #[error("IPv4 header checksum is wrong")]
    HeaderChecksum,
    /// The transport checksum is wrong.
    #[error("transport checksum is wrong")]
    Checksum,
    /// The packet is a fragment: [`fragment::parse`] reads it.
    #[error("packet is a fragment")]
    Fragment,
    /// The TCP options make no sense.
    #[error("TCP options: {0}")]
    Options(#[from] OptionError),
}
