//! Extensions after the fields of a message (RFC 5944 sections 1.9 to 1.11).

use super::MobilityError;

/// The vendor of our extensions: the number that RFC 5612 reserves for documentation.
pub const VENDOR: u32 = 32_473;

const PADDING: u8 = 0;
/// RFC 3115 section 2.1: the critical vendor extension.
const CRITICAL_VENDOR: u8 = 38;
/// RFC 3115 section 2.2: the vendor extension that others skip.
const NORMAL_VENDOR: u8 = 134;
/// Extensions from this type on may be skipped (RFC 5944 section 1.8).
const SKIPPABLE: u8 = 128;

/// The length of an authentication extension up to its authenticator: type, length, SPI.
const AUTHENTICATION_HEAD: usize = 6;
/// The length of a critical vendor extension up to its value: type, reserved, length, vendor, kind.
const VENDOR_HEAD: usize = 10;
/// The length of the other one between its length field and its value: reserved, vendor, kind.
const HINT_HEAD: usize = 8;

/// The two ends between which an extension authenticates (RFC 5944 sections 3.5.2 to 3.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// Mobile and home agent.
    MobileHome = 32,
    /// Mobile and foreign agent.
    MobileForeign = 33,
    /// Foreign agent and home agent.
    ForeignHome = 34,
}

/// An extension of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension<'a> {
    /// An authentication extension.
    Authentication(Authentication<'a>),
    /// A critical extension of our [`VENDOR`].
    Vendor {
        /// The kind, which the vendor assigns.
        kind: u16,
        /// The value.
        value: &'a [u8],
    },
    /// An extension of our [`VENDOR`] that agents of others skip.
    Hint {
        /// The kind, which the vendor assigns.
        kind: u16,
        /// The value.
        value: &'a [u8],
    },
    /// An extension of this type, which is not read and may be skipped.
    Other(u8),
}

/// An authentication extension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Authentication<'a> {
    /// The two ends.
    pub ends: Ends,
    /// The security parameter index, which selects the key.
    pub spi: u32,
    /// The bytes that the authenticator covers: the message up to and including the SPI.
    pub covered: &'a [u8],
    /// The authenticator.
    pub authenticator: &'a [u8],
}

/// The extensions of a message, in order. Padding is skipped.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    message: &'a [u8],
    /// The offset of the next extension.
    at: usize,
}

impl<'a> Extensions<'a> {
    /// Checks the extensions from the offset `at` of the message.
    pub(super) fn checked(message: &'a [u8], at: usize) -> Result<Self, MobilityError> {
        let extensions = Self { message, at };
        let mut checked = extensions;
        while checked.read()?.is_some() {}
        Ok(extensions)
    }

    fn read(&mut self) -> Result<Option<Extension<'a>>, MobilityError> {
        let message = self.message;
        loop {
            let rest = &message[self.at.min(message.len())..];
            let Some(&kind) = rest.first() else { return Ok(None) };
            if kind == PADDING {
                self.at += 1;
                continue;
            }
            let short = || MobilityError::Extension(kind);
            let (head, len) = match *rest {
                [CRITICAL_VENDOR, _, high, low, ..] => (4, u16::from_be_bytes([high, low]).into()),
                [CRITICAL_VENDOR, ..] => return Err(short()),
                [_, len, ..] => (2, usize::from(len)),
                _ => return Err(short()),
            };
            let value = rest.get(head..head + len).ok_or_else(short)?;
            let extension = match kind {
                CRITICAL_VENDOR => {
                    let (vendor, value) = value.split_first_chunk().ok_or_else(short)?;
                    let (kind, value) = value.split_first_chunk().ok_or_else(short)?;
                    match u32::from_be_bytes(*vendor) {
                        VENDOR => Extension::Vendor { kind: u16::from_be_bytes(*kind), value },
                        other => return Err(MobilityError::Vendor(other)),
                    }
                }
                32..=34 => {
                    let (spi, authenticator) = value.split_first_chunk().ok_or_else(short)?;
                    let ends = match kind {
                        32 => Ends::MobileHome,
                        33 => Ends::MobileForeign,
                        _ => Ends::ForeignHome,
                    };
                    let (spi, covered) =
                        (u32::from_be_bytes(*spi), &message[..self.at + AUTHENTICATION_HEAD]);
                    Extension::Authentication(Authentication { ends, spi, covered, authenticator })
                }
                NORMAL_VENDOR => hint(value).unwrap_or(Extension::Other(kind)),
                SKIPPABLE.. => Extension::Other(kind),
                _ => return Err(MobilityError::Unknown(kind)),
            };
            self.at += head + len;
            return Ok(Some(extension));
        }
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Extension<'a>;

    fn next(&mut self) -> Option<Extension<'a>> {
        // All extensions were checked before.
        self.read().ok().flatten()
    }
}

/// Reads a vendor extension that may be skipped, if it is of our vendor.
fn hint(value: &[u8]) -> Option<Extension<'_>> {
    let (_, value) = value.split_first_chunk::<2>()?;
    let (vendor, value) = value.split_first_chunk()?;
    let (kind, value) = value.split_first_chunk()?;
    let is_ours = u32::from_be_bytes(*vendor) == VENDOR;
    is_ours.then_some(Extension::Hint { kind: u16::from_be_bytes(*kind), value })
}

/// Appends an extension of our [`VENDOR`] that agents of others skip, with at most 247 bytes; further
/// ones are cut off.
pub fn push_hint(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u8::MAX) - HINT_HEAD)];
    message.extend([NORMAL_VENDOR, (HINT_HEAD + value.len()) as u8, 0, 0]);
    message.extend(VENDOR.to_be_bytes());
    message.extend(kind.to_be_bytes());
    message.extend_from_slice(value);
}

/// Appends a critical extension of our [`VENDOR`] with at most 65,529 bytes; further ones are cut
/// off.
pub fn push_vendor(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX) - (VENDOR_HEAD - 4))];
    let len = (VENDOR_HEAD - 4 + value.len()) as u16;
    message.extend([CRITICAL_VENDOR, 0]);
    message.extend(len.to_be_bytes());
    message.extend(VENDOR.to_be_bytes());
    message.extend(kind.to_be_bytes());
    message.extend_from_slice(value);
}

/// Appends an authentication extension. `sign` returns the authenticator of `len` bytes, at most
/// 251, for the bytes that it covers.
pub fn push_authentication<A: AsRef<[u8]>>(
    message: &mut Vec<u8>,
    ends: Ends,
    spi: u32,
    len: u8,
    sign: impl FnOnce(&[u8]) -> A,
) {
    message.extend([ends as u8, len.saturating_add(4)]);
    message.extend(spi.to_be_bytes());
    let authenticator = sign(message);
    debug_assert_eq!(authenticator.as_ref().len(), usize::from(len));
    message.extend_from_slice(authenticator.as_ref());
}
