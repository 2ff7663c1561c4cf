//! Records of flows: their state for display, and for another base station.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use airtcp_types::{ExtSeq, Instant, RangeSet, SeqNumber, SeqRange};
use airtcp_wire::options::Timestamps;

use super::end::{End, MAX_SHIFT};
use super::flow::{Flow, FlowKey, MAX_WINDOW, Mobile};

/// The maximum number of ranges in the bytes of a record. Higher ranges are left out, and count as
/// missing.
const MAX_RANGES: usize = 128;

/// The state of a flow for display, storage and transfer to another base station. Sequence numbers
/// are those in the packets.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct FlowRecord {
    /// The addresses of both ends.
    #[serde(flatten)]
    pub key: FlowKey,
    /// Ranges seen from the fixed host and not acknowledged by the mobile: the first number, and
    /// one past the last.
    pub seen: Vec<(u32, u32)>,
    /// The mobile's highest acknowledgement.
    pub acked: Option<u32>,
    /// The sequence number from which on missing data is known: where the flow was observed first,
    /// or the mobile's acknowledgement if that is higher.
    pub floor: u32,
    /// The SND.NXT of the mobile.
    pub seq: Option<u32>,
    /// The mobile's window field, before scaling.
    pub window: Option<u16>,
    /// The mobile's window scale; `None` if its SYN was not seen.
    pub window_scale: Option<u8>,
    /// The mobile's last TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the flow is frozen.
    pub is_frozen: bool,
    /// What only another base station needs; it is not displayed.
    #[serde(skip)]
    pub transfer: Transfer,
}

/// The part of a [`FlowRecord`] that only another base station needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transfer {
    /// The state of the fixed host; `None` before its first segment.
    pub fixed: Option<EndRecord>,
    /// The state of the mobile; `None` before its first segment.
    pub mobile: Option<EndRecord>,
    /// The minimum round-trip time between the station and the fixed host.
    pub rtt: Option<Duration>,
    /// Whether the window was opened again, and the sender has not sent anything since.
    pub is_reminded: bool,
}

/// The state of one end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndRecord {
    /// Its SND.NXT.
    pub seq: u32,
    /// Its highest acknowledgement.
    pub acked: Option<u32>,
    /// The number after its SYN, if that was seen and is at most 2^30 bytes ago.
    pub opened: Option<u32>,
    /// The largest window that it has advertised, in bytes.
    pub window: u32,
    /// Its window scale; `None` if its SYN was not seen.
    pub window_scale: Option<u8>,
    /// Whether it has sent a FIN.
    pub has_ended: bool,
}

/// The reason why bytes are not the record of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// There are fewer bytes than the record has.
    #[error("the record is cut short")]
    Truncated,
    /// Bits are set that have no meaning.
    #[error("the record has unknown flags: {0:#04x}")]
    Flags(u8),
    /// There are more ranges than a record may have.
    #[error("the record has {0} ranges: expected at most 128")]
    Ranges(u8),
    /// The value of a field contradicts the other fields.
    #[error("the record's {0} is impossible")]
    Field(&'static str),
}

/// The flags of a record.
mod has {
    pub(super) const V6: u8 = 0x01;
    pub(super) const FROZEN: u8 = 0x02;
    pub(super) const REMINDED: u8 = 0x04;
    pub(super) const FIXED: u8 = 0x08;
    pub(super) const MOBILE: u8 = 0x10;
    pub(super) const TIMESTAMPS: u8 = 0x20;
    pub(super) const RTT: u8 = 0x40;
    pub(super) const ALL: u8 = 0x7f;

    /// Those of an end.
    pub(super) const ACKED: u8 = 0x01;
    pub(super) const OPENED: u8 = 0x02;
    pub(super) const SCALE: u8 = 0x04;
    pub(super) const ENDED: u8 = 0x08;
    pub(super) const ALL_OF_END: u8 = 0x0f;
}

impl FlowRecord {
    /// Returns the record of a flow.
    pub(super) fn of(key: &FlowKey, flow: &Flow) -> Self {
        let wire = |number: ExtSeq| number.wire().0;
        let mobile = flow.mobile.map(|mobile| EndRecord::of(&mobile.end));
        Self {
            key: *key,
            seen: flow.seen.iter().map(|range| (wire(range.start), wire(range.end))).collect(),
            acked: mobile.and_then(|mobile| mobile.acked),
            floor: wire(flow.from()),
            seq: mobile.map(|mobile| mobile.seq),
            window: flow.mobile.map(|mobile| mobile.window),
            window_scale: mobile.and_then(|mobile| mobile.window_scale),
            timestamps: flow.mobile.and_then(|mobile| mobile.timestamps).map(|ts| (ts.val, ts.ecr)),
            is_frozen: flow.frozen.is_some(),
            transfer: Transfer {
                fixed: flow.fixed.map(|fixed| EndRecord::of(&fixed)),
                mobile,
                rtt: flow.rtt(),
                is_reminded: flow.reminder.is_some(),
            },
        }
    }

    /// Appends the bytes of the record, at most 1,116.
    ///
    /// ```
    /// use airtcp_basestation::station::{FlowKey, FlowRecord, Transfer};
    ///
    /// let record = FlowRecord {
    ///     key: FlowKey { fixed: "192.0.2.1:80".parse()?, mobile: "198.51.100.7:5000".parse()? },
    ///     seen: vec![(1_000, 2_448)],
    ///     acked: None,
    ///     floor: 1_000,
    ///     seq: None,
    ///     window: None,
    ///     window_scale: None,
    ///     timestamps: None,
    ///     is_frozen: false,
    ///     transfer: Transfer::default(),
    /// };
    /// let mut bytes = Vec::new();
    /// record.encode(&mut bytes);
    /// assert_eq!(FlowRecord::decode(&mut &bytes[..])?, record);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Transfer { fixed, mobile, rtt, is_reminded } = self.transfer;
        let v6 = self.key.fixed.is_ipv6() || self.key.mobile.is_ipv6();
        let flags = [
            (v6, has::V6),
            (self.is_frozen, has::FROZEN),
            (is_reminded, has::REMINDED),
            (fixed.is_some(), has::FIXED),
            (mobile.is_some(), has::MOBILE),
            (self.timestamps.is_some(), has::TIMESTAMPS),
            (rtt.is_some(), has::RTT),
        ];
        out.push(bits(&flags));
        for end in [self.key.fixed, self.key.mobile] {
            match end.ip() {
                IpAddr::V4(v4) if v6 => out.extend(v4.to_ipv6_mapped().octets()),
                IpAddr::V4(v4) => out.extend(v4.octets()),
                IpAddr::V6(v6) => out.extend(v6.octets()),
            }
            out.extend(end.port().to_be_bytes());
        }
        out.extend(self.floor.to_be_bytes());
        if let Some(end) = fixed {
            end.encode(out);
        }
        if let Some(end) = mobile {
            end.encode(out);
            out.extend(self.window.unwrap_or(0).to_be_bytes());
        }
        if let Some((val, ecr)) = self.timestamps {
            out.extend([val.to_be_bytes(), ecr.to_be_bytes()].concat());
        }
        if let Some(rtt) = rtt {
            let micros = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
            out.extend(micros.to_be_bytes());
        }
        let ranges = &self.seen[..self.seen.len().min(MAX_RANGES)];
        out.push(ranges.len() as u8);
        for (start, end) in ranges {
            out.extend([start.to_be_bytes(), end.to_be_bytes()].concat());
        }
    }

    /// Reads a record from the start of `bytes`, which becomes the rest.
    ///
    /// # Errors
    ///
    /// [`RecordError`]; `bytes` is not changed.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, RecordError> {
        let mut reader = Reader(bytes);
        let flags = reader.byte()?;
        if flags & !has::ALL != 0 {
            return Err(RecordError::Flags(flags));
        }
        let is = |flag: u8| flags & flag != 0;
        let mut ends = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); 2];
        for end in &mut ends {
            let ip = match is(has::V6) {
                true => Ipv6Addr::from(reader.take()?).into(),
                false => IpAddr::from(Ipv4Addr::from(reader.take()?)),
            };
            *end = SocketAddr::new(ip, reader.number16()?);
        }
        let [fixed, mobile] = ends;
        let key = FlowKey { fixed, mobile };
        let floor = reader.number()?;
        let fixed = is(has::FIXED).then(|| EndRecord::decode(&mut reader)).transpose()?;
        let mobile = is(has::MOBILE).then(|| EndRecord::decode(&mut reader)).transpose()?;
        let window = is(has::MOBILE).then(|| reader.number16()).transpose()?;
        let timestamps = is(has::TIMESTAMPS).then(|| reader.pair()).transpose()?;
        let rtt = is(has::RTT).then(|| reader.number()).transpose()?;
        let count = reader.byte()?;
        if usize::from(count) > MAX_RANGES {
            return Err(RecordError::Ranges(count));
        }
        let seen = (0..count).map(|_| reader.pair()).collect::<Result<_, _>>()?;
        *bytes = reader.0;
        Ok(Self {
            key,
            seen,
            acked: mobile.and_then(|mobile| mobile.acked),
            floor,
            seq: mobile.map(|mobile| mobile.seq),
            window,
            window_scale: mobile.and_then(|mobile| mobile.window_scale),
            timestamps,
            is_frozen: is(has::FROZEN),
            transfer: Transfer {
                fixed,
                mobile,
                rtt: rtt.map(|micros| Duration::from_micros(micros.into())),
                is_reminded: is(has::REMINDED),
            },
        })
    }
}

impl EndRecord {
    fn of(end: &End) -> Self {
        let opened = end.opened.filter(|opened| end.nxt.since(*opened).0 <= MAX_WINDOW);
        Self {
            seq: end.nxt.wire().0,
            acked: end.acked.map(|acked| acked.wire().0),
            opened: opened.map(|opened| opened.wire().0),
            window: end.window,
            window_scale: end.shift,
            has_ended: end.has_ended,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let flags = [
            (self.acked.is_some(), has::ACKED),
            (self.opened.is_some(), has::OPENED),
            (self.window_scale.is_some(), has::SCALE),
            (self.has_ended, has::ENDED),
        ];
        out.push(bits(&flags));
        out.extend(self.seq.to_be_bytes());
        out.extend(self.window.to_be_bytes());
        for number in [self.acked, self.opened].into_iter().flatten() {
            out.extend(number.to_be_bytes());
        }
        out.extend(self.window_scale);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let flags = reader.byte()?;
        if flags & !has::ALL_OF_END != 0 {
            return Err(RecordError::Flags(flags));
        }
        let is = |flag: u8| flags & flag != 0;
        Ok(Self {
            seq: reader.number()?,
            window: reader.number()?,
            acked: is(has::ACKED).then(|| reader.number()).transpose()?,
            opened: is(has::OPENED).then(|| reader.number()).transpose()?,
            window_scale: is(has::SCALE).then(|| reader.byte()).transpose()?,
            has_ended: is(has::ENDED),
        })
    }

    /// Returns the end whose SND.NXT is `nxt`. `acked` is its acknowledgement, in the numbers of
    /// the other end.
    fn end(&self, nxt: ExtSeq, acked: Option<ExtSeq>) -> Result<End, RecordError> {
        let opened = self.opened.map(|opened| nxt.nearest(SeqNumber(opened)));
        if opened.is_some_and(|opened| opened > nxt) {
            return Err(RecordError::Field("first sequence number"));
        }
        if self.window_scale.is_some_and(|shift| shift > MAX_SHIFT) {
            return Err(RecordError::Field("window scale"));
        }
        if u64::from(self.window) > MAX_WINDOW {
            return Err(RecordError::Field("window"));
        }
        let start = End::starting_at(nxt);
        Ok(End {
            opened,
            acked,
            window: self.window.max(start.window),
            shift: self.window_scale,
            has_ended: self.has_ended,
            ..start
        })
    }
}

impl Flow {
    /// Creates a flow from the record of another station. A sender whose window was closed, or was
    /// opened without a response, is frozen until its window is opened here.
    ///
    /// # Errors
    ///
    /// [`RecordError::Field`] if no flow can have such a record.
    pub(super) fn from_record(now: Instant, record: &FlowRecord) -> Result<Self, RecordError> {
        Self::near(now, record, None)
    }

    /// As [`from_record`](Self::from_record), with numbers that are comparable with those of `own`.
    fn near(now: Instant, record: &FlowRecord, own: Option<&Self>) -> Result<Self, RecordError> {
        let wrong = |field| Err(RecordError::Field(field));
        let Transfer { fixed, mobile, rtt, is_reminded } = record.transfer;
        // The mobile takes part in each flow that a station passes on.
        let Some(mobile) = mobile else { return wrong("mobile") };
        let near = |own: Option<ExtSeq>, wire: u32| {
            let wire = SeqNumber(wire);
            own.map_or(ExtSeq::starting_at(wire), |own| own.nearest(wire))
        };
        let floor = near(own.map(Self::highest), record.floor);
        let own_mobile = own.and_then(|own| own.mobile).map(|mobile| mobile.end.nxt);
        let mobile_nxt = near(own_mobile, mobile.seq);
        let acked = mobile.acked.map(|acked| floor.nearest(SeqNumber(acked)));
        let mut flow = Self::unheard();
        if let Some(fixed) = fixed {
            let nxt = floor.nearest(SeqNumber(fixed.seq));
            if nxt < floor || nxt.since(floor).0 > MAX_WINDOW {
                return wrong("sequence number");
            }
            let acked = fixed.acked.map(|acked| mobile_nxt.nearest(SeqNumber(acked)));
            if acked.is_some_and(|acked| acked > mobile_nxt) {
                return wrong("acknowledgement of the fixed host");
            }
            flow.floor = floor;
            flow.fixed = Some(fixed.end(nxt, acked)?);
            flow.seen = ranges(&record.seen, floor, nxt)?;
        } else if acked.is_some() || !record.seen.is_empty() {
            return wrong("acknowledgement of data that was not sent");
        }
        if acked.is_some_and(|acked| acked > floor) {
            return wrong("acknowledgement");
        }
        flow.mobile = Some(Mobile {
            end: mobile.end(mobile_nxt, acked)?,
            window: record.window.unwrap_or(0),
            timestamps: record.timestamps.map(|(val, ecr)| Timestamps { val, ecr }),
        });
        flow.rtt = rtt;
        flow.frozen = (record.is_frozen || is_reminded).then_some(now);
        Ok(flow)
    }

    /// Adds what another station recorded of this flow before the mobile came here. Numbers only
    /// rise. If this is another connection, it is not changed.
    ///
    /// # Errors
    ///
    /// As for [`from_record`](Self::from_record); the flow is not changed.
    pub(super) fn absorb(&mut self, now: Instant, record: &FlowRecord) -> Result<(), RecordError> {
        let other = Self::near(now, record, Some(self))?;
        let (Some(fixed), Some(theirs)) = (other.fixed, other.mobile) else { return Ok(()) };
        let is_other = |own: Option<End>, end: End| {
            own.is_some_and(|own| own.opened.is_some() && own.opened != end.opened)
        };
        let own = self.mobile.map(|mobile| mobile.end);
        let is_far =
            |one: ExtSeq, other: ExtSeq| one.max(other).since(one.min(other)).0 > MAX_WINDOW;
        if is_far(self.highest(), other.highest())
            || own.is_some_and(|own| is_far(own.nxt, theirs.end.nxt))
            || is_other(self.fixed, fixed)
            || is_other(own, theirs.end)
        {
            return Ok(());
        }
        self.floor = self.floor.min(other.floor);
        self.fixed.get_or_insert(fixed).absorb(&fixed);
        // A mobile that has sent an ACK here since has opened the window itself.
        let age = |end: End| (end.acked, end.nxt);
        let order = Some(age(theirs.end)).cmp(&own.map(age));
        self.frozen = match order {
            Ordering::Less => self.frozen,
            Ordering::Equal => self.frozen.or(other.frozen),
            Ordering::Greater => other.frozen,
        };
        let own = self.mobile.get_or_insert(theirs);
        own.end.absorb(&theirs.end);
        if order == Ordering::Greater {
            own.window = theirs.window;
            own.timestamps = theirs.timestamps.or(own.timestamps);
        }
        let acked = own.end.acked;
        other.seen.iter().for_each(|range| self.insert(range));
        if let Some(acked) = acked {
            self.seen.remove_below(acked);
        }
        self.rtt = self.rtt.into_iter().chain(other.rtt).min();
        Ok(())
    }
}

/// Reads ranges, which are ascending and separate, from `floor` to `end`.
fn ranges(wire: &[(u32, u32)], floor: ExtSeq, end: ExtSeq) -> Result<RangeSet, RecordError> {
    let mut ranges = RangeSet::new();
    let mut before = None;
    for (start, stop) in wire {
        let range = [*start, *stop].map(|number| floor.nearest(SeqNumber(number)));
        let range = SeqRange::new(range[0], range[1]);
        let is_above = before.map_or(range.start >= floor, |before| range.start > before);
        if !is_above || range.is_empty() || range.end > end {
            return Err(RecordError::Field("range"));
        }
        before = Some(range.end);
        ranges.insert(range);
    }
    Ok(ranges)
}

fn bits(flags: &[(bool, u8)]) -> u8 {
    flags.iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum()
}

/// Reads fields from the start of what is left.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(RecordError::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }

    fn byte(&mut self) -> Result<u8, RecordError> {
        self.take().map(|[byte]| byte)
    }

    fn number16(&mut self) -> Result<u16, RecordError> {
        self.take().map(u16::from_be_bytes)
    }

    fn number(&mut self) -> Result<u32, RecordError> {
        self.take().map(u32::from_be_bytes)
    }

    fn pair(&mut self) -> Result<(u32, u32), RecordError> {
        Ok((self.number()?, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testkit::{Seg, from_fixed, from_mobile, key, key_of};
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn fixed(flow: &mut Flow, seg: Seg) {
        flow.on_fixed(NOW, &from_fixed(seg).1);
    }

    fn mobile(flow: &mut Flow, seg: Seg) {
        flow.on_mobile(NOW, &from_mobile(seg).1);
    }

    /// A flow with a hole, of which both ends have sent data, starting at `start`.
    fn flow(start: u32) -> Flow {
        let at = |offset: u32| start.wrapping_add(offset);
        let mut flow = Flow::unheard();
        fixed(&mut flow, Seg { flags: "S", ack: 0, wscale: Some(3), ..Seg::data(start, 0) });
        mobile(&mut flow, Seg { flags: "SA", wscale: Some(7), ..Seg::ack(0, at(1)) });
        fixed(&mut flow, Seg::data(at(1), 1_000));
        let ts = Some((70, 80));
        mobile(&mut flow, Seg { ts, len: 10, window: 500, ..Seg::ack(1, at(501)) });
        fixed(&mut flow, Seg { flags: "FA", ack: 11, ..Seg::data(at(2_001), 1_000) });
        flow
    }

    fn bytes(record: &FlowRecord) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_flow_is_the_same_at_another_station() {
        for start in [1_000, u32::MAX - 1_500] {
            let mut flow = flow(start);
            (flow.frozen, flow.rtt) = (Some(NOW), Some(Duration::from_millis(40)));
            let record = FlowRecord::of(&key(), &flow);
            let bytes = bytes(&record);
            let read = FlowRecord::decode(&mut &bytes[..]).unwrap();
            assert_eq!(read, record);
            let mut moved = Flow::from_record(NOW, &read).unwrap();
            assert_eq!(FlowRecord::of(&key(), &moved), record);
            assert!(moved.has_hole() && record.transfer.fixed.unwrap().has_ended);
            assert_eq!(moved.last_ack(&key(), 0), flow.last_ack(&key(), 0));
            // Both continue in the same way.
            for flow in [&mut flow, &mut moved] {
                fixed(flow, Seg::data(start.wrapping_add(1_001), 1_000));
                assert!(!flow.has_hole());
                mobile(flow, Seg { flags: "FA", ..Seg::ack(11, start.wrapping_add(3_002)) });
                fixed(flow, Seg { ack: 12, ..Seg::data(start.wrapping_add(3_002), 0) });
                assert!(flow.is_finished());
            }
        }
    }

    #[test]
    fn a_flow_of_many_gigabytes_is_the_same() {
        let mut flow = flow(0);
        let mut at = 3_002_u32;
        for _ in 0..20 {
            for _ in 0..10 {
                fixed(&mut flow, Seg::data(at, 1_000));
                at = at.wrapping_add(1_000 + 40_000_000);
                mobile(&mut flow, Seg::ack(11, at));
                fixed(&mut flow, Seg::data(at, 1_000));
            }
            let record = FlowRecord::of(&key(), &flow);
            let moved = Flow::from_record(NOW, &record).unwrap();
            assert_eq!(FlowRecord::of(&key(), &moved), record);
        }
        assert!(flow.highest().0 > 2 << 32);
        assert_eq!(FlowRecord::of(&key(), &flow).transfer.fixed.unwrap().opened, None);
    }

    #[test]
    fn a_sender_that_waits_for_its_window_is_frozen_after_the_move() {
        let mut record = FlowRecord::of(&key(), &flow(0));
        assert_eq!(Flow::from_record(NOW, &record).unwrap().frozen, None);
        record.transfer.is_reminded = true;
        assert_eq!(Flow::from_record(NOW, &record).unwrap().frozen, Some(NOW));
    }

    #[test]
    fn what_the_new_station_has_seen_stays_and_acknowledgements_only_rise() {
        let record = FlowRecord { is_frozen: true, ..FlowRecord::of(&key(), &flow(0)) };
        // The mobile has acknowledged more here than there, as much, or less: its last window, its
        // last timestamp, and whether the sender waits are those of the later segment.
        let cases = [
            (2_500, 2_500, 900, 90, None),
            (501, 501, 900, 90, Some(NOW)),
            (400, 501, 500, 70, Some(NOW)),
        ];
        for (ack, expected, window, stamp, frozen) in cases {
            let mut flow = Flow::starting_at(SeqNumber(ack));
            mobile(&mut flow, Seg { ts: Some((90, 80)), window: 900, ..Seg::ack(11, ack) });
            fixed(&mut flow, Seg { ack: 11, ..Seg::data(3_002, 500) });
            flow.absorb(NOW, &record).unwrap();
            let made = flow.last_ack(&key(), 7).unwrap();
            assert_eq!((made.ack.0, made.seq.0), (expected, 11));
            assert_eq!(made.timestamps.map(|stamp| stamp.val), Some(stamp));
            assert_eq!(flow.has_hole(), expected == 501);
            assert_eq!((flow.frozen, flow.mobile.unwrap().window), (frozen, window));
            assert_eq!(flow.highest().wire(), SeqNumber(3_502));
            flow.absorb(NOW, &record).unwrap();
            assert_eq!(flow.last_ack(&key(), 7).unwrap(), made, "a second copy changes nothing");
        }
        // Only the fixed host has been heard.
        let mut flow = Flow::starting_at(SeqNumber(3_002));
        fixed(&mut flow, Seg { ack: 11, ..Seg::data(3_002, 500) });
        flow.absorb(NOW, &record).unwrap();
        assert_eq!((flow.frozen, flow.acked()), (Some(NOW), Some(flow.floor)));
        assert!(flow.has_hole());
    }

    #[test]
    fn the_record_of_an_earlier_connection_changes_nothing() {
        let record = FlowRecord::of(&key(), &flow(0));
        let far = Flow::starting_at(SeqNumber(1 << 31));
        let mut far_mobile = Flow::starting_at(SeqNumber(2_500));
        mobile(&mut far_mobile, Seg::ack(1 << 31, 2_500));
        for mut new in [flow(5_000), far, far_mobile] {
            let before = FlowRecord::of(&key(), &new);
            new.absorb(NOW, &record).unwrap();
            assert_eq!(FlowRecord::of(&key(), &new), before);
        }
    }

    #[test]
    fn a_record_that_no_flow_can_have_is_refused() {
        let record = FlowRecord::of(&key(), &flow(1_000));
        let refused = |change: &dyn Fn(&mut FlowRecord)| {
            let mut record = record.clone();
            change(&mut record);
            let own = Flow::from_record(NOW, &record).map(drop);
            let absorbed = flow(1_000).absorb(NOW, &record);
            assert_eq!(own, absorbed);
            own.unwrap_err().to_string()
        };
        let end = |record: &mut FlowRecord, change: &dyn Fn(&mut EndRecord)| {
            change(record.transfer.fixed.as_mut().unwrap());
        };
        type Change<'a> = &'a dyn Fn(&mut FlowRecord);
        let cases: [(Change<'_>, &str); 13] = [
            (&|of| of.transfer.mobile = None, "mobile"),
            (&|of| end(of, &|end| end.seq = 1_000), "sequence number"),
            (&|of| end(of, &|end| end.seq = 1 << 31), "sequence number"),
            (&|of| end(of, &|end| end.acked = Some(12)), "acknowledgement of the fixed host"),
            (&|of| end(of, &|end| end.opened = Some(5_000)), "first sequence number"),
            (&|of| end(of, &|end| end.window_scale = Some(15)), "window scale"),
            (&|of| end(of, &|end| end.window = u32::MAX), "window"),
            (&|of| of.transfer.mobile.as_mut().unwrap().acked = Some(1_502), "acknowledgement"),
            (&|of| of.transfer.fixed = None, "acknowledgement of data that was not sent"),
            (&|of| of.seen[0].0 = 1_400, "range"),
            (&|of| of.seen[0].1 = 3_001, "range"),
            (&|of| of.seen[1].1 = 3_001, "range"),
            (&|of| of.seen[1].1 = 4_003, "range"),
        ];
        for (change, field) in cases {
            assert_eq!(refused(change), format!("the record's {field} is impossible"));
        }
    }

    #[test]
    fn bytes_that_are_no_record_are_refused() {
        let bytes = bytes(&FlowRecord::of(&key_of(1), &flow(1_000)));
        for len in 0..bytes.len() {
            let mut rest = &bytes[..len];
            assert_eq!(FlowRecord::decode(&mut rest), Err(RecordError::Truncated), "{len}");
            assert_eq!(rest.len(), len);
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            FlowRecord::decode(&mut &bytes[..]).unwrap_err()
        };
        assert_eq!(with(0, 0x80), RecordError::Flags(0x80));
        assert_eq!(with(1 + 36 + 4, 0x10), RecordError::Flags(0x10));
        let count = bytes.len() - 17;
        assert_eq!((bytes[count], with(count, 129)), (2, RecordError::Ranges(129)));
    }

    #[test]
    fn the_longest_record_has_1116_bytes() {
        let mut record = FlowRecord::of(&key_of(1), &flow(0));
        let ends = [&mut record.transfer.fixed, &mut record.transfer.mobile];
        ends.into_iter().flatten().for_each(|end| {
            (end.acked, end.opened, end.window_scale) = (Some(1), Some(1), Some(1));
        });
        (record.timestamps, record.transfer.rtt) = (Some((1, 2)), Some(Duration::MAX));
        record.seen = (0..300).map(|n| (n * 10, n * 10 + 5)).collect();
        let bytes = bytes(&record);
        assert_eq!(bytes.len(), 1_116);
        assert_eq!(FlowRecord::decode(&mut &bytes[..]).unwrap().seen, record.seen[..128]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            changes in prop::collection::vec((0usize..200, any::<u8>()), 0..4),
            start in any::<u32>(),
        ) {
            let _ = FlowRecord::decode(&mut &bytes[..]);
            let record = FlowRecord::of(&key(), &flow(start));
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            for (at, byte) in changes {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            if let Ok(read) = FlowRecord::decode(&mut &bytes[..]) {
                let mut own = Flow::starting_at(SeqNumber(start));
                mobile(&mut own, Seg::ack(11, start));
                let acked = own.acked();
                let _ = own.absorb(NOW, &read);
                prop_assert!(own.acked() >= acked);
                if let Ok(mut flow) = Flow::from_record(NOW, &read) {
                    prop_assert!(flow.acked() <= Some(flow.highest()));
                    fixed(&mut flow, Seg::data(start, 1_000));
                    mobile(&mut flow, Seg::ack(11, start));
                    let _ = FlowRecord::of(&key(), &flow);
                }
            }
        }
    }
}
