//! Packets through a link by itself, each at its time whatever becomes of the others.

use airtcp_link::{Link, LinkSpec};
use airtcp_sim::Wire;
use airtcp_types::{Instant, Node, Packet, PortId};

use crate::LabError;

/// Reads a description.
pub(crate) fn spec(text: &str) -> Result<LinkSpec, LabError> {
    text.parse().map_err(|source| LabError::Spec { text: text.to_owned(), source })
}

/// The wire of two descriptions, forth and back.
pub(crate) fn wire(forth: &str, back: &str) -> Result<Wire, LabError> {
    Ok(Wire { forth: spec(forth)?, back: spec(back)? })
}

/// The wire of a description, which loses a share of the data packets that go forth, in per cent.
pub(crate) fn lossy(link: &str, loss: f64) -> Result<Wire, LabError> {
    let lossy = format!("{link} loss {loss}% only payload");
    wire(if loss > 0.0 { &lossy } else { link }, link)
}

/// The link of a description, the same both ways.
pub(crate) fn link(text: &str) -> Result<Link, LabError> {
    let spec = spec(text)?;
    Ok(Link::new(&spec, &spec)?)
}

/// A packet that is no IP packet and carries its number.
pub(crate) fn numbered(number: u64, size: usize) -> Packet {
    let mut data = vec![0; size.max(8)];
    data[..8].copy_from_slice(&number.to_be_bytes());
    Packet::new(data)
}

/// The number of such a packet.
pub(crate) fn number_of(packet: &Packet) -> u64 {
    packet.data.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Sends packets forth, each at its time, and shows what arrives, when it does.
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

/// So many numbered packets of 100 bytes, one in a microsecond.
pub(crate) fn stream(count: u64) -> impl Iterator<Item = (Instant, Packet)> {
    (0..count).map(|number| (Instant::from_nanos(number * 1_000), numbered(number, 100)))
}

/// Which packets of a [`stream`] the link of a description loses.
pub(crate) fn losses(text: &str, count: u64) -> Result<Vec<bool>, LabError> {
    let mut lost = vec![true; count as usize];
    send(&mut link(text)?, stream(count), |_, packet| lost[number_of(packet) as usize] = false);
    Ok(lost)
}
