//! The position of the mobile, and the received power.

use std::f64::consts::PI;
use std::time::Duration;

use airtcp_types::Instant;

/// A point of the mobile's path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// When the mobile is there, after the clock's origin.
    pub at: Duration,
    /// The distance from the station, in metres.
    pub metres: f64,
}

/// Two-ray ground reflection: free space (Friis) up to the crossover distance, and the fourth power
/// of the distance beyond it. The constants are those of ns-2: 0.28183815 W at 914 MHz, antennas
/// without gain at a height of 1.5 m. With these, ns-2's threshold of 3.652e-10 W corresponds to
/// 250 m, as in TCP-ECN 7.1.2.
#[derive(Clone, Debug)]
pub(super) struct Power {
    path: Vec<Position>,
    rx_thresh: f64,
    fz_thresh: f64,
}

const TRANSMITTED: f64 = 0.281_838_15;
const WAVELENGTH: f64 = 299_792_458.0 / 914e6;
const HEIGHT: f64 = 1.5;

impl Power {
    pub(super) fn new(path: &[Position], rx_thresh: f64, fz_thresh: f64) -> Self {
        Self { path: path.to_vec(), rx_thresh, fz_thresh }
    }

    /// The distance of the mobile in metres. Before the first and after the last point it does not
    /// move.
    fn distance(&self, now: Instant) -> f64 {
        let now = now.since(Instant::ZERO);
        let next = self.path.partition_point(|point| point.at <= now);
        let after = self.path.get(next);
        match (next.checked_sub(1).and_then(|before| self.path.get(before)), after) {
            (Some(from), Some(to)) => {
                let share = (now - from.at).as_secs_f64() / (to.at - from.at).as_secs_f64();
                from.metres + (to.metres - from.metres) * share
            }
            (Some(only), None) | (None, Some(only)) => only.metres,
            (None, None) => 0.0,
        }
    }

    /// The received power in watts.
    pub(super) fn received(&self, now: Instant) -> f64 {
        let distance = self.distance(now);
        let crossover = 4.0 * PI * HEIGHT * HEIGHT / WAVELENGTH;
        if distance <= 0.0 {
            TRANSMITTED
        } else if distance < crossover {
            let spread = WAVELENGTH / (4.0 * PI * distance);
            (TRANSMITTED * spread * spread).min(TRANSMITTED)
        } else {
            let ratio = HEIGHT / distance;
            TRANSMITTED * ratio * ratio * ratio * ratio
        }
    }

    pub(super) fn is_in_reach(&self, now: Instant) -> bool {
        self.path.is_empty() || self.received(now) >= self.rx_thresh
    }

    /// TCP-ECN 7.1.2: whether the power is below the threshold plus the margin. This includes
    /// powers below the threshold.
    pub(super) fn is_fading(&self, now: Instant) -> bool {
        !self.path.is_empty() && self.received(now) < self.rx_thresh + self.fz_thresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ns2s_threshold_is_250_metres_and_the_freeze_comes_before() {
        let path = [(0, 100.0), (20, 300.0)];
        let path = path.map(|(at, metres)| Position { at: Duration::from_secs(at), metres });
        let power = Power::new(&path, 3.652e-10, 0.5e-10);
        let first = |is: &dyn Fn(Instant) -> bool| {
            (0..20_000).find(|ms| is(Instant::from_millis(*ms))).expect("it comes")
        };
        let fades = first(&|now| power.is_fading(now));
        let gone = first(&|now| !power.is_in_reach(now));
        // 10 m/s from 100 m: 250 m after 15 s; the margin is reached at 250 m / (4.152 /
        // 3.652)^(1/4) = 242.1 m.
        assert!((14_995..=15_005).contains(&gone), "{gone}");
        assert!((14_205..=14_215).contains(&fades), "{fades}");
    }

    #[test]
    fn the_two_laws_meet_at_the_crossover() {
        let at = |metres: f64| {
            let path = [Position { at: Duration::ZERO, metres }];
            Power::new(&path, 0.0, 0.0).received(Instant::ZERO)
        };
        let crossover = 4.0 * PI * HEIGHT * HEIGHT / WAVELENGTH;
        let (below, above) = (at(crossover * 0.999_999), at(crossover * 1.000_001));
        assert!((below / above - 1.0).abs() < 1e-4, "{below} {above}");
        assert_eq!(at(0.0), TRANSMITTED);
        assert!(at(1e-9) <= TRANSMITTED);
    }
}
