//! Observes Linux as the fixed host: its connection in `ss`, and the packets that it sends.

use std::collections::BTreeMap;
use std::time::Duration;

use airtcp_testbed::{Arrivals, Namespace};
use airtcp_types::{ByteCount, Crossing, Instant, NodeId, Observer, Packet, Rate};
use airtcp_wire::tcp::View;

use crate::LabError;
use crate::study::Fields;

/// The fields of the output of `ss` that are kept, by their names there.
const NAMES: [&str; 10] =
    ["timer", "rto", "backoff", "rtt", "cwnd", "ssthresh", "unacked", "retrans", "lost", "snd_wnd"];

/// Some fields of the output of `ss -tino` about a connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct SsFields(BTreeMap<String, String>);

impl SsFields {
    /// Reads the fields of the only connection of a namespace.
    ///
    /// # Errors
    ///
    /// [`LabError::Transfer`]: `ss` cannot be run.
    pub(super) fn of(namespace: &Namespace) -> Result<Self, LabError> {
        namespace.ss().map(|text| Self::read(&text)).map_err(LabError::Transfer)
    }

    fn read(text: &str) -> Self {
        let words = text.split_whitespace().filter_map(|word| word.split_once(':'));
        let kept = words.filter(|(name, _)| NAMES.contains(name));
        Self(kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Returns the values as `ss` prints them. It leaves out what is zero.
    pub(super) fn fields(self) -> Fields {
        self.0.into_iter().fold(Fields::default(), |fields, (name, value)| fields.with(name, value))
    }

    /// Returns a numeric value.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.parse().ok()
    }
}

/// A segment that the fixed host sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Left {
    pub(super) at: Instant,
    /// The payload in bytes.
    pub(super) length: u32,
    /// Whether it contains data that had not been sent before.
    pub(super) is_new: bool,
    /// Whether it is a probe: at most one byte of payload and no new data, at a sequence number
    /// other than the next new one.
    pub(super) is_probe: bool,
}

/// Observes the segments that the fixed host sends on one connection over IPv4.
#[derive(Clone, Debug)]
pub(super) struct Watcher {
    host: NodeId,
    /// The highest sequence number sent, plus one.
    highest: Option<u32>,
    pub(super) left: Vec<Left>,
}

impl Watcher {
    pub(super) const fn new(host: NodeId) -> Self {
        Self { host, highest: None, left: Vec::new() }
    }

    /// Returns the time after `from` until new data is sent at `rate` over half a second; `None` if
    /// the rate was not reached by `now`.
    pub(super) fn has_rate_after(
        &self,
        from: Instant,
        rate: Rate,
        now: Instant,
    ) -> Option<Duration> {
        let new: Vec<_> = self.left.iter().filter(|l| l.is_new && l.at >= from).collect();
        let begins = new.iter().enumerate().take_while(|(_, l)| l.at + Arrivals::SPAN <= now);
        for (number, begin) in begins {
            let within = new[number..].iter().take_while(|l| l.at < begin.at + Arrivals::SPAN);
            let bytes = ByteCount(within.map(|l| u64::from(l.length)).sum());
            if Rate::from_bytes_over(bytes, Arrivals::SPAN) >= rate {
                return Some(begin.at.since(from));
            }
        }
        None
    }

    fn see(&mut self, now: Instant, data: &[u8]) -> Option<()> {
        let segment = View::of(data)?;
        let (seq, length) = (segment.fields().seq().0, segment.data_len() as u32);
        let end = seq.wrapping_add(length);
        let Some(highest) = self.highest else {
            // The SYN takes one sequence number.
            self.highest = Some(end.wrapping_add(1));
            return Some(());
        };
        let is_new = length > 0 && (end.wrapping_sub(highest) as i32) > 0;
        let is_probe = length <= 1 && !is_new && seq != highest;
        if is_new {
            self.highest = Some(end);
        }
        if length > 0 || is_probe {
            self.left.push(Left { at: now, length, is_new, is_probe });
        }
        Some(())
    }
}

impl Observer for Watcher {
    fn on_packet(&mut self, now: Instant, node: NodeId, crossing: Crossing, packet: &Packet) {
        if node == self.host && crossing == Crossing::Out {
            self.see(now, &packet.data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_ss_are_found_by_name() {
        let text = "ESTAB 0 64 10.80.0.1:40 10.80.0.2:50 timer:(persist,1.2sec,3)\n\
                    \t cubic wscale:7,7 rto:241 backoff:3 rtt:40.1/2 cwnd:20 snd_wnd:0";
        let fields = SsFields::read(text);
        let text = |name| fields.0.get(name).map(String::as_str);
        assert_eq!(text("timer"), Some("(persist,1.2sec,3)"));
        assert_eq!((fields.number("rto"), fields.number("cwnd")), (Some(241.0), Some(20.0)));
        assert_eq!((text("rtt"), text("lost")), (Some("40.1/2"), None));
    }

    #[test]
    fn the_rate_of_a_sender_is_that_of_its_new_data() {
        let left = |millis, length, is_new| Left {
            at: Instant::ZERO + Duration::from_millis(millis),
            length,
            is_new,
            is_probe: false,
        };
        let watcher = Watcher {
            left: vec![
                left(100, 900, true),
                left(200, 900, false),
                left(900, 400, true),
                left(1_300, 500, true),
                left(1_450, 500, true),
            ],
            ..Watcher::new(NodeId(0))
        };
        let after = |bytes, now| {
            let rate = Rate::from_bytes_over(ByteCount(bytes), Arrivals::SPAN);
            let at = |millis| Instant::ZERO + Duration::from_millis(millis);
            watcher.has_rate_after(at(150), rate, at(now))
        };
        assert_eq!(after(900, 1_400), Some(Duration::from_millis(750)));
        assert_eq!(after(900, 1_399), None);
        assert_eq!(after(1_000, 1_950), Some(Duration::from_millis(1_150)));
        assert_eq!(after(1_001, 1_950), None);
    }

    #[test]
    fn data_repeats_and_probes_are_distinguished() {
        let mut watcher = Watcher::new(NodeId(0));
        let mut see = |seq: u32, length: usize| {
            let mut data = vec![0; 40 + length];
            (data[0], data[9]) = (0x45, 6);
            data[2..4].copy_from_slice(&(40 + length as u16).to_be_bytes());
            data[24..28].copy_from_slice(&seq.to_be_bytes());
            data[32] = 0x50;
            watcher.on_packet(Instant::ZERO, NodeId(0), Crossing::Out, &Packet::new(data));
        };
        let start = u32::MAX - 100;
        for (offset, length) in [(0, 0), (1, 0), (1, 150), (151, 100), (1, 150), (250, 0), (251, 0)]
        {
            see(start.wrapping_add(offset), length);
        }
        let kinds: Vec<_> =
            watcher.left.iter().map(|left| (left.length, left.is_new, left.is_probe)).collect();
        let expected =
            [(150, true, false), (100, true, false), (150, false, false), (0, false, true)];
        assert_eq!(kinds, expected);
    }
}
