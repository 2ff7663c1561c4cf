//! Fig. 13: goodput over loss on the wired side.

use airtcp_basestation::Policy;

use super::course::Course;
use super::policies::{Order, Point, Swept};
use super::tries::{NS_2, PAPER, REORDERING};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/fig13",
    what: "One pair by wired loss, frame error 20 %: plain, snoop, tcp-ecn",
    source: "TCP-ECN 7.2.1.2, Fig. 13",
    seconds: 60,
    body: |run| SWEPT.run(run),
    ..Experiment::STUDY
};

/// The loss of data packets, in per cent. The paper has the points only in its picture.
const LOSSES: [f64; 3] = [0.1, 1.0, 5.0];
/// The lowest loss that counts as high, in per cent.
const HIGH: f64 = 5.0;

const SWEPT: Swept<f64> = Swept {
    x: "wired loss, %",
    at: |course| course.loss,
    course: |base, loss| Course { loss, ..base },
    sweeps: &[(PAPER, &LOSSES), (REORDERING, &LOSSES), (NS_2, &LOSSES)],
    title: "Goodput, 20 % of frames hit",
    pictures: &[("fig13", PAPER), ("fig13-fewer-tries", REORDERING), ("fig13-ns-2", NS_2)],
    judge: |_, findings, points| {
        points.iter().for_each(|point| claims(findings, point));
        Ok(())
    },
};

fn claims(findings: &mut Findings, point: &Point) {
    let loss = point.course.loss;
    let place = format!("{loss} % lost");
    for below in [Policy::Plain, Policy::Snoop] {
        point.claim(findings, &place, Policy::TcpEcn, Order::Above, below);
    }
    if loss >= HIGH {
        point.claim(findings, &place, Policy::Snoop, Order::Below, Policy::Plain);
        point.claim(findings, &place, Policy::TcpEcn, Order::Same, Policy::Plain);
    }
}
