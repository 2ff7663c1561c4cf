//! Link headers: their length, and whether IP follows.
//!
//! Link types are those of tcpdump.org/linktypes.html.

use super::read::Direction;

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
const LOOP: u32 = 108;
const LINUX_SLL: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const LINUX_SLL2: u32 = 276;
/// LINKTYPE_RAW, and the DLT_RAW values that some systems write instead.
const RAW: [u32; 3] = [101, 12, 14];

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];

/// The type of packets that this machine sent, in the header of Linux's `any` device.
const PACKET_OUTGOING: u16 = 4;

pub(super) fn is_known(link: u32) -> bool {
    let known = [NULL, ETHERNET, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2];
    known.contains(&link) || RAW.contains(&link)
}

/// Returns the length of the link header of a frame, and the direction in it; `None` if IP does not
/// follow.
pub(super) fn header(link: u32, frame: &[u8]) -> Option<(usize, Direction)> {
    let half = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let (len, direction) = match link {
        ETHERNET => (ethernet(frame)?, Direction::Unknown),
        // An address family in the byte order of the capturing machine, which is redundant with the
        // IP version.
        NULL | LOOP => (4, Direction::Unknown),
        LINUX_SLL => (is_ip(half(14)?).then_some(16)?, cooked(half(0)?)),
        LINUX_SLL2 => (is_ip(half(0)?).then_some(20)?, cooked(u16::from(*frame.get(10)?))),
        IPV4 | IPV6 => (0, Direction::Unknown),
        raw if RAW.contains(&raw) => (0, Direction::Unknown),
        _ => return None,
    };
    matches!(frame.get(len)? >> 4, 4 | 6).then_some((len, direction))
}

fn cooked(packet_type: u16) -> Direction {
    if packet_type == PACKET_OUTGOING { Direction::Out } else { Direction::In }
}

fn is_ip(ethertype: u16) -> bool {
    matches!(ethertype, ETHERTYPE_IPV4 | ETHERTYPE_IPV6)
}

/// Two addresses, up to two VLAN tags, the type.
fn ethernet(frame: &[u8]) -> Option<usize> {
    for at in [12, 16, 20] {
        let ethertype = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        if is_ip(ethertype) {
            return Some(at + 2);
        }
        if !ETHERTYPES_VLAN.contains(&ethertype) {
            return None;
        }
    }
    None
}
