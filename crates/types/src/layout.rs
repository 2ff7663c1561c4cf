//! Where the parts of an IP packet begin.

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;

/// Where the transport header of a TCP or UDP packet begins, and where its payload does.
///
/// It is for who edits packets that were checked, or made, elsewhere: the lengths it gives are within the bytes it was
/// read from, and nothing else is looked at. IPv6 options and routing headers with nothing left to visit are stepped over
/// and count as the IP header's. A fragment has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Whether it is IPv6.
    pub v6: bool,
    /// Whether it is TCP, and not UDP.
    pub tcp: bool,
    /// The offset of the transport header: the length of the IP header.
    pub transport: usize,
    /// The offset of the payload: the length of all headers.
    pub payload: usize,
}

impl Layout {
    /// Reads it; `None` of anything else, or if the headers are not all there.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (v6, transport, protocol) = match bytes.first()? >> 4 {
            4 => {
                let fragment = u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x3fff;
                let header = usize::from(bytes[0] & 0x0f) * 4;
                (false, header, *bytes.get(9).filter(|_| fragment == 0 && header >= 20)?)
            }
            6 => {
                let (at, protocol) = skip_headers(bytes)?;
                (true, at, protocol)
            }
            _ => return None,
        };
        let (tcp, header) = match protocol {
            6 => (true, usize::from(bytes.get(transport + 12)? >> 4) * 4),
            17 => (false, 8),
            _ => return None,
        };
        let payload = transport + header;
        let whole = bytes.len() >= payload && (!tcp || header >= 20);
        whole.then_some(Self { v6, tcp, transport, payload })
    }

    /// The protocol number.
    pub const fn protocol(&self) -> u8 {
        if self.tcp { 6 } else { 17 }
    }

    /// The offset of the checksum in the transport header.
    pub const fn checksum(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }
}

/// Where the first IPv6 header is that is no option and no routing header, and of what kind.
fn skip_headers(bytes: &[u8]) -> Option<(usize, u8)> {
    let (mut at, mut kind) = (40, *bytes.get(6)?);
    while let HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS = kind {
        // RFC 8200 section 4.4: the last byte of the four is the segments left.
        let &[next, length, _, left] = bytes.get(at..)?.first_chunk()?;
        if kind == ROUTING && left != 0 {
            return None;
        }
        (at, kind) = (at + 8 * (1 + usize::from(length)), next);
    }
    Some((at, kind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_are_found_with_their_options() {
        let mut packet = vec![0; 100];
        (packet[0], packet[9]) = (0x46, 6);
        packet[24 + 12] = 0x80;
        let layout = Layout { v6: false, tcp: true, transport: 24, payload: 56 };
        assert_eq!(Layout::of(&packet), Some(layout));
        assert_eq!(Layout::of(&packet[..56]), Some(layout), "without payload");
        assert_eq!(Layout::of(&packet[..55]), None);
        packet[7] = 1;
        assert_eq!(Layout::of(&packet), None, "a fragment");
        (packet[0], packet[6]) = (0x60, 17);
        let layout = Layout { v6: true, tcp: false, transport: 40, payload: 48 };
        assert_eq!(Layout::of(&packet), Some(layout));
        // Hop-by-hop options of 8 bytes, a routing header of 8, destination options of 16, UDP.
        packet[6] = HOP_BY_HOP;
        packet[40..42].copy_from_slice(&[ROUTING, 0]);
        packet[48..50].copy_from_slice(&[DESTINATION_OPTIONS, 0]);
        packet[56..58].copy_from_slice(&[17, 1]);
        let layout = Layout { v6: true, tcp: false, transport: 72, payload: 80 };
        assert_eq!(Layout::of(&packet), Some(layout));
        packet[51] = 1;
        assert_eq!(Layout::of(&packet), None, "it is for somebody else first");
    }

    proptest! {
        #[test]
        fn what_it_gives_lies_within_the_bytes(
            mut bytes in prop::collection::vec(any::<u8>(), 0..120),
            first in prop_oneof![Just(0x45), Just(0x60), any::<u8>()],
        ) {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            if let Some(layout) = Layout::of(&bytes) {
                prop_assert!(layout.payload <= bytes.len());
                prop_assert!(layout.transport + layout.checksum() + 2 <= layout.payload);
            }
        }
    }
}
