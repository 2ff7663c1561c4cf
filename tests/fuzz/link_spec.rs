//! Parses descriptions of links and radios from arbitrary text.

use airtcp_link::{Link, LinkSpec, RadioSpec};
use airtcp_types::{Instant, Node, Packet, PortId};

/// Checks that a parsed description is formatted to an equivalent text and makes a usable link.
/// Returns whether the text was parsed.
pub(crate) fn run(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let radio = text.parse::<RadioSpec>();
    if let Ok(radio) = &radio {
        assert_eq!(radio.to_string().parse().as_ref(), Ok(radio), "{radio}");
    }
    let Ok(spec) = text.parse::<LinkSpec>() else { return radio.is_ok() };
    assert_eq!(spec.to_string().parse().as_ref(), Ok(&spec), "{spec}");
    // Without its trace file no link can be made.
    let Ok(mut link) = Link::new(&spec, &spec) else { return true };
    let mut now = Instant::ZERO;
    for len in [20, 1500, 0] {
        link.handle_packet(now, PortId(0), Packet::new(vec![0x45; len]));
    }
    for _ in 0..100 {
        while link.poll_transmit(now).is_some() {}
        let Some(next) = link.poll_timeout() else { break };
        now = now.max(next);
        link.handle_timeout(now);
    }
    true
}
