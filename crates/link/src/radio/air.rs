//! Air time of frames: IEEE 802.11b, high-rate direct sequence.

use std::time::Duration;

use airtcp_types::{ByteCount, Rate};

use super::Arq;
use super::spec::{Preamble, RadioSpec};

/// The unit of the backoff.
pub(super) const SLOT: Duration = Duration::from_micros(20);
/// The gap between the frames of one exchange.
pub(super) const SIFS: Duration = Duration::from_micros(10);
/// The idle time before a new exchange.
pub(super) const DIFS: Duration = Duration::from_micros(50);
/// The backoff is drawn from `0..=CW_MIN` slots; each failure doubles the range, up to `CW_MAX`.
pub(super) const CW_MIN: u32 = 31;
/// See [`CW_MIN`].
pub(super) const CW_MAX: u32 = 1023;

/// The MAC header, LLC and SNAP, and the frame check sequence.
const DATA_OVERHEAD: usize = 24 + 8 + 4;
const ACK: usize = 14;
const RTS: usize = 20;
const CTS: usize = 14;
/// The size of the frame from which the bit errors of short frames are derived, for `error P`.
const FULL: usize = 1500 + DATA_OVERHEAD;

/// Air times and error probabilities of the frames of one radio.
#[derive(Clone, Debug)]
pub(super) struct Air {
    is_plain: bool,
    plcp: Duration,
    rate: Rate,
    control: Rate,
    rts: bool,
    /// The probability of an error in a data frame, apart from bit errors.
    error: f64,
    /// ln(1 - p), where p is the probability that a bit of a short frame is flipped.
    log_whole: f64,
    /// The same for a bit of a data frame.
    log_whole_data: f64,
}

impl Air {
    pub(super) fn new(spec: &RadioSpec) -> Self {
        let error = spec.error.probability();
        let bits = libm::log1p(-spec.biterror);
        let plcp = Duration::from_micros(match spec.preamble {
            _ if spec.plain => 0,
            Preamble::Long => 192,
            Preamble::Short => 96,
        });
        Self {
            is_plain: spec.plain,
            plcp,
            rate: spec.rate,
            control: spec.control,
            rts: spec.rts && !spec.plain,
            error,
            log_whole: bits + libm::log1p(-error) / (FULL as f64 * 8.0),
            log_whole_data: bits,
        }
    }

    /// Whether each end has a medium of its own, so that the ends do not wait for each other.
    pub(super) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The idle time before an exchange.
    pub(super) const fn gap(&self) -> Duration {
        if self.is_plain { Duration::ZERO } else { DIFS }
    }

    pub(super) fn data(&self, packet: usize) -> Duration {
        self.plcp + self.rate.time_for(ByteCount::from(self.frame(packet)))
    }

    /// The size of the frame that carries a packet of this size.
    const fn frame(&self, packet: usize) -> usize {
        if self.is_plain { packet } else { packet + DATA_OVERHEAD }
    }

    fn short(&self, bytes: usize) -> Duration {
        self.plcp + self.control.time_for(ByteCount::from(bytes))
    }

    /// The time of SIFS and the link ACK after a data frame.
    pub(super) fn answer(&self) -> Duration {
        if self.is_plain { Duration::ZERO } else { SIFS + self.short(ACK) }
    }

    /// The time of RTS, CTS and their gaps before a data frame; zero without RTS.
    pub(super) fn announcement(&self) -> Duration {
        if self.rts { self.short(RTS) + SIFS + self.short(CTS) + SIFS } else { Duration::ZERO }
    }

    /// The air time of a try of a frame for a packet of this size, if RTS is answered: a sender
    /// that awaits a link ACK waits as long for a lost one.
    pub(super) fn exchange(&self, packet: usize, arq: Arq, delay: Duration) -> Duration {
        let answer = if arq.acknowledges() { self.answer() + delay * 2 } else { Duration::ZERO };
        self.announcement() + self.data(packet) + answer
    }

    /// The probability of an error in a data frame.
    pub(super) fn data_error(&self, packet: usize) -> f64 {
        let bits = self.frame(packet) as f64 * 8.0;
        1.0 - (1.0 - self.error) * libm::exp(bits * self.log_whole_data)
    }

    /// The probability of an error in a link ACK.
    pub(super) fn ack_error(&self) -> f64 {
        self.short_error(ACK)
    }

    /// The probability of an error in RTS or CTS; zero without RTS.
    pub(super) fn announcement_error(&self) -> f64 {
        if self.rts { self.short_error(RTS + CTS) } else { 0.0 }
    }

    fn short_error(&self, bytes: usize) -> f64 {
        -libm::expm1(bytes as f64 * 8.0 * self.log_whole)
    }
}

impl RadioSpec {
    /// Returns an upper bound of the goodput of a TCP flow over this radio: `payload` bytes in each
    /// packet of `packet` bytes, and an ACK of `ack` bytes for every `per_ack` packets, each
    /// repeated until it arrives. A flow with fewer ACKs may exceed it.
    ///
    /// One exchange is an idle time (DIFS), the frame, SIFS and the link ACK. The data sender
    /// always has a frame, and before each try waits for half a contention window on average. The
    /// window doubles with each failure and is reset after `tries` failures. ACKs count down their
    /// backoff in the same idle slots, at no additional cost. Collisions and unequal waits reduce
    /// the goodput.
    ///
    /// ```
    /// use airtcp_link::RadioSpec;
    ///
    /// let bound = RadioSpec::default().bound(1_448, 1_500, 52, 2).bits_per_sec();
    /// assert!((5_200_000..5_300_000).contains(&bound), "{bound}");
    /// ```
    pub fn bound(&self, payload: usize, packet: usize, ack: usize, per_ack: u32) -> Rate {
        self.bound_with(Arq::MacLink, payload, packet, ack, per_ack)
    }

    /// Returns the bound of [`RadioSpec::bound`] with the mode `arq`. `off` and `head` have no link
    /// ACKs, and their contention window does not double. With link ACKs each try includes the
    /// propagation delay in both directions. A plain radio has a separate medium for TCP's ACKs,
    /// and no backoff.
    ///
    /// ```
    /// use airtcp_link::{Arq, RadioSpec};
    ///
    /// let far: RadioSpec = "plain rate 10mbit delay 280ms".parse()?;
    /// let bound = |arq| far.bound_with(arq, 1_448, 1_500, 52, 2).bits_per_sec();
    /// assert!(bound(Arq::Off) > 9_000_000);
    /// // One frame in each round trip.
    /// assert!((20_000..21_000).contains(&bound(Arq::Mac)), "{}", bound(Arq::Mac));
    /// # Ok::<(), airtcp_link::SpecError>(())
    /// ```
    pub fn bound_with(
        &self,
        arq: Arq,
        payload: usize,
        packet: usize,
        ack: usize,
        per_ack: u32,
    ) -> Rate {
        let air = Air::new(self);
        let per_ack = per_ack.max(1);
        let tries = if arq.acknowledges() { self.tries } else { 1 };
        let round_trip = arq.acknowledges().then_some(self.delay * 2);
        let mean = |size, waits| air.mean_exchange(size, round_trip, tries, waits);
        let cycle = if air.is_plain() {
            (mean(packet, false) * per_ack).max(mean(ack, false))
        } else {
            mean(packet, true) * per_ack + mean(ack, false)
        };
        Rate::from_bytes_over(ByteCount::from(payload) * u64::from(per_ack), cycle)
    }
}

impl Air {
    /// The mean time until a packet has arrived, with retransmissions. If link ACKs arrive
    /// `round_trip` later, it must also be acknowledged. The contention window is reset after
    /// `tries` tries.
    fn mean_exchange(
        &self,
        packet: usize,
        round_trip: Option<Duration>,
        tries: u32,
        waits: bool,
    ) -> Duration {
        let announced = 1.0 - self.announcement_error();
        let (answer, answered) = match round_trip {
            Some(round_trip) => (self.answer() + round_trip, 1.0 - self.ack_error()),
            None => (Duration::ZERO, 1.0),
        };
        let failure = 1.0 - announced * (1.0 - self.data_error(packet)) * answered;
        let try_time = self.gap() + self.announcement() + self.data(packet) + answer;
        let mut cw = CW_MIN;
        let mut reached = 1.0;
        let mut mean = 0.0;
        // The remainder is less than a nanosecond, unless no packet ever arrives.
        for number in 1..=10_000u32 {
            let wait = if waits { SLOT.as_secs_f64() * f64::from(cw) / 2.0 } else { 0.0 };
            mean += reached * (try_time.as_secs_f64() + wait);
            reached *= failure;
            cw =
                if number.is_multiple_of(tries.max(1)) { CW_MIN } else { (cw * 2 + 1).min(CW_MAX) };
        }
        if failure >= 1.0 { Duration::MAX / 1_000_000 } else { Duration::from_secs_f64(mean) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_the_air_times_of_the_standard() {
        let air = Air::new(&RadioSpec::default());
        // 1536 bytes at 11 Mbit/s are 1117.09 us; 14 at 2 Mbit/s are 56.
        assert_eq!(air.data(1_500).as_micros(), 192 + 1_117);
        assert_eq!(air.answer(), Duration::from_micros(10 + 192 + 56));
        assert_eq!(air.announcement(), Duration::ZERO);
        let announced = Air::new(&RadioSpec { rts: true, ..RadioSpec::default() });
        let expected = 192 + 80 + 10 + 192 + 56 + 10;
        assert_eq!(announced.announcement(), Duration::from_micros(expected));
    }

    #[test]
    fn short_frames_are_hit_as_their_bits_are() {
        let air = Air::new(&"error 20%".parse().unwrap());
        assert!((air.data_error(40) - 0.2).abs() < 1e-12, "whatever the length");
        let expected = 1.0 - 0.8f64.powf(14.0 / 1536.0);
        assert!((air.ack_error() - expected).abs() < 1e-12);
        let bits = Air::new(&"biterror 1e-5".parse().unwrap());
        assert!((bits.data_error(1_500) - (1.0 - (1.0f64 - 1e-5).powi(1536 * 8))).abs() < 1e-9);
        assert!((bits.ack_error() - (1.0 - (1.0f64 - 1e-5).powi(14 * 8))).abs() < 1e-9);
    }

    #[test]
    fn errors_cost_the_bound_what_they_repeat() {
        let bound = |text: &str| {
            let spec: RadioSpec = text.parse().unwrap();
            spec.bound(1_448, 1_500, 52, 2).bits_per_sec() as f64
        };
        let ratio = bound("error 20%") / bound("");
        // A fifth of the tries fails, and the backoff after them is longer.
        assert!((0.74..0.80).contains(&ratio), "{ratio}");
        assert_eq!(bound("error 100%"), 0.0);
    }
}
