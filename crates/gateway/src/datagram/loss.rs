//! Estimates the loss rate, and the number of repair frames that it requires.

use std::time::Duration;

use airtcp_types::Instant;

use super::fec::MOST_COUNT;
use super::frame::Report;

/// The residual loss to aim for: the share of frames that may stay lost. Below this loss rate, no
/// repairs are sent.
const TARGET: f64 = 3e-4;
/// The most repair frames of a group.
const MOST_REPAIRS: u8 = MOST_COUNT;
/// The weight of old counts halves after this number of frames, and after this time (seconds).
const HALF_FRAMES: f64 = 1000.0;
const HALF_TIME: f64 = 10.0;

/// An estimate of the path's loss, from the reports of the receiver.
#[derive(Debug)]
pub(crate) struct Loss {
    last: Option<(Instant, Report)>,
    /// Weighted counts of frames, lost frames, and runs of lost frames; older ones weigh less.
    frames: f64,
    lost: f64,
    runs: f64,
    /// The number of repairs for each group size, once it was computed.
    repairs: Vec<Option<u8>>,
}

impl Default for Loss {
    fn default() -> Self {
        let repairs = vec![None; usize::from(MOST_COUNT) + 1];
        Self { last: None, frames: 0.0, lost: 0.0, runs: 0.0, repairs }
    }
}

impl Loss {
    /// Handles a report; returns whether it is newer than the last one.
    pub(crate) fn on_report(&mut self, now: Instant, report: Report) -> bool {
        let Some((at, last)) = self.last else {
            self.last = Some((now, report));
            return self.add(Duration::ZERO, report.highest, report.lost, report.runs);
        };
        let frames = report.highest.wrapping_sub(last.highest);
        if frames.cast_signed() <= 0 {
            return false;
        }
        self.last = Some((now, report));
        let lost = report.lost.wrapping_sub(last.lost);
        let runs = report.runs.wrapping_sub(last.runs);
        self.add(now.since(at), frames, lost, runs)
    }

    fn add(&mut self, time: Duration, frames: u32, lost: u32, runs: u32) -> bool {
        // The receiver has restarted, or the report is invalid. The slack is needed because the
        // receiver judges losses with a small delay after its highest frame.
        if lost > frames.saturating_add(100) || runs > lost {
            return true;
        }
        let halves = f64::from(frames) / HALF_FRAMES + time.as_secs_f64() / HALF_TIME;
        let kept = (-halves).exp2();
        for (sum, new) in
            [(&mut self.frames, frames), (&mut self.lost, lost), (&mut self.runs, runs)]
        {
            *sum = *sum * kept + f64::from(new);
        }
        self.repairs.fill(None);
        true
    }

    /// The estimated share of frames lost, at most 0.5.
    fn share(&self) -> f64 {
        if self.frames > 0.0 { (self.lost / self.frames).min(0.5) } else { 0.0 }
    }

    /// Whether the loss is high enough for repairs.
    pub(crate) fn is_relevant(&self) -> bool {
        self.share() > TARGET
    }

    /// Returns the number of repair frames for a group of `count` frames.
    pub(crate) fn repairs(&mut self, count: u8) -> u8 {
        if !self.is_relevant() {
            return 0;
        }
        if let Some(Some(known)) = self.repairs.get(usize::from(count)) {
            return *known;
        }
        let share = self.share();
        // One standard deviation more, because the share is an estimate.
        let share = (share + (share * (1.0 - share) / self.frames).sqrt()).min(0.5);
        let run = if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 };
        // Binary search for the smallest sufficient number.
        let (mut fewest, mut most) = (0, MOST_REPAIRS);
        while fewest < most {
            let middle = fewest.midpoint(most);
            match left_over(share, run, count, middle) > TARGET {
                true => fewest = middle + 1,
                false => most = middle,
            }
        }
        if let Some(entry) = self.repairs.get_mut(usize::from(count)) {
            *entry = Some(fewest);
        }
        fewest
    }
}

/// Returns the expected share of all frames that are lost and not recovered: those lost in groups
/// of `count + repairs` frames with more than `repairs` losses. `share` of all frames is lost, in
/// runs of `run` frames on average (Gilbert model).
fn left_over(share: f64, run: f64, count: u8, repairs: u8) -> f64 {
    let frames = u32::from(count) + u32::from(repairs);
    let stay = 1.0 - 1.0 / run;
    let enter = (share * (1.0 - stay) / (1.0 - share)).min(1.0);
    // The probability of each number of losses, with the last frame arrived, and with it lost.
    let most = usize::from(repairs);
    let (mut arrived, mut lost) = (vec![0.0; most + 1], vec![0.0; most + 1]);
    arrived[0] = 1.0 - share;
    if let Some(one) = lost.get_mut(1) {
        *one = share;
    }
    for _ in 1..frames {
        for losses in (0..=most).rev() {
            let after_loss = match losses.checked_sub(1) {
                Some(before) => arrived[before] * enter + lost[before] * stay,
                None => 0.0,
            };
            arrived[losses] = arrived[losses] * (1.0 - enter) + lost[losses] * (1.0 - stay);
            lost[losses] = after_loss;
        }
    }
    let repaired: f64 =
        (0_u32..).zip(arrived.iter().zip(&lost)).map(|(n, (a, l))| f64::from(n) * (a + l)).sum();
    share - repaired / f64::from(frames)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(highest: u32, lost: u32, runs: u32) -> Report {
        Report { highest, hold: 0, lost, runs }
    }

    #[test]
    fn what_is_left_over_follows_the_binomial_distribution() {
        // One frame and one repair: both are lost with probability 0.1 * 0.1.
        assert!((left_over(0.1, 1.0 / 0.9, 1, 1) - 0.01).abs() < 1e-12);
        assert!((left_over(0.1, 1.0 / 0.9, 5, 0) - 0.1).abs() < 1e-12);
        // 3 of 4 or 4 of 4 are lost, each frame with probability 1/2.
        let expected = (4.0 * 3.0 / 16.0 + 4.0 / 16.0) / 4.0;
        assert!((left_over(0.5, 2.0, 2, 2) - expected).abs() < 1e-12);
    }

    #[test]
    fn repairs_grow_with_the_loss_and_its_runs_and_are_none_without() {
        let with = |lost, runs| {
            let mut loss = Loss::default();
            assert!(loss.on_report(Instant::ZERO, report(10_000, lost, runs)));
            loss.repairs(100)
        };
        assert_eq!(with(0, 0), 0);
        assert_eq!(with(2, 2), 0, "less than the target");
        let one = with(100, 99);
        let five = with(500, 475);
        let bursts = with(500, 125);
        assert!((4..8).contains(&one), "{one}");
        assert!((11..17).contains(&five), "{five}");
        assert!(bursts > 2 * five, "{bursts}");
        assert_eq!(with(10_000, 1), MOST_REPAIRS);
    }

    #[test]
    fn old_losses_are_forgotten_and_old_reports_ignored() {
        let mut loss = Loss::default();
        loss.on_report(Instant::ZERO, report(1000, 50, 48));
        assert!(!loss.on_report(Instant::from_millis(1), report(900, 49, 47)));
        assert!(loss.is_relevant());
        loss.on_report(Instant::from_millis(100), report(12_000, 50, 48));
        assert!(!loss.is_relevant());
        // After a restart, the receiver counts from 0.
        loss.on_report(Instant::from_millis(200), report(13_000, 0, 0));
        assert_eq!(loss.repairs(100), 0);
    }
}
