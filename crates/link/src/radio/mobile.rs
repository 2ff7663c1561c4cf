//! The channel between the station and one mobile.

use airtcp_types::Instant;

use super::air::Air;
use super::power::Power;
use super::{RadioSpec, Reception};
use crate::channel::Outages;

#[derive(Clone, Debug)]
pub(super) struct Mobile {
    pub(super) air: Air,
    pub(super) deliver_corrupt: bool,
    power: Power,
    outages: Option<Outages>,
    /// Whether it has not been put out of reach.
    pub(super) is_connected: bool,
}

impl Mobile {
    pub(super) fn new(spec: &RadioSpec) -> Self {
        Self {
            air: Air::new(spec),
            deliver_corrupt: spec.deliver_corrupt,
            power: Power::new(&spec.at, spec.rx_thresh, spec.fz_thresh),
            outages: Outages::new(None, &spec.down),
            is_connected: true,
        }
    }

    pub(super) fn reception(&self, now: Instant) -> Reception {
        let is_in_reach = self.is_connected && self.power.is_in_reach(now);
        let is_down = self.outages.as_ref().is_some_and(|outages| outages.is_down(now));
        Reception {
            is_in_reach,
            is_fading: self.power.is_fading(now),
            is_connected: is_in_reach && !is_down,
            power: self.power.received(now),
        }
    }
}
