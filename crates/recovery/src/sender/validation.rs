//! Window validation (RFC 7661): a window that is not made use of does not stay as it is for ever.
//!
//! pipeACK is how much was acknowledged within a round trip, lately. While it is less than half the window, the window
//! is not validated: a loss is answered from what was in fact in use, and after five minutes the window is halved. That
//! it does not grow meanwhile is the controls' part: they grow by ACKs of what cwnd was the limit of.

use std::time::Duration;

use airtcp_types::{ByteCount, Instant};

use super::Sender;
use crate::control::NoticeKind;
use crate::view::AckView;

/// RFC 7661 section 4.4: for so long a window that is not validated is kept.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// RFC 7661 section 4.2: pipeACK is the largest sample of at least so long, or of three round trips.
const SHORTEST_SAMPLING_PERIOD: Duration = Duration::from_secs(1);

/// pipeACK, of a sender whose window is not the limit. Before the first sample it is undefined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Validation {
    /// The largest sample of this period, and of the one before.
    largest: [ByteCount; 2],
    period_began: Option<Instant>,
    /// Since when the window is not validated.
    since: Option<Instant>,
}

impl Validation {
    fn pipe_ack(&self) -> ByteCount {
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

impl Sender {
    /// Takes an ACK's sample, and has the control give up half of a window that nothing needed for long.
    pub(super) fn validate_window(&mut self, ack: &AckView<'_>) {
        if !self.profile.window_validation {
            return;
        }
        let Some(rate) = ack.rate.filter(|rate| rate.interval.is_some()) else { return };
        let window = self.control.window();
        let validation = match &mut self.validation {
            Some(validation) => validation,
            // What fills its window is validated, and has nothing to keep.
            None if ack.cwnd_limited => return,
            none => none.insert(Box::default()),
        };
        let period = SHORTEST_SAMPLING_PERIOD.max(ack.srtt * 3);
        validation.add(ack.now, rate.delivered, period);
        if validation.pipe_ack() >= window.half() {
            validation.since = None;
            if ack.cwnd_limited {
                self.validation = None;
            }
            return;
        }
        let since = *validation.since.get_or_insert(ack.now);
        if ack.now.since(since) >= NON_VALIDATED_PERIOD {
            validation.since = Some(ack.now);
            // What happened before is not to bring the old window back.
            self.undo = None;
            self.notify(ack.now, NoticeKind::Unused);
        }
    }

    /// From where a reduction starts (RFC 7661 section 4.4.1): what is in flight, or what was acknowledged in a round
    /// trip lately, where the window is not validated.
    pub(super) fn loss_flight_size(&self) -> ByteCount {
        let unvalidated = self.validation.as_ref().filter(|validation| validation.since.is_some());
        let pipe_ack = unvalidated.map_or(ByteCount::ZERO, |validation| validation.pipe_ack());
        self.core.board.flight_size().max(pipe_ack)
    }
}
