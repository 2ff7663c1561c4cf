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
mod tests;
