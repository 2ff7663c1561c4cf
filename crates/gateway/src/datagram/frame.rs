//! The frames that carry datagrams between two gateways.
//!
//! A frame is one UDP datagram of the carrier. Multi-byte fields are big-endian. The high half of
//! the first byte is the kind, the low half holds flags:
//!
//! ```text
//! data     kind flags | flow (3)             | sequence (4) | [part: index, count] | [open] | bytes
//! repair   kind       | count, repairs, index | sequence (4) | shard
//! known    kind       | flow (3)             | instance (4) | echo (4)
//! unknown  kind       | flow (3)             | instance (4) | echo (4)
//! report   kind       | hold in ms (3)       | highest (4)  | lost (4) | runs (4)
//! close    kind       | 0 (3)                | instance (4) | association (4)
//!
//! open     instance (4) | association (4) | family: 4, 6, or 1 for a name | address, or length and name | port (2)
//! ```
//!
//! A data frame with the refusal flag has no bytes: the address of its flow has refused a datagram
//! (Port Unreachable).
//!
//! Port 0 of an address means ICMP echo: the bytes are a sequence number (2) and data, in requests
//! and replies alike.
//!
//! Each end numbers the flows that it opens, and includes the association and address in `open`
//! until the other end has answered `known`. Data and repair frames of one end share one sequence.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::destination::is_name;
use crate::{Destination, HostAddress};

/// The length of the header of a data frame on a known flow (bytes).
pub(crate) const HEADER: usize = 8;
/// The extra length of the header of a part (bytes).
pub(crate) const PART: usize = 2;
/// The most data of one datagram: the limit of UDP over IPv4.
pub(crate) const MAX_DATAGRAM: usize = 65_507;
/// Flow numbers are below this. Number 0 means no flow: such frames always contain `open`, and are
/// never answered.
pub(crate) const FLOWS: u32 = 1 << 24;

const OPEN: u8 = 1;
const PARTIAL: u8 = 2;
const YOURS: u8 = 4;
const REFUSED: u8 = 8;

/// The frame kinds, in the high half of the first byte.
mod kind {
    pub(super) const DATA: u8 = 1;
    pub(super) const REPAIR: u8 = 2;
    pub(super) const KNOWN: u8 = 3;
    pub(super) const UNKNOWN: u8 = 4;
    pub(super) const REPORT: u8 = 5;
    pub(super) const CLOSE: u8 = 6;
}

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Frame<'a> {
    Data(Data<'a>),
    Repair(Repair<'a>),
    Answer(Answer),
    Report(Report),
    Close(Close),
}

/// A datagram of a program, a part of one, or the refusal of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) flow: Flow,
    pub(crate) seq: u32,
    pub(crate) part: Option<Part>,
    /// Whether this is a refusal: not a part, and without data.
    pub(crate) is_refusal: bool,
    pub(crate) data: &'a [u8],
}

/// The flow of a datagram, as the sender of the frame numbers it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// A flow opened by the sender, which the receiver knows.
    Mine(u32),
    /// A flow opened by the receiver.
    Yours(u32),
    /// A flow opened by the sender, which the receiver may not know yet, or 0.
    Open(u32, Open),
}

/// The definition of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Open {
    /// The sender's instance.
    pub(crate) instance: u32,
    pub(crate) association: u32,
    /// The address beyond the far gateway: the destination, or the source of an answer.
    pub(crate) remote: Destination,
}

/// The position of a part in its datagram; the parts have consecutive sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) index: u8,
    /// At least 2.
    pub(crate) count: u8,
}

/// A recovery shard of the `count` frames directly before the first of `repairs` repair frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repair<'a> {
    pub(crate) seq: u32,
    pub(crate) count: u8,
    pub(crate) repairs: u8,
    pub(crate) index: u8,
    pub(crate) shard: &'a [u8],
}

/// The answer to a data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Whether frames of the flow may omit `open`.
    pub(crate) known: bool,
    pub(crate) flow: u32,
    /// The instance of the answer's sender.
    pub(crate) instance: u32,
    /// The instance of the end that opened the flow; 0 if it is not known.
    pub(crate) echo: u32,
}

/// The receiver's state; counts wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    /// The highest sequence number that arrived.
    pub(crate) highest: u32,
    /// The time since it arrived, in milliseconds.
    pub(crate) hold: u32,
    /// Frames lost.
    pub(crate) lost: u32,
    /// Runs of consecutive lost frames.
    pub(crate) runs: u32,
}

/// Closes an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Close {
    pub(crate) instance: u32,
    pub(crate) association: u32,
}

/// The reason why bytes are not a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the frame is too short")]
    Short,
    #[error("the frame is too long")]
    Long,
    #[error("unknown kind or flags {0:#04x}: are both gateways of the same version?")]
    Kind(u8),
    #[error("flow 0 without an address")]
    NoFlow,
    #[error("not the place of a part or of a repair")]
    Place,
    #[error("not an address")]
    Address,
}

impl Frame<'_> {
    /// Encodes the frame.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let body = match self {
            Self::Data(data) => data.data.len(),
            Self::Repair(repair) => repair.shard.len(),
            Self::Answer(_) | Self::Report(_) | Self::Close(_) => 0,
        };
        // Enough for the frequent frames.
        let mut bytes = Vec::with_capacity(2 * HEADER + body);
        let out = &mut bytes;
        match self {
            Self::Data(data) => data.emit(out),
            Self::Repair(repair) => {
                out.extend([kind::REPAIR << 4, repair.count, repair.repairs, repair.index]);
                out.extend(repair.seq.to_be_bytes());
                out.extend(repair.shard);
            }
            Self::Answer(answer) => {
                let kind = if answer.known { kind::KNOWN } else { kind::UNKNOWN };
                words(out, kind << 4, answer.flow, [answer.instance, answer.echo]);
            }
            Self::Report(report) => {
                let hold = report.hold.min(FLOWS - 1);
                words(out, kind::REPORT << 4, hold, [report.highest, report.lost, report.runs]);
            }
            Self::Close(close) => {
                words(out, kind::CLOSE << 4, 0, [close.instance, close.association]);
            }
        }
        bytes
    }

    /// Parses a frame.
    pub(crate) fn parse(frame: &[u8]) -> Result<Frame<'_>, FrameError> {
        let mut rest = frame;
        let [first, a, b, c] = take(&mut rest)?;
        let small = u32::from_be_bytes([0, a, b, c]);
        let word = u32::from_be_bytes(take(&mut rest)?);
        match (first >> 4, first & 0x0f) {
            (kind::DATA, flags) => Data::parse(first, flags, small, word, rest).map(Frame::Data),
            (kind::REPAIR, 0) => {
                let repair = Repair { seq: word, count: a, repairs: b, index: c, shard: rest };
                let usable = repair.shard.len() >= 2 && repair.shard.len().is_multiple_of(2);
                match repair.count > 0 && repair.index < repair.repairs && usable {
                    true => Ok(Frame::Repair(repair)),
                    false => Err(FrameError::Place),
                }
            }
            (kind @ (kind::KNOWN | kind::UNKNOWN), 0) => {
                let echo = last(rest)?;
                let known = kind == kind::KNOWN;
                Ok(Frame::Answer(Answer { known, flow: small, instance: word, echo }))
            }
            (kind::REPORT, 0) => {
                let lost = u32::from_be_bytes(take(&mut rest)?);
                let runs = last(rest)?;
                Ok(Frame::Report(Report { highest: word, hold: small, lost, runs }))
            }
            (kind::CLOSE, 0) if small == 0 => {
                Ok(Frame::Close(Close { instance: word, association: last(rest)? }))
            }
            _ => Err(FrameError::Kind(first)),
        }
    }
}

impl<'a> Data<'a> {
    fn emit(&self, out: &mut Vec<u8>) {
        let (flag, flow, open) = match &self.flow {
            Flow::Mine(flow) => (0, *flow, None),
            Flow::Yours(flow) => (YOURS, *flow, None),
            Flow::Open(flow, open) => (OPEN, *flow, Some(open)),
        };
        let partial = if self.part.is_some() { PARTIAL } else { 0 };
        let refused = if self.is_refusal { REFUSED } else { 0 };
        words(out, kind::DATA << 4 | flag | partial | refused, flow, [self.seq]);
        if let Some(part) = self.part {
            out.extend([part.index, part.count]);
        }
        if let Some(open) = open {
            open.emit(out);
        }
        out.extend(self.data);
    }

    fn parse(
        first: u8,
        flags: u8,
        flow: u32,
        seq: u32,
        mut rest: &'a [u8],
    ) -> Result<Self, FrameError> {
        let part = match flags & PARTIAL != 0 {
            true => {
                let [index, count] = take(&mut rest)?;
                if count < 2 || index >= count {
                    return Err(FrameError::Place);
                }
                Some(Part { index, count })
            }
            false => None,
        };
        let is_refusal = flags & REFUSED != 0;
        if is_refusal && part.is_some() {
            return Err(FrameError::Kind(first));
        }
        let flow = match (flags & !(PARTIAL | REFUSED), flow) {
            (OPEN, flow) => Flow::Open(flow, Open::parse(&mut rest)?),
            (0 | YOURS, 0) => return Err(FrameError::NoFlow),
            (0, flow) => Flow::Mine(flow),
            (YOURS, flow) => Flow::Yours(flow),
            _ => return Err(FrameError::Kind(first)),
        };
        if part.is_some() && rest.is_empty() {
            return Err(FrameError::Short);
        }
        if rest.len() > MAX_DATAGRAM || (is_refusal && !rest.is_empty()) {
            return Err(FrameError::Long);
        }
        Ok(Self { flow, seq, part, is_refusal, data: rest })
    }
}

impl Open {
    const V4: u8 = 4;
    const V6: u8 = 6;
    const NAME: u8 = 1;

    /// Returns the length of `open` in a frame, for this address (bytes).
    pub(crate) fn len(remote: &Destination) -> usize {
        let host = match &remote.host {
            HostAddress::Ip(IpAddr::V4(_)) => 4,
            HostAddress::Ip(IpAddr::V6(_)) => 16,
            HostAddress::Name(name) => 1 + name.len(),
        };
        4 + 4 + 1 + host + 2
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.instance.to_be_bytes());
        out.extend(self.association.to_be_bytes());
        match &self.remote.host {
            HostAddress::Ip(IpAddr::V4(ip)) => {
                out.push(Self::V4);
                out.extend(ip.octets());
            }
            HostAddress::Ip(IpAddr::V6(ip)) => {
                out.push(Self::V6);
                out.extend(ip.octets());
            }
            HostAddress::Name(name) => {
                // A name that is too long is truncated; the other end rejects it or fails to
                // resolve it.
                let len = name.len().min(255);
                out.extend([Self::NAME, len as u8]);
                out.extend(&name.as_bytes()[..len]);
            }
        }
        out.extend(self.remote.port.to_be_bytes());
    }

    fn parse(rest: &mut &[u8]) -> Result<Self, FrameError> {
        let instance = u32::from_be_bytes(take(rest)?);
        let association = u32::from_be_bytes(take(rest)?);
        let [family] = take(rest)?;
        let host = match family {
            Self::V4 => HostAddress::Ip(Ipv4Addr::from(take::<4>(rest)?).into()),
            Self::V6 => HostAddress::Ip(Ipv6Addr::from(take::<16>(rest)?).into()),
            Self::NAME => {
                let [len] = take(rest)?;
                let (name, after) = rest.split_at_checked(len.into()).ok_or(FrameError::Short)?;
                *rest = after;
                let name = str::from_utf8(name).map_err(|_| FrameError::Address)?;
                if !is_name(name) {
                    return Err(FrameError::Address);
                }
                HostAddress::Name(name.to_owned())
            }
            _ => return Err(FrameError::Address),
        };
        let port = u16::from_be_bytes(take(rest)?);
        if port == 0 && matches!(host, HostAddress::Name(_)) {
            return Err(FrameError::Address);
        }
        Ok(Self { instance, association, remote: Destination { host, port } })
    }
}

/// Appends a first byte, a three-byte number, and four-byte numbers.
fn words<const N: usize>(out: &mut Vec<u8>, first: u8, small: u32, words: [u32; N]) {
    let [_, a, b, c] = small.to_be_bytes();
    out.extend([first, a, b, c]);
    out.extend(words.into_iter().flat_map(u32::to_be_bytes));
}

/// Takes the first `N` bytes of `rest`.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], FrameError> {
    let (taken, after) = rest.split_first_chunk().ok_or(FrameError::Short)?;
    *rest = after;
    Ok(*taken)
}

/// Reads the number that ends a frame.
fn last(mut rest: &[u8]) -> Result<u32, FrameError> {
    let word = u32::from_be_bytes(take(&mut rest)?);
    if rest.is_empty() { Ok(word) } else { Err(FrameError::Long) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn destination() -> impl Strategy<Value = Destination> {
        let host = prop_oneof![
            // Port 0 means a ping.
            (any::<IpAddr>().prop_map(HostAddress::Ip), any::<u16>()),
            ("[a-z0-9.-]{1,255}".prop_map(HostAddress::Name), 1..=u16::MAX),
        ];
        host.prop_map(|(host, port)| Destination { host, port })
    }

    fn flow() -> impl Strategy<Value = Flow> {
        let open = (any::<u32>(), any::<u32>(), destination())
            .prop_map(|(instance, association, remote)| Open { instance, association, remote });
        prop_oneof![
            (1..FLOWS).prop_map(Flow::Mine),
            (1..FLOWS).prop_map(Flow::Yours),
            (0..FLOWS, open).prop_map(|(flow, open)| Flow::Open(flow, open)),
        ]
    }

    fn round_trip(frame: &Frame<'_>) {
        assert_eq!(Frame::parse(&frame.to_bytes()).as_ref(), Ok(frame));
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed(
            flow in flow(),
            seq: u32,
            part in proptest::option::of((2..=u8::MAX).prop_flat_map(|count| (0..count, Just(count)))),
            data in proptest::collection::vec(any::<u8>(), 1..100),
            numbers: [u32; 4],
            small in 0..FLOWS,
            known: bool,
        ) {
            let part = part.map(|(index, count)| Part { index, count });
            let refused = flow.clone();
            let refusal = Data { flow: refused, seq, part: None, is_refusal: true, data: b"" };
            round_trip(&Frame::Data(refusal));
            round_trip(&Frame::Data(Data { flow, seq, part, is_refusal: false, data: &data }));
            let [instance, echo, lost, runs] = numbers;
            round_trip(&Frame::Answer(Answer { known, flow: small, instance, echo }));
            round_trip(&Frame::Report(Report { highest: seq, hold: small, lost, runs }));
            round_trip(&Frame::Close(Close { instance, association: echo }));
            let shard = &data[..data.len() & !1];
            if !shard.is_empty() {
                round_trip(&Frame::Repair(Repair { seq, count: 9, repairs: 3, index: 2, shard }));
            }
        }

        #[test]
        fn what_is_parsed_is_emitted_again(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(frame) = Frame::parse(&bytes) {
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }

        /// Damages valid frames, so that the fields behind the header are reached.
        #[test]
        fn damaged_frames_are_parsed_or_refused(
            flow in flow(),
            at: prop::sample::Index,
            with: u8,
            cut: prop::sample::Index,
        ) {
            let part = Some(Part { index: 1, count: 2 });
            let data = Data { flow, seq: 7, part, is_refusal: false, data: b"data" };
            let mut bytes = Frame::Data(data).to_bytes();
            *at.get_mut(&mut bytes) = with;
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Ok(frame) = Frame::parse(&bytes) {
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn a_plain_datagram_has_a_header_of_eight_bytes() {
        let data = Data { flow: Flow::Mine(1), seq: 2, part: None, is_refusal: false, data: b"" };
        let bytes = Frame::Data(data).to_bytes();
        assert_eq!(bytes, [0x10, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(bytes.len(), HEADER);
    }

    #[test]
    fn the_length_of_an_open_header_is_known() {
        for to in ["192.0.2.1:53", "[2001:db8::1]:53", "a.example:53"] {
            let remote: Destination = to.parse().unwrap();
            let len = Open::len(&remote);
            let open = Open { instance: 1, association: 2, remote };
            let mut bytes = Vec::new();
            open.emit(&mut bytes);
            assert_eq!(bytes.len(), len, "{to}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |bytes: &[u8]| Frame::parse(bytes).unwrap_err();
        assert_eq!(refused(&[]), FrameError::Short);
        assert_eq!(refused(&[0x10, 0, 0, 1, 0, 0, 0]), FrameError::Short);
        assert_eq!(refused(&[0x00, 0, 0, 1, 0, 0, 0, 2]), FrameError::Kind(0));
        assert_eq!(refused(&[0x18, 0, 0, 1, 0, 0, 0, 2, 9]), FrameError::Long);
        assert_eq!(refused(&[0x1a, 0, 0, 1, 0, 0, 0, 2, 0, 2]), FrameError::Kind(0x1a));
        assert_eq!(refused(&[0x1d, 0, 0, 1, 0, 0, 0, 2]), FrameError::Kind(0x1d));
        assert_eq!(refused(&[0x15, 0, 0, 1, 0, 0, 0, 2]), FrameError::Kind(0x15));
        assert_eq!(refused(&[0x10, 0, 0, 0, 0, 0, 0, 2]), FrameError::NoFlow);
        assert_eq!(refused(&[0x12, 0, 0, 1, 0, 0, 0, 2, 1, 1, 9]), FrameError::Place);
        assert_eq!(refused(&[0x12, 0, 0, 1, 0, 0, 0, 2, 0, 2]), FrameError::Short);
        assert_eq!(refused(&[0x20, 1, 1, 1, 0, 0, 0, 2, 9, 9]), FrameError::Place);
        assert_eq!(refused(&[0x20, 1, 1, 0, 0, 0, 0, 2, 9]), FrameError::Place);
        assert_eq!(refused(&[0x30; 13]), FrameError::Long);
        let mut port_zero = vec![0x11, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, b'a'];
        port_zero.extend([0, 0]);
        assert_eq!(refused(&port_zero), FrameError::Address);
    }
}
