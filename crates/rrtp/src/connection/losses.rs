//! Decides which losses reduce the rate.

use crate::config::NetworkKind;
use crate::gaps::EPOCH;
use crate::rate::SEVERE;

use super::epochs::Epoch;

/// The weight of an epoch in the measured loss rate.
const LOSS_WEIGHT: f64 = 0.05;
/// The number of standard deviations by which losses must exceed the link's own to count as
/// congestion; they must also exceed twice the link's own losses.
const DEVIATIONS: f64 = 2.0;
/// The maximum loss rate attributed to the link itself: a flow that meets a full queue from its
/// first packet on classifies all losses as the link's.
const LINK_LOSS: f64 = 0.05;

/// The judgement of an epoch's losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Verdict {
    /// The share of the epoch that was lost to congestion.
    pub(super) congestive: f64,
    /// Whether the rate has to be reduced.
    pub(super) reduces: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// The first transmission after the last reduction of the rate, which covers all losses before
    /// it.
    recovery_start: u64,
    /// The current value of the recovery bit in data packets.
    recovery_bit: bool,
    /// Whether losses since the last epoch were classified as congestive.
    congestion_reported: bool,
    /// The loss rate without congestion.
    link_loss: f64,
    /// The loss rate.
    loss_rate: f64,
}

impl Losses {
    /// `seed`: the loss rate of the profile.
    pub(super) fn new(seed: Option<f64>) -> Self {
        let loss_rate = seed.unwrap_or(0.0);
        Self {
            recovery_start: 0,
            recovery_bit: false,
            congestion_reported: false,
            link_loss: loss_rate,
            loss_rate,
        }
    }

    /// Replaces the measured loss rate by `seed`, if there is one.
    pub(super) const fn reconfigure(&mut self, seed: Option<f64>) {
        if let Some(loss_rate) = seed {
            let loss_rate = loss_rate.clamp(0.0, 1.0);
            (self.loss_rate, self.link_loss) = (loss_rate, loss_rate);
        }
    }

    pub(super) const fn loss_rate(&self) -> f64 {
        self.loss_rate
    }

    /// Returns the recovery bit of a data packet to send.
    pub(super) const fn on_data_sent(&mut self, transmission: u64) -> bool {
        // The bit toggles once, however many reductions there were since the last packet.
        self.recovery_bit ^= transmission == self.recovery_start;
        self.recovery_bit
    }

    /// `congestive` is the newest transmission that a report classifies as lost to congestion, if
    /// any.
    pub(super) fn on_report(&mut self, congestive: Option<u64>) {
        self.congestion_reported |=
            congestive.is_some_and(|transmission| transmission >= self.recovery_start);
    }

    /// Starts a recovery: losses of transmissions before `next` no longer reduce the rate.
    pub(super) const fn start_recovery(&mut self, next: u64) {
        (self.congestion_reported, self.recovery_start) = (false, next);
    }

    /// Judges an epoch; `next` is the next transmission.
    pub(super) fn on_epoch(&mut self, epoch: &Epoch, kind: NetworkKind, next: u64) -> Verdict {
        if epoch.since >= self.recovery_start && epoch.first_counted < self.recovery_start {
            // The receiver missed two toggles of the bit and counts from before a reduction: toggle
            // again.
            self.start_recovery(next);
            return Verdict { congestive: 0.0, reduces: false };
        }
        let mut congestive = epoch.counts.congestive;
        let lost = congestive.saturating_add(epoch.counts.wireless);
        let count = epoch.counts.received.saturating_add(lost);
        let share = |part: u32| (f64::from(part) / f64::from(count.max(1))).min(1.0);
        self.loss_rate += (share(lost) - self.loss_rate) * LOSS_WEIGHT;
        let is_severe = kind == NetworkKind::General && count >= EPOCH && share(lost) > SEVERE;
        if is_severe && epoch.since >= self.recovery_start {
            // Congestion regardless of the classification: a flow that meets a full queue from its
            // first packet on knows no shorter trip time, so all losses look like the link's.
            (congestive, self.congestion_reported) = (lost, true);
        }
        if congestive == 0 && !is_severe {
            self.link_loss += (share(lost) - self.link_loss) * LOSS_WEIGHT;
        }
        let reduces = std::mem::take(&mut self.congestion_reported)
            && is_congestion(congestive, count, self.link_loss);
        if reduces {
            self.start_recovery(next);
        }
        Verdict { congestive: share(congestive), reduces }
    }
}

/// Whether `lost` of `count` packets are more than the loss rate of the link and chance explain.
fn is_congestion(lost: u32, count: u32, link_loss: f64) -> bool {
    let usual = f64::from(count) * link_loss.min(LINK_LOSS);
    f64::from(lost) > usual + usual.max(DEVIATIONS * usual.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_within_the_expected_number_are_no_congestion() {
        for (lost, count, link_loss, expected) in [
            (0, 32, 0.0, false),
            // A link that never lost a packet.
            (1, 32, 0.0, true),
            // With 1 loss in 50, one or two in 32 occur by chance, three hardly ever.
            (2, 32, 0.02, false),
            (3, 32, 0.02, true),
            // Up to twice the usual number, where chance explains less.
            (40, 1_000, 0.02, false),
            (41, 1_000, 0.02, true),
            // A loss rate of one half is not attributed to the link.
            (16, 32, 0.5, true),
        ] {
            assert_eq!(is_congestion(lost, count, link_loss), expected, "{lost} {count}");
        }
    }

    /// An epoch of 32 transmissions from `since`, counted from `first_counted`.
    fn epoch(since: u64, first_counted: u64, congestive: u32, wireless: u32) -> Epoch {
        let counts = crate::wire::Counts {
            first_counted: first_counted as u32,
            congestive,
            wireless,
            received: 32 - congestive - wireless,
        };
        Epoch { since, first_counted, counts, fresh: true }
    }

    #[test]
    fn only_losses_of_what_left_after_a_cut_are_a_reason_for_the_next_one() {
        let mut losses = Losses::new(None);
        let kind = NetworkKind::General;
        let reduces = |losses: &mut Losses, since, lost, next| {
            losses.on_report(lost);
            losses.on_epoch(&epoch(since, since, 4, 0), kind, next).reduces
        };
        assert!(!reduces(&mut losses, 1, None, 40));
        assert!(reduces(&mut losses, 1, Some(3), 40));
        assert!(!reduces(&mut losses, 20, Some(39), 80));
        assert!(reduces(&mut losses, 40, Some(40), 80));
        losses.on_report(Some(80));
        losses.start_recovery(81);
        assert!(!reduces(&mut losses, 81, None, 120));
    }

    #[test]
    fn the_bit_turns_with_the_first_packet_after_a_cut_however_many_there_were() {
        let mut losses = Losses::new(None);
        losses.start_recovery(5);
        assert_eq!([4, 5, 6].map(|sent| losses.on_data_sent(sent)), [false, true, true]);
        losses.start_recovery(7);
        losses.start_recovery(7);
        assert_eq!([7, 8].map(|sent| losses.on_data_sent(sent)), [false, false]);
        // The receiver missed the toggle: its counts are from before.
        losses.on_report(Some(9));
        let verdict = losses.on_epoch(&epoch(9, 5, 16, 0), NetworkKind::General, 30);
        assert_eq!(verdict, Verdict { congestive: 0.0, reduces: false });
        assert!(losses.on_data_sent(30), "it turns again");
    }

    #[test]
    fn a_flow_that_drowns_is_congested_whatever_its_losses_were_judged_to_be() {
        for (kind, expected) in
            [(NetworkKind::General, true), (NetworkKind::WirelessLastHop, false)]
        {
            let mut losses = Losses::new(None);
            let verdict = losses.on_epoch(&epoch(1, 1, 0, 16), kind, 40);
            assert_eq!(verdict.reduces, expected);
            assert_eq!(verdict.congestive, if expected { 0.5 } else { 0.0 });
        }
    }

    #[test]
    fn the_loss_rate_is_the_seed_refined() {
        let mut losses = Losses::new(Some(0.1));
        losses.on_epoch(&epoch(1, 1, 0, 0), NetworkKind::General, 40);
        assert!(losses.loss_rate() < 0.1);
        losses.reconfigure(None);
        assert!(losses.loss_rate() < 0.1);
        losses.reconfigure(Some(2.0));
        assert_eq!(losses.loss_rate(), 1.0);
    }
}
