//! The positions of transport header and payload in an IP packet.

use crate::{Headers, ip, tcp, udp};

/// The positions of transport header and payload in a TCP or UDP packet.
///
/// For editing packets that were checked or built elsewhere: the offsets are within the packet, but
/// no checksum is verified. The IP headers include IPv6 extension headers, as in [`Headers`]. A
/// fragment has no layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Whether the packet is IPv6.
    pub v6: bool,
    /// Whether the packet is TCP; otherwise it is UDP.
    pub tcp: bool,
    /// The offset of the transport header, which is the length of the IP headers.
    pub transport: usize,
    /// The offset of the payload, which is the length of all headers.
    pub payload: usize,
}

impl Layout {
    /// Reads the layout of a packet; `None` for other protocols, or if the headers are incomplete.
    #[inline]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        Headers::of(bytes).ok()?.layout(bytes)
    }

    /// The protocol number.
    pub const fn protocol(&self) -> u8 {
        if self.tcp { ip::TCP } else { ip::UDP }
    }

    /// The offset of the checksum in the transport header.
    pub const fn checksum(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }
}

impl Headers {
    /// Returns the layout of the packet from which the headers were read, like [`Layout::of`].
    #[inline(always)]
    pub fn layout(&self, packet: &[u8]) -> Option<Layout> {
        let Self { v6, protocol, len: transport, .. } = *self;
        let packet = self.trim(packet);
        let (tcp, header) = match protocol {
            _ if self.is_fragment() => return None,
            ip::TCP => (true, usize::from(packet.get(transport + 12)? >> 4) * 4),
            ip::UDP => (false, udp::HEADER_LEN),
            _ => return None,
        };
        let payload = transport + header;
        let is_whole = packet.len() >= payload;
        let is_header = !tcp || header >= tcp::HEADER_LEN;
        (is_whole && is_header).then_some(Layout { v6, tcp, transport, payload })
    }
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
        assert_eq!(Layout::of(&packet[..56]), Some(layout), "no payload");
        assert_eq!(Layout::of(&packet[..55]), None);
        packet[7] = 1;
        assert_eq!(Layout::of(&packet), None, "a fragment");
        (packet[0], packet[6]) = (0x60, 17);
        let layout = Layout { v6: true, tcp: false, transport: 40, payload: 48 };
        assert_eq!(Layout::of(&packet), Some(layout));
        // Hop-by-hop options (8 bytes), a routing header (8), destination options (16), UDP.
        packet[6] = 0;
        packet[40..42].copy_from_slice(&[43, 0]);
        packet[48..50].copy_from_slice(&[60, 0]);
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
