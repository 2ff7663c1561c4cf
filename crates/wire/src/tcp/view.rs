//! Reading a TCP segment, and editing its header, in place in an IP packet.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;

use super::{Fields, HEADER_LEN, flag, split};
use crate::checksum::{update_at, verify_transport};
use crate::options::TcpOptions;
use crate::options::extension::checksum_at;
use crate::{Headers, ip};

/// Offsets of fields in a TCP header (RFC 9293 section 3.1).
const AT_DATA_OFFSET: usize = 12;
const AT_WINDOW: usize = 14;
const AT_CHECKSUM: usize = 16;

/// A view of a TCP segment in its IP packet.
///
/// ```
/// use airtcp_types::FlowId;
/// use airtcp_wire::tcp::{self, Header, View, flag};
///
/// let flow = FlowId { local: "10.0.0.1:4000".parse()?, remote: "10.0.0.2:80".parse()? };
/// let header = Header { window: 512, ..Header::default() };
/// let mut packet = tcp::emit(&flow, 64, &header, b"hello");
///
/// let view = View::checked(&packet.data).expect("a whole segment");
/// assert_eq!((view.src(), view.data_len()), (flow.local, 5));
/// assert!(!view.fields().has(flag::SYN) && view.is_intact());
///
/// let editor = view.editor();
/// editor.set_window(&mut packet.data, 0);
/// let view = View::checked(&packet.data).expect("it still is");
/// assert!(view.fields().window() == 0 && view.is_intact());
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    src: IpAddr,
    dst: IpAddr,
    fields: Fields<'a>,
    /// Header and data, as far as they were captured.
    segment: &'a [u8],
    /// The offset of the TCP header in the packet.
    at: usize,
    data_len: usize,
}

impl<'a> View<'a> {
    /// Reads the segment of a captured packet, which may be truncated anywhere behind the first 20
    /// bytes of the TCP header. `None` for other protocols and for fragments.
    ///
    /// No checksum is verified. If the length field is zero, as in long super-segments, the length
    /// of the packet is that of `bytes`.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, false)
    }

    /// Reads the segment of a packet, and checks all lengths and the checksum of an IPv4 header.
    /// [`is_intact`](Self::is_intact) verifies the checksum of the segment.
    #[inline]
    pub fn checked(bytes: &'a [u8]) -> Option<Self> {
        Self::read(bytes, true)
    }

    #[inline(always)]
    fn read(bytes: &'a [u8], is_checked: bool) -> Option<Self> {
        Headers::then(
            bytes,
            #[inline(always)]
            |headers| {
                if headers.protocol != ip::TCP || headers.is_fragment() {
                    return Ok(None);
                }
                let packet =
                    if is_checked { headers.check(bytes, 0)? } else { headers.trim(bytes) };
                // A captured packet may be truncated.
                let total = headers.total.map_or(packet.len(), NonZero::get);
                let segment = &packet[headers.len..];
                let fields = Fields::of(segment)?;
                let (src, dst) = headers.addresses(packet);
                let data_len = total.checked_sub(headers.len + fields.header_len());
                Ok(data_len.map(|data_len| Self {
                    src,
                    dst,
                    fields,
                    segment,
                    at: headers.len,
                    data_len,
                }))
            },
        )
        .ok()?
    }

    /// Source address and port.
    #[inline]
    pub fn src(&self) -> SocketAddr {
        SocketAddr::new(self.src, self.fields.src_port())
    }

    /// Destination address and port.
    #[inline]
    pub fn dst(&self) -> SocketAddr {
        SocketAddr::new(self.dst, self.fields.dst_port())
    }

    /// The fields of the header.
    #[inline]
    pub const fn fields(&self) -> Fields<'a> {
        self.fields
    }

    /// The options; `None` if the packet is truncated before their end.
    #[inline]
    pub fn options(&self) -> Option<TcpOptions> {
        self.option_list().map(TcpOptions::parse)
    }

    /// The length of the data in bytes, as it was sent.
    #[inline]
    pub const fn data_len(&self) -> usize {
        self.data_len
    }

    /// Whether the TCP checksum is correct.
    #[inline]
    pub fn is_intact(&self) -> bool {
        verify_transport(self.src, self.dst, ip::TCP, self.segment)
    }

    /// Returns the editor of the header.
    #[inline]
    pub const fn editor(&self) -> Editor {
        Editor { at: self.at }
    }

    #[inline]
    fn option_list(&self) -> Option<&'a [u8]> {
        self.segment.get(HEADER_LEN..self.fields.header_len())
    }
}

/// Edits the header of a TCP segment in its packet.
///
/// Each edit updates the TCP checksum and HACK's checksum. A wrong checksum stays wrong, so that
/// the receiver still detects corruption. Use it only on the packet from which the [`View`] was
/// read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Editor {
    /// The offset of the TCP header in the packet.
    at: usize,
}

impl Editor {
    /// Sets bits among the four after the data offset, which include those of TCP-ECN and AccECN.
    pub fn set_reserved(self, packet: &mut [u8], bits: u8) {
        let header = &mut packet[self.at..];
        let new = [header[AT_DATA_OFFSET] | (bits & 0x0f), header[AT_DATA_OFFSET + 1]];
        self.replace(header, AT_DATA_OFFSET, new);
    }

    /// Sets the window field.
    pub fn set_window(self, packet: &mut [u8], window: u16) {
        self.replace(&mut packet[self.at..], AT_WINDOW, window.to_be_bytes());
    }

    /// Replaces two bytes of the header and updates the checksums.
    fn replace(self, header: &mut [u8], at: usize, new: [u8; 2]) {
        let two = |header: &[u8], at: usize| [header[at], header[at + 1]];
        let old = two(header, at);
        let mut sum = u16::from_be_bytes(two(header, AT_CHECKSUM));
        sum = update_at(sum, at, old, new);
        header[at..at + 2].copy_from_slice(&new);
        if let Some(hack) = hack_at(header) {
            let before = two(header, hack);
            let after = update_at(u16::from_be_bytes(before), at, old, new).to_be_bytes();
            header[hack..hack + 2].copy_from_slice(&after);
            sum = update_at(sum, hack, before, after);
        }
        header[AT_CHECKSUM..AT_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns the offset of HACK's checksum in a TCP header.
fn hack_at(segment: &[u8]) -> Option<usize> {
    let (fields, options, _) = split(segment).ok()?;
    // HACK 3: on a SYN the option is an offer and has no checksum.
    let at = if fields.has(flag::SYN) { None } else { checksum_at(options) };
    at.map(|at| HEADER_LEN + at)
}
