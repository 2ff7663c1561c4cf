//! Table 1: the paper's summary.

use airtcp_trace::figure::Point;

use super::course::{Course, HACK, Outcome, each_profile, is_papers, reductions};
use super::factor::Factor;
use super::figure::Sweep;
use super::{fig7, fig12};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/table1",
    what: "Speed-up of HACK over SACK at all points of hack/fig7 and hack/fig12",
    source: "HACK 5.2, Table 1; 7",
    seconds: 40,
    seeds: 50,
    body,
    ..Experiment::STUDY
};

/// The errors, the per cent of corrupted headers, the factor in the paper's cell, and its range.
type Cell = (&'static str, u32, &'static str, (f64, f64));
const CELLS: [Cell; 4] = [
    ("random", 0, "5 to 10", (5.0, 10.0)),
    ("random", 95, "equal", (1.0, 1.0)),
    ("bursts", 0, "100", (100.0, 100.0)),
    ("bursts", 95, "6", (6.0, 6.0)),
];

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | errors | header hit, % | paper | HACK over SACK | HACK + SACK over SACK | \
         no errors over SACK",
    );
    let mut series = Vec::new();
    each_profile(&mut findings, |profile, findings| {
        for cell in CELLS {
            let points = measure(run, cell, profile, findings)?;
            if is_papers(profile) {
                let name = format!("{}, header hit {} %", cell.0, cell.1);
                series.push(draw::series(name, Style::Marks, points));
            }
        }
        Ok(())
    })?;
    findings.note(
        "Geometric means over the points, and the least and the most of them; kbit/s and time-outs of each point are \
         in hack/fig7 and hack/fig12.",
    );
    findings.plot(
        "table1",
        "HACK over SACK",
        (
            draw::linear("corrupted packets, %"),
            draw::log(&draw::more("throughput of HACK over that of SACK")),
        ),
        series,
    );
    Ok(findings)
}

fn courses(run: &Run, errors: &str, header: u32) -> Vec<Course> {
    let all: Vec<(_, Vec<Course>)> = match errors {
        "random" => fig7::courses(run).collect(),
        _ => fig12::courses(run).collect(),
    };
    let all = all.into_iter().flat_map(|(_, courses)| courses);
    all.filter(|course| course.header == header).collect()
}

/// Judges a cell, and returns the ratio of HACK to SACK at each point, by the share of corrupted
/// packets.
fn measure(
    run: &Run,
    (errors, header, claimed, between): Cell,
    profile: &Profile,
    findings: &mut Findings,
) -> Result<Vec<Point>, LabError> {
    let sweep = Sweep::measure(run, courses(run, errors, header), profile, findings)?;
    let Sweep { sack, hack, both, .. } = &sweep;
    // No sender exceeds HACK over the paths without errors.
    let clean = sweep.beside(&HACK, profile, findings, Course::without_errors)?;
    let [alone, with_sack, most] = [hack, both, &clean].map(|own| Factor::of(own, sack));
    let place = [profile.name, errors].map(str::to_owned).into_iter();
    let paper = [header.to_string(), claimed.to_owned()];
    let ours = [&alone, &with_sack, &most].map(Factor::show);
    findings.table.add(place.chain(paper).chain(ours).collect());
    let why = match header {
        0 => format!(
            "without errors the link carries {} times SACK at these points, which is the maximum; HACK alone reduced its \
             window {} times, HACK + SACK, which is not misled by duplicate ACKs (HACK 5.2), {} times, and it is {} times \
             SACK",
            most.show(),
            reductions(hack),
            reductions(both),
            with_sack.show()
        ),
        _ => sweep.unread(findings)?.why(),
    };
    let what = format!("HACK over SACK, {errors}, header hit {header} %, {}", profile.name);
    alone.claim_within(findings, what, claimed, between, &why);
    // A burst starts only outside of another burst.
    let share = |c: &Course| {
        let hit = c.share / 100.0 * f64::from(c.burst);
        hit / (hit + 1.0 - c.share / 100.0) * 100.0
    };
    let ratio = |((course, hack), sack): ((&Course, &Outcome), &Outcome)| {
        draw::point(share(course), hack.goodput.mean / sack.goodput.mean)
    };
    let mut points: Vec<_> = sweep.courses.iter().zip(hack).zip(sack).map(ratio).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Ok(points)
}
