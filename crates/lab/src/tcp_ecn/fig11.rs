//! Fig. 11: goodput over the radio's error rate.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{Order, Point, Swept};
use super::tries::{LOSING, NS_2, PAPER, REORDERING, Tries};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig11",
    what: "One pair by frame error rate, 500 ms: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2, Fig. 11",
    seconds: 240,
    body: |run| SWEPT.run(run),
    ..Experiment::STUDY
};

/// The tries, and the per cent of frames with errors.
const SWEEPS: [(Tries, &[u32]); 4] =
    [(PAPER, &[0, 10, 20, 30]), (REORDERING, &[20, 30]), (LOSING, &[20]), (NS_2, &[0, 10, 20, 30])];
/// The lowest error rate that the paper calls high, in per cent.
const HIGH: u32 = 30;

const SWEPT: Swept<u32> = Swept {
    x: "frames hit, %",
    at: |course| course.error.into(),
    course: |base, error| Course { error, ..base },
    sweeps: &SWEEPS,
    title: "Goodput",
    pictures: &[("fig11", PAPER), ("fig11-fewer-tries", REORDERING), ("fig11-ns-2", NS_2)],
    judge: |_, findings, points| {
        points.iter().for_each(|point| claims(findings, point));
        Ok(())
    },
};

/// TCP-ECN 7.2.1.2: both policies are above Reno at all error rates, and Snoop falls off at high
/// ones.
fn claims(findings: &mut Findings, point: &Point) {
    let error = point.course.error;
    let place = format!("{error} % hit");
    for above in [Policy::TcpEcn, Policy::Snoop].into_iter().filter(|_| error > 0) {
        point.claim(findings, &place, above, Order::Above, Policy::Plain);
    }
    if error >= HIGH {
        point.claim(findings, &place, Policy::TcpEcn, Order::Above, Policy::Snoop);
    }
}
