//! Sends packets through a single link, each at a fixed time, independent of the others.

use airtcp_link::{Link, LinkSpec};
use airtcp_sim::Wire;
use airtcp_types::{Instant, Node, Packet, PortId};

use crate::LabError;

/// Parses a link description.
pub(crate) fn spec(text: &str) -> Result<LinkSpec, LabError> {
    text.parse().map_err(|source| LabError::Spec { text: text.to_owned(), source })
}

/// Returns the wire of two descriptions, forth and back.
pub(crate) fn wire(forth: &str, back: &str) -> Result<Wire, LabError> {
    Ok(Wire { forth: spec(forth)?, back: spec(back)? })
}

/// Returns the wire of a description, which drops `loss` per cent of the data packets on the way
/// forth.
pub(crate) fn lossy(link: &str, loss: f64) -> Result<Wire, LabError> {
    let lossy = format!("{link} loss {loss}% only payload");
    wire(if loss > 0.0 { &lossy } else { link }, link)
}

/// Returns the link of a description, the same in both directions.
pub(crate) fn link(text: &str) -> Result<Link, LabError> {
    let spec = spec(text)?;
    Ok(Link::new(&spec, &spec)?)
}

/// Returns a packet that contains its number and is not an IP packet.
pub(crate) fn numbered(number: u64, size: usize) -> Packet {
    let mut data = vec![0; size.max(8)];
    data[..8].copy_from_slice(&number.to_be_bytes());
    Packet::new(data)
}

/// Returns the number of a [`numbered`] packet.
pub(crate) fn number_of(packet: &Packet) -> u64 {
    packet.data.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Sends packets forth, each at its time, and passes arriving packets to `arrived` with the time of
/// arrival.
pub(crate) fn send(
    link: &mut Link,
    packets: impl IntoIterator<Item = (Instant, Packet)>,
    mut arrived: impl FnMut(Instant, &Packet),
) {
    for (at, packet) in packets {
        drain(link, at, &mut arrived);
        link.handle_packet(at, PortId(0), packet);
    }
    drain(link, Instant::MAX, &mut arrived);
}

fn drain(link: &mut Link, until: Instant, arrived: &mut impl FnMut(Instant, &Packet)) {
    while let Some(at) = link.poll_timeout().filter(|at| *at <= until) {
        link.handle_timeout(at);
        while let Some((_, packet)) = link.poll_transmit(at) {
            arrived(at, &packet);
        }
    }
}

/// Returns `count` numbered packets of 100 bytes, one every microsecond.
pub(crate) fn stream(count: u64) -> impl Iterator<Item = (Instant, Packet)> {
    (0..count).map(|number| (Instant::from_nanos(number * 1_000), numbered(number, 100)))
}

/// Returns which packets of a [`stream`] are lost on the link of a description.
pub(crate) fn losses(text: &str, count: u64) -> Result<Vec<bool>, LabError> {
    let mut lost = vec![true; count as usize];
    send(&mut link(text)?, stream(count), |_, packet| lost[number_of(packet) as usize] = false);
    Ok(lost)
}
