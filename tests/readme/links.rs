//! The link emulator, asked for what the table says of it.

use airtcp_link::{Link, LinkSpec, Trace};
use airtcp_types::{Event, EventKind, Fate, Instant, Node, Packet, PortId};

/// Whether a link can be made of each part that the table names.
pub(crate) fn has_every_part() -> bool {
    let parts = [
        "rate 10mbit",
        "trace file",
        "limit 50 codel",
        "delay 5ms 1ms distribution normal",
        "delayed 10% 25ms 8ms",
        "loss gemodel 1% 10% 75% 0.1%",
        "corrupt 5% header 95%",
        "biterror 1e-6",
        "down 5s 2s",
        "half 100us",
    ];
    parts.iter().all(|part| {
        let trace = |_: &str| Trace::parse("1").map_err(|error| error.to_string());
        part.parse::<LinkSpec>().is_ok_and(|spec| Link::with_traces(&spec, &spec, trace).is_ok())
    })
}

/// Whether netem's correlations are understood: a share after the loss or the jitter.
pub(crate) fn correlates() -> bool {
    ["loss 1% 25%", "delay 5ms 1ms 25%"].iter().any(|text| text.parse::<LinkSpec>().is_ok())
}

/// Whether a link tells that it dropped a packet, and which.
pub(crate) fn tells() -> bool {
    let spec: LinkSpec = "loss 100%".parse().unwrap();
    let mut link = Link::new(&spec, &spec).unwrap();
    link.set_events(true);
    let packet = Packet::new(vec![0x45; 40]);
    link.handle_packet(Instant::ZERO, PortId(0), packet.clone());
    let cause = "random loss";
    let kind = EventKind::Packet { fate: Fate::Dropped { cause }, packet };
    link.poll_event() == Some(Event { at: Instant::ZERO, flow: None, kind })
}
