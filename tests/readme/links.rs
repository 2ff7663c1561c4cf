//! Probes the link emulator for the features in the table of capabilities.

use airtcp_link::{Link, LinkSpec, Trace, Way};
use airtcp_types::{Event, EventKind, Fate, Instant, Node, Packet, PortId};

/// Returns whether a link accepts each part that the table names.
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

/// Returns whether the parser accepts netem's correlations: a percentage after the loss or the
/// jitter.
pub(crate) fn correlates() -> bool {
    ["loss 1% 25%", "delay 5ms 1ms 25%"].iter().any(|text| text.parse::<LinkSpec>().is_ok())
}

/// Returns whether a link reports a dropped packet with the cause.
pub(crate) fn reports_drops() -> bool {
    let spec: LinkSpec = "loss 100%".parse().unwrap();
    let mut link = Link::new(&spec, &spec).unwrap();
    link.set_events(true);
    let packet = Packet::new(vec![0x45; 40]);
    link.handle_packet(Instant::ZERO, PortId(0), packet.clone());
    let cause = "random loss";
    let kind = EventKind::Packet { fate: Fate::Dropped { cause }, packet };
    link.poll_event() == Some(Event { at: Instant::ZERO, flow: None, kind })
}

/// Sends packets of 1,000 bytes at the milliseconds `sent`, and returns the milliseconds at which
/// they leave.
fn out(link: &mut Link, sent: &[u64]) -> Vec<u64> {
    for millis in sent {
        let packet = Packet::new(vec![0x45; 1_000]);
        link.handle_packet(Instant::from_millis(*millis), PortId(0), packet);
    }
    let mut out = Vec::new();
    let mut now = Instant::ZERO;
    while let Some(at) = link.poll_timeout() {
        now = now.max(at);
        link.handle_timeout(now);
        out.extend(std::iter::from_fn(|| link.poll_transmit(now)).map(|_| now.as_millis()));
    }
    out
}

fn link(words: &str) -> Link {
    let spec: LinkSpec = words.parse().unwrap();
    Link::new(&spec, &spec).unwrap()
}

/// Returns whether packets beyond a rate and a burst are dropped, and counted as policed.
pub(crate) fn polices() -> bool {
    let mut link = link("police rate 8kbit burst 2000b delay 1ms");
    out(&mut link, &[0, 0, 0]) == [1, 1] && link.counters(Way::Forth).policed == 1
}

/// Returns whether packets leave in bursts.
pub(crate) fn aggregates() -> bool {
    out(&mut link("delay 9ms aggregate 5ms packets 3"), &[0, 1, 2, 3]) == [11, 11, 11, 17]
}

/// Returns whether rate, delay and loss change at the configured times.
pub(crate) fn changes() -> bool {
    let words = "delay 50ms rate 8mbit at 1ms rate 4mbit at 10ms delay 70ms at 20ms loss 100%";
    out(&mut link(words), &[0, 0, 10, 20]) == [51, 53, 82]
}
