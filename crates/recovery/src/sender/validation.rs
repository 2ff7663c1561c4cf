//! Window validation (RFC 7661): an unused window does not persist.
//!
//! pipeACK is how much was acknowledged within a round trip, lately. While it is less than half the
//! window, the window is not validated: a loss is answered from what was in fact in use, and after
//! five minutes the window is halved. That it does not grow meanwhile is the controls' part: they
//! grow by ACKs of what cwnd was the limit of.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::Sender;
use crate::control::NoticeKind;
use crate::view::AckView;

/// RFC 7661 section 4.4: for so long a window that is not validated is kept.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// RFC 7661 section 4.2: pipeACK is the largest sample of at least so long, or of three round
/// trips.
const SHORTEST_SAMPLING_PERIOD: Duration = Duration::from_secs(1);

/// Watches whether the window is made use of; nothing while it is filled.
#[derive(Debug, Default)]
pub(super) struct WindowValidation(Option<Box<PipeAck>>);

/// pipeACK, of a sender whose window is not the limit. Before the first sample it is undefined.
#[derive(Clone, Copy, Debug, Default)]
struct PipeAck {
    /// The largest sample of this period, and of the one before.
    largest: [ByteCount; 2],
    period_began: Option<Instant>,
    /// Since when the window is not validated.
    since: Option<Instant>,
}

impl PipeAck {
    fn value(&self) -> ByteCount {
        self.largest[0].max(self.largest[1])
    }

    fn add(&mut self, now: Instant, sample: ByteCount, period: Duration) {
        let began = *self.period_began.get_or_insert(now);
        if now.since(began) >= period {
            let before =
                if now.since(began) < period * 2 { self.largest[0] } else { ByteCount::ZERO };
            (self.largest, self.period_began) = ([ByteCount::ZERO, before], Some(now));
        }
        self.largest[0] = self.largest[0].max(sample);
    }
}

impl WindowValidation {
    /// Takes an ACK's sample of a sender with this `window`; gives whether nothing needed half of
    /// it for long, for the first time or once more.
    fn is_unused(&mut self, ack: &AckView<'_>, window: ByteCount) -> bool {
        let Some(rate) = ack.rate.filter(|rate| rate.interval.is_some()) else { return false };
        let pipe_ack = match &mut self.0 {
            Some(pipe_ack) => pipe_ack,
            // What fills its window is validated, and has nothing to keep.
            None if ack.cwnd_limited => return false,
            none => none.insert(Box::default()),
        };
        let period = SHORTEST_SAMPLING_PERIOD.max(ack.srtt * 3);
        pipe_ack.add(ack.now, rate.delivered, period);
        if pipe_ack.value() >= window.half() {
            pipe_ack.since = None;
            if ack.cwnd_limited {
                self.0 = None;
            }
            return false;
        }
        let since = *pipe_ack.since.get_or_insert(ack.now);
        let is_unused = ack.now.since(since) >= NON_VALIDATED_PERIOD;
        if is_unused {
            pipe_ack.since = Some(ack.now);
        }
        is_unused
    }

    /// From where a reduction starts, with this much outstanding (RFC 7661 section 4.4.1): where
    /// the window is not validated, no less than what was acknowledged in a round trip lately.
    pub(super) fn loss_flight_size(&self, flight_size: ByteCount) -> ByteCount {
        let unvalidated = self.0.as_ref().filter(|pipe_ack| pipe_ack.since.is_some());
        unvalidated.map_or(flight_size, |pipe_ack| flight_size.max(pipe_ack.value()))
    }
}

impl Sender {
    /// Takes an ACK's sample, and has the control give up half of a window that nothing needed for
    /// long.
    pub(super) fn validate_window(&mut self, ack: &AckView<'_>) {
        let window = self.control_window();
        if self.profile.window_validation && self.validation.is_unused(ack, window) {
            // What happened before is not to bring the old window back.
            self.undo.stop();
            self.notify(ack.now, NoticeKind::Unused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{ack_view, rate_sample};

    const WINDOW: ByteCount = ByteCount(40_000);

    /// An ACK after `seconds` of a sender that had `pipe_ack` bytes acknowledged in a round trip.
    fn ack(seconds: u64, pipe_ack: u64, cwnd_limited: bool) -> AckView<'static> {
        let rate = Some(rate_sample(ByteCount(pipe_ack), ByteCount::ZERO));
        let now = Instant::from_millis(seconds * 1_000);
        AckView { rate, cwnd_limited, ..ack_view(now, ByteCount(pipe_ack)) }
    }

    #[test]
    fn a_window_that_is_not_made_use_of_is_unused_once_in_five_minutes() {
        let mut validation = WindowValidation::default();
        let is_unused: Vec<u64> = (0..=700)
            .filter(|second| validation.is_unused(&ack(*second, 10_000, false), WINDOW))
            .collect();
        assert_eq!(is_unused, [300, 600]);
        assert_eq!(validation.loss_flight_size(ByteCount(3_000)), ByteCount(10_000));
        assert_eq!(validation.loss_flight_size(ByteCount(30_000)), ByteCount(30_000));
    }

    #[test]
    fn half_of_it_in_use_validates_it() {
        let mut validation = WindowValidation::default();
        for second in 0..=700 {
            assert!(!validation.is_unused(&ack(second, 20_000, false), WINDOW));
        }
        assert_eq!(validation.loss_flight_size(ByteCount(3_000)), ByteCount(3_000));
        // What fills its window keeps nothing.
        assert!(!validation.is_unused(&ack(701, 40_000, true), WINDOW));
        assert!(validation.0.is_none());
    }
}
