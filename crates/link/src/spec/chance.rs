//! Whether a link uses random numbers.

use super::{Discipline, LinkSpec, LossSpec, Share, Way};

impl Share {
    /// Whether the share requires a random draw: it is neither 0 % nor 100 %.
    fn is_chance(self) -> bool {
        self > Self::NONE && self < Self::ALL
    }
}

impl LinkSpec {
    /// Returns whether the link's effect on packets that go `way` depends on the seed. Effects on
    /// all packets or none, by packet number, or by time do not.
    ///
    /// ```
    /// use airtcp_link::LinkSpec;
    /// use airtcp_link::spec::Way;
    ///
    /// let spec: LinkSpec = "rate 1mbit codel drop every 100 loss 1% only forth".parse()?;
    /// assert!(spec.is_random(Way::Forth) && !spec.is_random(Way::Back));
    /// # Ok::<(), airtcp_link::SpecError>(())
    /// ```
    pub fn is_random(&self, way: Way) -> bool {
        let is_spared = self.only.way.is_some_and(|only| only != way);
        self.delays_at_random()
            || self.duplicate.is_some_and(Share::is_chance)
            || matches!(self.queue.discipline, Discipline::Red { probability, .. } if probability > Share::NONE)
            || !is_spared && self.harms_at_random()
    }

    fn delays_at_random(&self) -> bool {
        let strays = self.delayed.is_some_and(|delayed| {
            let is_spread = delayed.share > Share::NONE && !delayed.deviation.is_zero();
            delayed.share.is_chance() || is_spread
        });
        strays || self.delays().any(|delay| !delay.jitter.is_zero())
    }

    /// Whether the effects that [`only`](Self::only) limits are random.
    fn harms_at_random(&self) -> bool {
        self.losses().any(LossSpec::is_random)
            || self.burst.is_some_and(|(share, _)| share.is_chance())
            || self.biterror.is_some_and(|rate| rate > 0.0)
            // The position of the corruption is always drawn.
            || self.corrupt.is_some_and(|corrupt| corrupt.share > Share::NONE)
    }
}

impl LossSpec {
    fn is_random(&self) -> bool {
        match *self {
            Self::Random(share) => share.is_chance(),
            Self::GilbertElliott { to_bad, to_good, loss_bad, loss_good } => {
                let changes = to_bad.is_chance() || to_good.is_chance();
                let in_bad = loss_bad.is_chance() || changes && loss_bad != loss_good;
                loss_good.is_chance() || to_bad > Share::NONE && in_bad
            }
        }
    }
}
