//! The header in front of each packet of an offloading device: `struct virtio_net_hdr` of
//! linux/virtio_net.h, in native byte order.

use airtcp_types::{Checksum, Packet};
use airtcp_wire::Layout;
use airtcp_wire::checksum::checksum;

/// The length of the header in bytes.
pub(super) const LENGTH: usize = 10;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// A flag of the TCP types: the first segment has CWR.
const GSO_ECN: u8 = 0x80;

/// CWR in the flags of a TCP header.
const CWR: u8 = 0x80;

/// The header's information about the packet behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Received {
    pub(super) checksum: Checksum,
    pub(super) segment_size: Option<u16>,
    /// The offset of the payload in a TCP or UDP packet.
    pub(super) payload: Option<usize>,
}

/// Reads the header at the start of `bytes`; `None` if it does not match the packet behind it.
///
/// A partial checksum at a place other than that of TCP or UDP is completed.
pub(super) fn read(bytes: &mut [u8]) -> Option<Received> {
    let (header, packet) = bytes.split_first_chunk_mut::<LENGTH>()?;
    let [flags, gso_type, ref numbers @ ..] = *header;
    // The first number, the length of all headers, is ignored: it may be that of one segment or of
    // any linear data that the kernel had.
    let [_, gso_size, start, offset] = numbers_of(numbers);
    let layout = Layout::of(packet);
    let segment_size = match gso_type & !GSO_ECN {
        GSO_NONE => None,
        kind => Some(gso_size).filter(|&size| size > 0 && layout.map(gso_kind) == Some(kind)),
    };
    if segment_size.is_none() && gso_type & !GSO_ECN != GSO_NONE {
        return None;
    }
    let checksum = if flags & NEEDS_CSUM != 0 {
        let place = (usize::from(start), usize::from(offset));
        if layout.is_some_and(|layout| place == (layout.transport, layout.checksum())) {
            Checksum::Partial
        } else if segment_size.is_none() {
            complete(packet, place)?;
            Checksum::Full
        } else {
            return None;
        }
    } else if flags & DATA_VALID != 0 || segment_size.is_some() {
        // A super-segment has no checksum of its own; those of its segments were verified or never
        // computed.
        Checksum::Verified
    } else {
        Checksum::Full
    };
    Some(Received { checksum, segment_size, payload: layout.map(|layout| layout.payload) })
}

/// Returns the header for a packet; `None` if the device cannot finish the packet.
pub(super) fn header_of(packet: &Packet) -> Option<[u8; LENGTH]> {
    let is_partial = packet.checksum == Checksum::Partial;
    let mut header = [0; LENGTH];
    if !is_partial && packet.segment_size.is_none() {
        return Some(header);
    }
    let layout = Layout::of(&packet.data)?;
    let mut numbers = [u16::try_from(layout.payload).ok()?, 0, 0, 0];
    if is_partial {
        header[0] = NEEDS_CSUM;
        // Both are less than the length of the headers, which fits.
        numbers[2..].copy_from_slice(&[layout.transport as u16, layout.checksum() as u16]);
    }
    if let Some(size) = packet.segment_size {
        let has_cwr = layout.tcp && packet.data[layout.transport + 13] & CWR != 0;
        header[1] = gso_kind(layout) | if has_cwr { GSO_ECN } else { 0 };
        numbers[1] = size;
    }
    for (to, number) in header[2..].as_chunks_mut::<2>().0.iter_mut().zip(numbers) {
        *to = number.to_ne_bytes();
    }
    Some(header)
}

const fn gso_kind(layout: Layout) -> u8 {
    match layout {
        Layout { tcp: false, .. } => GSO_UDP_L4,
        Layout { v6: false, .. } => GSO_TCPV4,
        Layout { .. } => GSO_TCPV6,
    }
}

fn numbers_of(bytes: &[u8; 8]) -> [u16; 4] {
    let number = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    [number(0), number(2), number(4), number(6)]
}

/// Completes a partial checksum: sums the bytes from `start` and stores the result at `offset` from
/// there, where the pseudo-header's sum is.
fn complete(packet: &mut [u8], (start, offset): (usize, usize)) -> Option<()> {
    let part = packet.get_mut(start..)?;
    part.get(offset..offset + 2)?;
    let sum = match checksum(part) {
        // As in the kernel: in UDP, zero means no checksum; elsewhere both values are equivalent.
        0 => u16::MAX,
        sum => sum,
    };
    part[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests;
