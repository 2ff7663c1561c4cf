//! `rr`: only a time-out is a sign of congestion (the simplified TCP-RR of LE 5.2.2).

use super::{Cause, LossJudge, Ruling, When};
use crate::detection::{Certainty, Finding};
use crate::registry::{Entry, TakesOver, WireNeeds};
use crate::transmission::Transmission;
use crate::view::View;

pub(crate) const RR: Entry<dyn LossJudge> = Entry {
    name: "rr",
    parameter: "[:K]",
    example: Some("3"),
    summary: "repairs losses without reducing the window, so it floods a full queue; RTO = SRTT + K RTTVAR (2)",
    source: "Kang, Mo 2012, 5.2.2",
    needs: WireNeeds::NONE,
    fallback: None,
    takes_over: TakesOver::NONE,
    uses_seed: false,
    make: |parameter, _| {
        let variances = parameter.map_or(Some(2), |k| k.parse().ok());
        match variances.filter(|k| (1..=16).contains(k)) {
            Some(variances) => Ok(Box::new(Rr { variances })),
            None => Err("it takes 1 to 16 RTTVAR, as in `rr:2`".to_owned()),
        }
    },
};

/// The simplified TCP-RR. The paper gives no value for its shorter time-out.
#[derive(Clone, Copy, Debug)]
pub struct Rr {
    variances: u32,
}

impl LossJudge for Rr {
    fn rule(
        &mut self,
        finding: &Finding,
        _: &Transmission,
        _: &View<'_>,
        _: bool,
    ) -> Option<Ruling> {
        (finding.certainty == Certainty::Lost).then_some(Ruling {
            repair: When::Now,
            reduce: When::Never,
            cause: Cause::Corruption,
        })
    }

    fn rto_variances(&self) -> Option<u32> {
        Some(self.variances)
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::ByteCount;
    use std::time::Duration;

    use crate::testkit::{Net, SMSS, sender};

    #[test]
    fn losses_are_repaired_and_the_window_stays() {
        for combination in ["sack/reno/rr", "rack/cubic/rr", "le/reno/rr", "newreno/reno/rr"] {
            let mut net = Net::new(sender(combination), 1_000, 64);
            net.losses.extend([(200, 0), (300, 0), (310, 0)]);
            net.run();
            let stats = net.sender.stats();
            assert_eq!((stats.reductions, stats.timeouts), (0, 0), "{combination}");
            assert!(stats.segments_retransmitted >= 3, "{combination}");
            assert!(net.sender.cwnd() >= ByteCount(60 * SMSS), "{combination}");
        }
    }

    #[test]
    fn a_time_out_reduces_and_comes_sooner() {
        let mut net = Net::new(sender("sack/reno/rr"), 20, 64);
        // SRTT is 100 ms and RTTVAR 50 ms.
        assert_eq!(net.sender.rtt().rto(), Duration::from_millis(200));
        assert_eq!(sender("sack/reno/rr:3").rtt().rto(), Duration::from_millis(250));
        net.losses.extend((10..20).map(|segment| (segment, 0)));
        net.run();
        assert_eq!(net.sender.stats().timeouts, 1);
    }
}
