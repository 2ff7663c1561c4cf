//! Gathering of datagrams into one packet that the kernel splits again (UDP segmentation offload).

use std::collections::VecDeque;

use airtcp_types::{Checksum, Packet};
use airtcp_wire::Layout;
use airtcp_wire::checksum::{Sum, checksum};

use super::LONGEST;

/// The maximum number of datagrams in one packet that every kernel accepts.
const MOST: usize = 64;

/// Appends the datagrams that follow the first of `packets` to it, and passes their packets to
/// `spent`; returns their number.
///
/// Gathers only datagrams that splitting restores: the same headers and the same length, except
/// that the last one may be shorter. The checksum must be partial: a complete one may be wrong, and
/// has to arrive unchanged.
pub(super) fn gather(packets: &mut VecDeque<Packet>, mut spent: impl FnMut(Packet)) -> usize {
    if packets.len() < 2 {
        return 0;
    }
    let Some((layout, size)) = packets.front().and_then(open_datagram) else { return 0 };
    let Some(mut first) = packets.pop_front() else { return 0 };
    let mut count = 1;
    while let Some(next) = packets.pop_front() {
        let full = first.data.len() == layout.payload + count * size;
        if count == MOST || !full || !follows(&first, &next, layout, size) {
            packets.push_front(next);
            break;
        }
        first.data.extend_from_slice(&next.data[layout.payload..]);
        count += 1;
        spent(next);
    }
    if count > 1 {
        finish(&mut first, layout, size);
    }
    packets.push_front(first);
    count - 1
}

/// Returns the layout and the payload length of a contiguous datagram with payload and a partial
/// checksum.
fn open_datagram(packet: &Packet) -> Option<(Layout, usize)> {
    let is_open = packet.checksum == Checksum::Partial;
    if !is_open || packet.segment_size.is_some() || !packet.tail.is_empty() {
        return None;
    }
    let layout = Layout::of(&packet.data).filter(|layout| !layout.tcp)?;
    let size = packet.data.len() - layout.payload;
    // A packet with bytes behind the datagram has to arrive with them.
    let is_whole = lengths(packet, layout) == lengths_for(layout, packet.data.len());
    (size > 0 && is_whole).then_some((layout, size))
}

fn follows(first: &Packet, next: &Packet, layout: Layout, size: usize) -> bool {
    let Some((its, its_size)) = open_datagram(next) else { return false };
    let differs = |at: usize| {
        let ip = if layout.v6 { 4..6 } else { 2..4 };
        let ip_sum = !layout.v6 && (10..12).contains(&at);
        ip.contains(&at) || ip_sum || (layout.transport + 4..layout.transport + 8).contains(&at)
    };
    its == layout
        && its_size <= size
        && first.data.len() + its_size < LONGEST
        && (0..layout.payload).all(|at| differs(at) || first.data[at] == next.data[at])
}

/// Returns the length fields of the IP header and of the UDP header.
fn lengths(packet: &Packet, layout: Layout) -> [usize; 2] {
    let at = |at: usize| usize::from(u16::from_be_bytes([packet.data[at], packet.data[at + 1]]));
    [at(if layout.v6 { 4 } else { 2 }), at(layout.transport + 4)]
}

/// Returns the values of the length fields in a packet of `length` bytes.
fn lengths_for(layout: Layout, length: usize) -> [usize; 2] {
    [if layout.v6 { length - 40 } else { length }, length - layout.transport]
}

/// Updates lengths and checksums in the headers after gathering.
fn finish(packet: &mut Packet, layout: Layout, size: usize) {
    let [_, before] = lengths(packet, layout);
    let [whole, datagram] = lengths_for(layout, packet.data.len());
    let at = layout.transport + layout.checksum();
    // The sum of the pseudo-header, in which only the length changes.
    let mut sum = Sum::new();
    sum.add_word(u16::from_be_bytes([packet.data[at], packet.data[at + 1]]));
    sum.add_word(!(before as u16));
    sum.add_word(datagram as u16);
    let mut put = |at: usize, value: u16| {
        packet.data[at..at + 2].copy_from_slice(&value.to_be_bytes());
    };
    put(at, sum.folded());
    put(if layout.v6 { 4 } else { 2 }, whole as u16);
    put(layout.transport + 4, datagram as u16);
    if !layout.v6 {
        put(10, 0);
        let sum = checksum(&packet.data[..layout.transport]);
        packet.data[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet.segment_size = u16::try_from(size).ok();
}

#[cfg(test)]
mod tests;
