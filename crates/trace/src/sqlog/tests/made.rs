//! Random events of every kind.

use std::time::Duration;

use airtcp_types::*;
use proptest::prelude::*;

fn range() -> impl Strategy<Value = SeqRange> {
    (any::<u64>(), any::<u64>())
        .prop_map(|(a, b)| SeqRange::new(ExtSeq(a.min(b)), ExtSeq(a.max(b))))
}

fn bytes() -> impl Strategy<Value = ByteCount> {
    any::<u64>().prop_map(ByteCount)
}

fn duration() -> impl Strategy<Value = Duration> {
    (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n))
}

fn packet() -> impl Strategy<Value = Packet> {
    let sum = prop_oneof![Just(Checksum::Full), Just(Checksum::Partial), Just(Checksum::Verified)];
    (prop::collection::vec(any::<u8>(), 0..50), any::<Option<u16>>(), sum).prop_map(
        |(data, segment_size, checksum)| Packet {
            data,
            segment_size,
            checksum,
            ..Packet::default()
        },
    )
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Dropped { cause: "queue full" }),
        Just(Fate::Marked { cause: "codel" }),
        Just(Fate::Duplicated),
        Just(Fate::Held),
        Just(Fate::Frozen),
        Just(Fate::Made { cause: "window open" }),
        any::<u32>().prop_map(|pass| Fate::Retried { pass }),
        (any::<u32>(), any::<bool>(), any::<bool>())
            .prop_map(|(bits, header, unnoticed)| Fate::Corrupted { bits, header, unnoticed }),
    ]
}

pub(super) fn rate(bits: ByteCount) -> Rate {
    Rate::from_bits_per_sec(bits.0)
}

pub(super) const RULES: [SendRule; 9] = [
    SendRule::NewData,
    SendRule::FastRetransmit,
    SendRule::Repair,
    SendRule::Unsacked,
    SendRule::Rescue,
    SendRule::LimitedTransmit,
    SendRule::Probe,
    SendRule::ProbeAgain,
    SendRule::Timeout,
];

fn kind() -> impl Strategy<Value = EventKind> {
    let rule = prop::sample::select(&RULES[..]);
    prop_oneof![
        Just(EventKind::State { from: "SYN-SENT", to: "ESTABLISHED" }),
        (any::<u64>(), range(), rule, bytes(), bytes(), bytes()).prop_map(
            |(tx, range, rule, pipe, cwnd, rwnd)| EventKind::Sent {
                tx: TxNo(tx),
                range,
                rule,
                pipe,
                cwnd,
                rwnd
            }
        ),
        (range(), any::<u64>(), bytes()).prop_map(|(range, ack, window)| EventKind::Received {
            range,
            ack: ExtSeq(ack),
            window
        }),
        (any::<u64>(), range()).prop_map(|(tx, range)| EventKind::Lost {
            tx: TxNo(tx),
            range,
            cause: "congestion"
        }),
        (bytes(), prop::option::of(bytes()), bytes()).prop_map(|(cwnd, ssthresh, pipe)| {
            let (pacing_rate, bandwidth) = (ssthresh.map(rate), Some(rate(pipe)));
            EventKind::Window { cwnd, ssthresh, pipe, pacing_rate, bandwidth }
        }),
        (duration(), duration(), duration()).prop_map(|(sample, srtt, min)| EventKind::Rtt {
            sample,
            srtt,
            min
        }),
        any::<u32>().prop_map(|backoff| EventKind::Timeout { backoff }),
        Just(EventKind::Undo),
        Just(EventKind::Reduced { cause: "congestion" }),
        (fate(), packet()).prop_map(|(fate, packet)| EventKind::Packet { fate, packet }),
    ]
}

fn event() -> impl Strategy<Value = (NodeId, Event)> {
    let end = |v6| {
        any::<(u16, [u8; 16])>().prop_map(move |(port, ip)| match v6 {
            true => std::net::SocketAddr::from((ip, port)),
            false => std::net::SocketAddr::from(([ip[0], ip[1], ip[2], ip[3]], port)),
        })
    };
    let flow = (end(false), end(true)).prop_map(|(local, remote)| FlowId { local, remote });
    (0..2_u32, any::<u64>(), prop::option::of(flow), kind()).prop_map(|(node, at, flow, kind)| {
        (NodeId(node), Event { at: Instant::from_nanos(at), flow, kind })
    })
}

/// Events, with the acknowledgements after each received segment.
pub(super) fn events() -> impl Strategy<Value = Vec<(NodeId, Event)>> {
    let acknowledged = prop::collection::vec(any::<(u64, u64)>(), 0..4);
    prop::collection::vec((event(), acknowledged), 0..20).prop_map(|events| {
        let behind = |((node, event), runs): ((NodeId, Event), Vec<(u64, u64)>)| {
            let arrived = matches!(event.kind, EventKind::Received { .. });
            let (at, flow) = (event.at, event.flow);
            let acknowledged = runs.into_iter().filter(move |_| arrived).map(move |(a, b)| {
                let kind = EventKind::Acknowledged { first: TxNo(a), last: TxNo(b) };
                (node, Event { at, flow, kind })
            });
            std::iter::once((node, event)).chain(acknowledged)
        };
        events.into_iter().flat_map(behind).collect()
    })
}
