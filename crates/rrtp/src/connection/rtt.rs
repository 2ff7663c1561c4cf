//! Round-trip times: measured by this end, and reported by the peer.

use std::time::Duration;

use airtcp_recovery::{RtoForm, RttEstimator};
use airtcp_types::Instant;

/// The minimum of the variance term of a time-out.
const RTO_FLOOR: Duration = Duration::from_millis(50);
/// The initial round-trip time, without a profile.
const FIRST_RTT: Duration = Duration::from_millis(250);
/// The maximum round-trip time taken from a profile.
const LONGEST_SEED: Duration = Duration::from_secs(60);
/// The longest time by which the receiver delays an acknowledgement.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);

#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    measured: RttEstimator,
    is_seeded: bool,
    /// The peer's round-trip time, as reported in its packets.
    peer: Option<Duration>,
}

impl RoundTrip {
    pub(super) fn new(seed: Option<Duration>) -> Self {
        let mut measured = RttEstimator::new(RtoForm::Linux { floor: RTO_FLOOR }, false);
        if let Some(seed) = seed {
            measured.on_sample(seed.min(LONGEST_SEED));
        }
        Self { measured, is_seeded: seed.is_some(), peer: None }
    }

    /// Replaces the measured round-trip time by `seed`, if there is one.
    pub(super) fn reconfigure(&mut self, seed: Option<Duration>) {
        if seed.is_some() {
            self.measured = Self::new(seed).measured;
        }
        self.is_seeded = seed.is_some();
    }

    /// Takes the sample of the handshake, unless a profile gave the round-trip time.
    pub(super) fn on_handshake(&mut self, sample: Duration) {
        if !self.is_seeded {
            self.measured.on_sample(sample);
        }
    }

    /// Takes the echo of a packet's sending time; the receiver held it for `held` microseconds.
    pub(super) fn on_echo(&mut self, now: Instant, echo: u32, held: u32) {
        let since = ((now.as_nanos() / 1_000) as u32).wrapping_sub(echo);
        // The clock wraps every 71 minutes; an echo that seems older than half of that is invalid.
        if let Some(trip) = since.checked_sub(held).filter(|_| since < 1 << 31) {
            self.measured.on_sample(Duration::from_micros(trip.into()));
        }
    }

    /// Takes the round-trip time in a packet of the peer, in microseconds; zero if unknown.
    pub(super) fn on_packet(&mut self, micros: u64) {
        if micros > 0 {
            self.peer = Some(Duration::from_micros(micros));
        }
    }

    /// The round-trip time to send in every packet, in microseconds; zero if unknown.
    pub(super) fn to_send(&self) -> u64 {
        let srtt = self.measured.srtt();
        srtt.map_or(0, |srtt| u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) const fn measured(&self) -> &RttEstimator {
        &self.measured
    }

    /// The round-trip time for the send half.
    pub(super) fn of_sender(&self) -> Duration {
        self.measured.srtt().or(self.peer).unwrap_or(FIRST_RTT)
    }

    /// The round-trip time for the receive half: the peer's own measurement if known.
    pub(super) fn of_receiver(&self) -> Duration {
        self.peer.unwrap_or_else(|| self.of_sender())
    }

    /// The probe time-out (RFC 9002 section 6.2): a sender that receives nothing for this long
    /// sends a PING.
    pub(super) fn pto(&self) -> Duration {
        self.measured.rto() + MAX_ACK_DELAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLIS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_seed_stands_until_data_is_echoed() {
        let mut rtt = RoundTrip::new(Some(MILLIS(300)));
        rtt.on_handshake(MILLIS(900));
        assert_eq!((rtt.of_sender(), rtt.to_send()), (MILLIS(300), 300_000));
        // Sent at 1 s, held for 5 ms, back at 1.105 s.
        rtt.on_echo(Instant::from_millis(1_105), 1_000_000, 5_000);
        assert_eq!(rtt.measured().min(), Some(MILLIS(100)));
        let measured = rtt.of_sender();
        assert!(measured < MILLIS(300));
        // Invalid echoes: held for longer than the round trip; sent in the future.
        rtt.on_echo(Instant::from_millis(1_105), 1_000_000, 106_000);
        rtt.on_echo(Instant::from_millis(1_105), 1_106_000, 0);
        assert_eq!(rtt.of_sender(), measured);
        rtt.reconfigure(None);
        assert_eq!(rtt.of_sender(), measured);
        rtt.reconfigure(Some(MILLIS(20)));
        assert_eq!(rtt.of_sender(), MILLIS(20));
    }

    #[test]
    fn the_receive_half_goes_by_the_peers_measure() {
        let mut rtt = RoundTrip::new(None);
        assert_eq!((rtt.of_sender(), rtt.to_send()), (FIRST_RTT, 0));
        rtt.on_packet(40_000);
        rtt.on_packet(0);
        assert_eq!((rtt.of_sender(), rtt.of_receiver()), (MILLIS(40), MILLIS(40)));
        rtt.on_handshake(MILLIS(60));
        assert_eq!((rtt.of_sender(), rtt.of_receiver()), (MILLIS(60), MILLIS(40)));
        assert!(rtt.pto() > rtt.of_sender() + MAX_ACK_DELAY);
    }
}
