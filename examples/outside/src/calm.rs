//! A loss judge: a loss is random if the latest round trip was short.

use airtcp::recovery::{Cause, Certainty, Entry, Finding, LossJudge, Ruling};
use airtcp::recovery::{Transmission, View, When};

pub static ENTRY: Entry<dyn LossJudge> = Entry {
    name: "calm",
    summary: "a loss within 10 % of the shortest round trip is random: floods a short queue",
    source: "docs/write-your-own-strategy.md",
    make: |parameter, _| match parameter {
        None => Ok(Box::new(Calm)),
        Some(_) => Err("it takes no parameter".to_owned()),
    },
    ..Entry::BLANK
};

#[derive(Debug)]
pub struct Calm;

impl LossJudge for Calm {
    fn rule(
        &mut self,
        finding: &Finding,
        _: &Transmission,
        view: &View<'_>,
        _: bool,
    ) -> Option<Ruling> {
        let (latest, shortest) = (view.rtt.latest()?, view.rtt.min()?);
        let is_random = finding.certainty == Certainty::Lost && latest <= shortest.mul_f64(1.1);
        // Any other loss is left to the next judge; without one it is congestion.
        is_random.then_some(Ruling { repair: When::Now, reduce: When::Never, cause: Cause::Random })
    }
}
