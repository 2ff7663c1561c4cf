//! Table 1: the paper's summary.

use airtcp_recovery::Profile;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, HACK, HACK_SACK, Outcome, SACK, Sender};
use super::factor::Factor;
use super::{fig7, fig12};
use crate::{Experiment, Findings, Ground, Kind, LabError, Run, draw};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/table1",
    what: "How many times faster HACK is than SACK, over all points of hack/fig7 and hack/fig12",
    source: "HACK 5.2, Table 1; 7",
    kind: Kind::Study,
    ground: Ground::Simulated,
    seconds: 45,
    seeds: 10,
    body,
};

/// A cell of the paper's table.
struct Cell {
    errors: &'static str,
    header: u32,
    claimed: &'static str,
    /// What is meant by it.
    between: (f64, f64),
    why: &'static str,
}

const CELLS: [Cell; 4] = [
    Cell {
        errors: "random",
        header: 0,
        claimed: "5 to 10",
        between: (5.0, 10.0),
        why: "HACK alone halves its window at the needless fast retransmit that HACK 5.2 admits; with SACK it does not, and then the factor of five to ten is met at 10 ms from 8 % on, not at 300 ms",
    },
    Cell {
        errors: "random",
        header: 95,
        claimed: "equal",
        between: (1.0, 1.0),
        why: "one header in twenty is read, and that tells",
    },
    Cell {
        errors: "bursts",
        header: 0,
        claimed: "100",
        between: (100.0, 100.0),
        why: "the factor grows with the share and the length of bursts, and is most at the worst point: the mean over all points hides it, and the paper does not say of which points it speaks",
    },
    Cell {
        errors: "bursts",
        header: 95,
        claimed: "6",
        between: (6.0, 6.0),
        why: "of twenty corrupted headers one is read; the factor is above one only where bursts are many and long",
    },
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "errors",
        "header hit, %",
        "paper",
        "HACK over SACK",
        "HACK + SACK over SACK",
    ]);
    let mut series = Vec::new();
    for profile in [Profile::paper(), Profile::modern()] {
        for Cell { errors, header, claimed, between, why } in &CELLS {
            let all: Vec<Course> = if *errors == "random" {
                fig7::courses(run).flat_map(|(_, courses)| courses).collect()
            } else {
                fig12::courses(run).flat_map(|(_, courses)| courses).collect()
            };
            let courses: Vec<_> = all.iter().filter(|course| course.header == *header).collect();
            let mut of = |sender: &Sender| -> Result<Vec<Outcome>, LabError> {
                let one = |c: &&Course| c.measure(run, sender, &profile, &mut findings);
                courses.iter().map(one).collect()
            };
            let (sack, hack, both) = (of(&SACK)?, of(&HACK)?, of(&HACK_SACK)?);
            let (alone, with_sack) = (Factor::of(&hack, &sack), Factor::of(&both, &sack));
            findings.table.row([
                profile.name.to_owned(),
                (*errors).to_owned(),
                header.to_string(),
                (*claimed).to_owned(),
                alone.show(),
                with_sack.show(),
            ]);
            let what = format!("HACK over SACK, {errors}, header hit {header} %, {}", profile.name);
            alone.claim_within(&mut findings, what, claimed, *between, why);
            if profile.name == Profile::paper().name {
                // The share of packets that errors touch: bursts that start outside of others.
                let share = |c: &Course| {
                    let hit = c.share / 100.0 * f64::from(c.burst);
                    hit / (hit + 1.0 - c.share / 100.0) * 100.0
                };
                let ratio = |((course, hack), sack): ((&&Course, &Outcome), &Outcome)| {
                    draw::point(share(course), hack.goodput.mean / sack.goodput.mean)
                };
                let mut points: Vec<_> = courses.iter().zip(&hack).zip(&sack).map(ratio).collect();
                points.sort_by(|a, b| a.x.total_cmp(&b.x));
                let name = format!("{errors}, header hit {header} %");
                series.push(draw::series(name, Style::Marks, points));
            }
        }
    }
    findings.notes.push(
        "Geometric means over the points, and the least and the most of them; kbit/s and time-outs of each point are \
         in hack/fig7 and hack/fig12."
            .to_owned(),
    );
    findings.picture(
        "table1",
        Figure {
            title: "HACK over SACK".to_owned(),
            x: draw::linear("corrupted packets, %"),
            y: draw::log("throughput of HACK over that of SACK"),
            series,
        },
    );
    Ok(findings)
}
