//! Window validation (RFC 7661): an unused window does not persist.
//!
//! pipeACK is the amount of data recently acknowledged per round trip. While it is less than half
//! of the window, the window is not validated: a loss reduces from the data actually in use, and
//! after five minutes the window is halved. The controls themselves do not grow such a window: they
//! grow only when cwnd was the limit.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::Sender;
use crate::control::NoticeKind;
use crate::view::AckView;

/// RFC 7661 section 4.4: the time for which a window that is not validated is kept.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// RFC 7661 section 4.2: pipeACK is the largest sample of at least this period, or of three round
/// trips.
const SHORTEST_SAMPLING_PERIOD: Duration = Duration::from_secs(1);

/// The use of the window; `None` while the sender fills it.
#[derive(Debug, Default)]
pub(super) struct WindowValidation(Option<Box<PipeAck>>);

/// pipeACK of a sender whose window is not the limit. It is undefined before the first sample.
#[derive(Clone, Copy, Debug, Default)]
struct PipeAck {
    /// The largest sample of this period, and that of the previous period.
    largest: [ByteCount; 2],
    period_began: Option<Instant>,
    /// Since when the window has not been validated.
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
    /// Processes an ACK of a sender with this `window`; returns whether less than half of the
    /// window was used for the non-validated period. Each further period returns true again.
    fn is_unused(&mut self, ack: &AckView<'_>, window: ByteCount) -> bool {
        let Some(rate) = ack.rate.filter(|rate| rate.interval.is_some()) else { return false };
        let pipe_ack = match &mut self.0 {
            Some(pipe_ack) => pipe_ack,
            // A full window is validated; no state is needed.
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

    /// Returns the FlightSize to reduce from (RFC 7661 section 4.4.1): `flight_size`, or pipeACK if
    /// that is larger and the window is not validated.
    pub(super) fn loss_flight_size(&self, flight_size: ByteCount) -> ByteCount {
        let unvalidated = self.0.as_ref().filter(|pipe_ack| pipe_ack.since.is_some());
        unvalidated.map_or(flight_size, |pipe_ack| flight_size.max(pipe_ack.value()))
    }
}

impl Sender {
    /// Processes an ACK, and has the control halve a window that was not used for long.
    pub(super) fn validate_window(&mut self, ack: &AckView<'_>) {
        let window = self.control_window();
        if self.profile.window_validation && self.validation.is_unused(ack, window) {
            // A later undo must not restore the window.
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

    /// An ACK after `seconds`, of a sender with `pipe_ack` bytes acknowledged per round trip.
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
        // A sender that fills its window keeps no state.
        assert!(!validation.is_unused(&ack(701, 40_000, true), WINDOW));
        assert!(validation.0.is_none());
    }
}
