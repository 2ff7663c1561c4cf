//! Derives round-trip time and capacity of a link, and the length of a run from them.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_link::spec::{Discipline, RateSpec};
use airtcp_link::{LinkSpec, Trace};
use airtcp_types::ByteCount;

use crate::value::LinkPair;

/// The size of a full packet, and of an ACK with timestamps, in bytes.
const PACKET: ByteCount = ByteCount(1500);
const ACK: ByteCount = ByteCount(52);

/// The minimum length of a run, also in round trips of the idle link and with a full queue. Slow
/// start takes ten to twenty round trips, and the recovery from a reduction some dozens; a run must
/// have several of both.
pub(super) const LEAST: Duration = Duration::from_secs(20);
pub(super) const IDLE: u32 = 150;
pub(super) const FULL: u32 = 10;

/// The maximum default length of a run.
const LONGEST: Duration = Duration::from_secs(3600);
/// Lengths are rounded up to multiples of this, in seconds.
const STEP: u64 = 10;

/// The time for a full packet and its ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RoundTrip {
    /// Delay and serialisation time of the idle link at the start, without random delays and the
    /// waiting times of a trace or an aggregation.
    pub(crate) idle: Duration,
    /// That, plus a full queue in the direction of the data.
    pub(crate) full: Duration,
}

impl RoundTrip {
    pub(crate) fn of(link: &LinkPair) -> Self {
        let idle = one_way(&link.forth, PACKET) + one_way(&link.back, ACK);
        Self { idle, full: idle.saturating_add(queue(&link.forth)) }
    }

    /// Returns how long a run must be to show the link's effect on a sender.
    fn needed(self) -> Duration {
        self.idle.saturating_mul(IDLE).max(self.full.saturating_mul(FULL))
    }
}

/// Returns the default length of a run. A changing link is observed before and after: after the
/// last change there is still the time for the longer round trips of both.
pub(crate) fn length(link: &LinkPair) -> Duration {
    let needed = RoundTrip::of(link).needed().max(RoundTrip::of(&after(link)).needed());
    let length = needed.clamp(LEAST, LONGEST).saturating_add(last_change(link));
    let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    Duration::from_secs(seconds.next_multiple_of(STEP))
}

/// Returns the capacity of the link in the direction of the data: bandwidth-delay product plus
/// queue. For a changing link, the larger value of before and after.
pub(super) fn capacity(link: &LinkPair, traces: &BTreeMap<String, Trace>) -> ByteCount {
    [link, &after(link)].map(|link| held(link, traces)).into_iter().max().unwrap_or_default()
}

fn held(link: &LinkPair, traces: &BTreeMap<String, Trace>) -> ByteCount {
    let RoundTrip { idle, full } = RoundTrip::of(link);
    match &link.forth.rate {
        RateSpec::Constant { rate, .. } => rate.bytes_in(full),
        RateSpec::Trace(file) => {
            let rate = traces.get(file).map(Trace::mean_rate).unwrap_or_default();
            rate.bytes_in(idle) + PACKET * longest_queue(&link.forth)
        }
        // A policer has no queue.
        RateSpec::Unlimited => {
            link.forth.police.map_or(ByteCount::ZERO, |police| police.rate.bytes_in(idle))
        }
    }
}

/// Returns the time of the link's last change; zero without changes.
pub(super) fn last_change(link: &LinkPair) -> Duration {
    let changes = link.forth.changes.iter().chain(&link.back.changes);
    changes.map(|change| change.at).max().unwrap_or_default()
}

/// Returns the link after its last change.
fn after(link: &LinkPair) -> LinkPair {
    LinkPair { forth: changed(&link.forth), back: changed(&link.back) }
}

/// Returns a description after its last change.
fn changed(spec: &LinkSpec) -> LinkSpec {
    let mut spec = spec.clone();
    for change in std::mem::take(&mut spec.changes) {
        if let Some((rate, overhead)) = change.rate {
            spec.rate = RateSpec::Constant { rate, overhead };
        }
        spec.delay = change.delay.unwrap_or(spec.delay);
    }
    spec
}

fn one_way(spec: &LinkSpec, bytes: ByteCount) -> Duration {
    let path = spec.paths.map_or(Duration::ZERO, |(one, other)| one.min(other));
    serialised(spec, bytes) + spec.half.unwrap_or_default() + spec.delay.base + path
}

fn serialised(spec: &LinkSpec, bytes: ByteCount) -> Duration {
    match spec.rate {
        RateSpec::Constant { rate, overhead } => rate.time_for(bytes + overhead),
        RateSpec::Unlimited | RateSpec::Trace(_) => Duration::ZERO,
    }
}

/// Returns the time to drain the longest standing queue that the discipline allows.
fn queue(spec: &LinkSpec) -> Duration {
    let packet = serialised(spec, PACKET) + spec.half.unwrap_or_default();
    let most = longest_queue(spec);
    let packets = match spec.queue.discipline {
        Discipline::DropTail => most,
        Discipline::CoDel { target, .. } | Discipline::FqCoDel { target, .. } => return target,
        Discipline::Red { max, .. } => most.min(max.into()),
        Discipline::Mark(packets) => most.min(packets.into()),
    };
    packet.saturating_mul(u32::try_from(packets).unwrap_or(u32::MAX))
}

/// Returns the number of full packets that fit the queue.
fn longest_queue(spec: &LinkSpec) -> u64 {
    let bytes = spec.queue.bytes.map_or(u64::MAX, |bytes| bytes.0 / PACKET.0);
    bytes.min(spec.queue.packets as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> RoundTrip {
        RoundTrip::of(&crate::value::link(text).unwrap())
    }

    fn seconds(text: &str) -> u64 {
        length(&crate::value::link(text).unwrap()).as_secs()
    }

    #[test]
    fn a_round_trip_has_the_delay_the_rate_and_the_queue() {
        let ms = Duration::from_millis;
        // 12 ms for a packet, 0.416 ms for its ACK.
        let one = of("rate 1mbit delay 5ms limit 10");
        assert_eq!(one.idle, ms(10) + Duration::from_micros(12_416));
        assert_eq!(one.full, one.idle + ms(120));
        assert_eq!(of("rate 1mbit delay 5ms limit 10 3kb").full, one.idle + ms(24));
        assert_eq!(of("rate 1mbit delay 5ms codel").full, one.idle + ms(5));
        assert_eq!(of("rate 1mbit delay 5ms mark 4").full, one.idle + ms(48));
        assert_eq!(of("delay 5ms paths 1ms 40ms"), RoundTrip { idle: ms(12), full: ms(12) });
    }

    #[test]
    fn a_link_holds_its_bandwidth_delay_product_and_its_queue() {
        let trace = Trace::parse("8\n16\n").unwrap();
        let traces = BTreeMap::from([("file".to_owned(), trace)]);
        let held = |text: &str| capacity(&crate::value::link(text).unwrap(), &traces).0;
        // 12,500 bytes are in flight in a round trip of 100 ms.
        let steady = "rate 1mbit delay 50ms limit 10";
        assert_eq!(held(steady), 12_500 + (PACKET + ACK).0 + 15_000);
        assert_eq!(held(&format!("{steady} at 9s delay 5ms")), held(steady));
        assert!(held("rate 1mbit delay 50ms limit 10 at 9s rate 2mbit") > 25_000 + 15_000);
        assert_eq!(held("police rate 1mbit burst 30kb delay 50ms"), 12_500);
        // Two opportunities of 1504 bytes in 16 ms, over 60 ms.
        assert_eq!(held("trace file delay 30ms limit 10"), 11_280 + 15_000);
    }

    #[test]
    fn a_run_lasts_150_round_trips_and_at_least_twenty_seconds() {
        assert_eq!(seconds("rate 10mbit delay 50ms limit 85"), 20);
        assert_eq!(seconds("delay 1ms"), 20);
        let satellite = of("geo-satellite");
        let length = seconds("geo-satellite");
        assert!(Duration::from_secs(length) >= satellite.idle * IDLE, "{satellite:?}");
        assert_eq!(length % STEP, 0);
        // A queue of twelve seconds.
        assert_eq!(seconds("rate 1mbit delay 10ms"), 130);
        // 150 times 200 ms, and a little more.
        assert_eq!(seconds("delay 100ms"), 30);
        assert_eq!(seconds("rate 1gbit delay 100ms limit 10"), 40);
        assert_eq!(seconds("rate 1bit limit 1000000 delay 1000000s"), 3600);
    }

    #[test]
    fn a_run_lasts_150_round_trips_after_the_last_change() {
        assert_eq!(seconds("rate 10mbit delay 5ms limit 85 at 12s loss 1%"), 40);
        // 24 s of round trips follow the change.
        assert_eq!(seconds("rate 10mbit delay 80ms limit 85"), 30);
        assert_eq!(seconds("rate 10mbit delay 80ms limit 85 at 12s loss 1%"), 40);
        // The longer round trip of before and after counts.
        assert_eq!(seconds("rate 10mbit delay 5ms limit 85 at 12s delay 80ms"), 40);
        // A queue of 85 packets takes 10.2 s at the new rate.
        assert_eq!(seconds("rate 10mbit delay 5ms limit 85 at 12s rate 100kbit"), 120);
        assert_eq!(
            seconds("rate 10mbit delay 80ms limit 85 at 5s delay 5ms at 12s rate 20mbit"),
            40
        );
    }
}
