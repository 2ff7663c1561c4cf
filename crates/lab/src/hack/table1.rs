//! Table 1: the paper's summary.

use airtcp_recovery::Profile;
use airtcp_trace::figure::{Point, Style};

use super::course::{Course, HACK, Outcome};
use super::factor::Factor;
use super::figure::Sweep;
use super::{fig7, fig12};
use crate::{Experiment, Findings, LabError, Run, draw};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/table1",
    what: "Speed-up of HACK over SACK at all points of hack/fig7 and hack/fig12",
    source: "HACK 5.2, Table 1; 7",
    seconds: 16,
    body,
    ..Experiment::STUDY
};

/// A cell of the paper's table.
struct Cell {
    errors: &'static str,
    header: u32,
    claimed: &'static str,
    /// What is meant by it.
    between: (f64, f64),
}

const CELLS: [Cell; 4] = [
    Cell { errors: "random", header: 0, claimed: "5 to 10", between: (5.0, 10.0) },
    Cell { errors: "random", header: 95, claimed: "equal", between: (1.0, 1.0) },
    Cell { errors: "bursts", header: 0, claimed: "100", between: (100.0, 100.0) },
    Cell { errors: "bursts", header: 95, claimed: "6", between: (6.0, 6.0) },
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new([
        "profile",
        "errors",
        "header hit, %",
        "paper",
        "HACK over SACK",
        "HACK + SACK over SACK",
        "no errors over SACK",
    ]);
    let mut series = Vec::new();
    for profile in [Profile::paper(), Profile::modern()] {
        for cell in &CELLS {
            let points = cell.measure(run, &profile, &mut findings)?;
            if profile.name == Profile::paper().name {
                let name = format!("{}, header hit {} %", cell.errors, cell.header);
                series.push(draw::series(name, Style::Marks, points));
            }
        }
    }
    findings.note(
        "Geometric means over the points, and the least and the most of them; kbit/s and time-outs of each point are \
         in hack/fig7 and hack/fig12.",
    );
    let (x, y) =
        (draw::linear("corrupted packets, %"), draw::log("throughput of HACK over that of SACK"));
    findings.picture("table1", draw::figure("HACK over SACK", x, y, series));
    Ok(findings)
}

impl Cell {
    fn courses(&self, run: &Run) -> Vec<Course> {
        let all: Vec<_> = if self.errors == "random" {
            fig7::courses(run).flat_map(|(_, courses)| courses).collect()
        } else {
            fig12::courses(run).flat_map(|(_, courses)| courses).collect()
        };
        all.into_iter().filter(|course| course.header == self.header).collect()
    }

    /// Judges the cell, and gives HACK over SACK at each point, by the share of packets that are
    /// corrupted.
    fn measure(
        &self,
        run: &Run,
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<Vec<Point>, LabError> {
        let Self { errors, header, claimed, between } = self;
        let courses = self.courses(run);
        let sweep = Sweep::measure(run, &courses, profile, findings)?;
        let Sweep { sack, hack, both, .. } = &sweep;
        let clean = clean(run, &courses, profile, findings)?;
        let (alone, with_sack) = (Factor::of(hack, sack), Factor::of(both, sack));
        let most = Factor::of(&clean, sack);
        findings.table.row([
            profile.name.to_owned(),
            (*errors).to_owned(),
            header.to_string(),
            (*claimed).to_owned(),
            alone.show(),
            with_sack.show(),
            most.show(),
        ]);
        let cuts = |of: &[Outcome]| of.iter().map(|outcome| outcome.reductions).sum::<u64>();
        let why = if *header > 0 {
            sweep.unread(run, &courses, profile, findings)?.why()
        } else {
            format!(
                "without errors the link carries {} times SACK at these points, which is the maximum; HACK alone reduced its \
                 window {} times, HACK + SACK, which is not misled by duplicate ACKs (HACK 5.2), {} times, and it is {} times \
                 SACK",
                most.show(),
                cuts(hack),
                cuts(both),
                with_sack.show()
            )
        };
        let what = format!("HACK over SACK, {errors}, header hit {header} %, {}", profile.name);
        alone.claim_within(findings, what, claimed, *between, &why);
        // Bursts start outside of others.
        let share = |c: &Course| {
            let hit = c.share / 100.0 * f64::from(c.burst);
            hit / (hit + 1.0 - c.share / 100.0) * 100.0
        };
        let ratio = |((course, hack), sack): ((&Course, &Outcome), &Outcome)| {
            draw::point(share(course), hack.goodput.mean / sack.goodput.mean)
        };
        let mut points: Vec<_> = courses.iter().zip(hack).zip(sack).map(ratio).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Ok(points)
    }
}

/// HACK over the paths of the courses without errors, which no sender exceeds.
fn clean(
    run: &Run,
    courses: &[Course],
    profile: &Profile,
    findings: &mut Findings,
) -> Result<Vec<Outcome>, LabError> {
    let mut known: Vec<(Course, Outcome)> = Vec::new();
    for course in courses {
        let path = course.without_errors();
        let outcome = match known.iter().find(|(of, _)| *of == path) {
            Some((_, outcome)) => outcome.clone(),
            None => path.measure(run, &HACK, profile, findings)?,
        };
        known.push((path, outcome));
    }
    Ok(known.into_iter().map(|(_, outcome)| outcome).collect())
}
