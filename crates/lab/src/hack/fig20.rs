//! Figures 20 to 25: one transfer with bursts of corruption, over time.

use airtcp_trace::figure::Axis;

use super::course::{Course, HACK, HACK_SACK, ONE, Outcome, SACK, Sender, each_profile, is_papers};
use super::factor::{Factor, NOT_ISOLATED};
use super::trail::Trail;
use crate::paper::Printed;
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hack/fig20",
    what: "Time-sequence graphs and throughput under bursts of five, 300 ms",
    source: "HACK 5.2, Fig. 20 to 25",
    seconds: 2,
    body,
    ..Experiment::STUDY
};

/// The course of all these figures. HACK 5.2 does not repeat the file size.
pub(super) const COURSE: Course = Course { share: 5.0, burst: 5, header: 95, ..Course::LONG };
/// The senders with the paper's time-sequence graph of each.
const SENDERS: [(Sender, &str); 3] = [(SACK, "fig21"), (HACK, "fig20"), (HACK_SACK, "fig22")];
/// HACK 5.2, Fig. 24: the duration of the transfer.
const SECONDS: [Printed; 3] = [
    Printed { what: "seconds of SACK", figure: 2600.0, decimals: 0 },
    Printed { what: "seconds of HACK", figure: 430.0, decimals: 0 },
    Printed { what: "seconds of HACK + SACK", figure: 140.0, decimals: 0 },
];
/// The bin width of Fig. 23, in seconds.
const BIN: f64 = 2.0;

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "profile | header hit, % | file, KB | sender | seconds | time-outs | of repairs | \
         longest stretch without an ACK, s",
    );
    each_profile(&mut findings, |profile, findings| {
        let mut bench = Bench { run, profile, findings: &mut *findings };
        let hit = bench.all(&COURSE)?;
        let read = bench.all(&Course { header: 0, ..COURSE })?;
        let unread = bench.row(&Course { header: 100, ..COURSE }, &HACK)?;
        let why = format!(
            "with all headers corrupted HACK takes {} s, and its longest pause is {} s; one intact header in twenty adds little",
            theory::show(&unread.outcome.seconds, 1.0, 1),
            theory::show(&Interval::of(&unread.stretches), 1.0, 1)
        );
        bench.claim_order("header hit 95 %", &hit, &why);
        bench.claim_order("header hit 0 %", &read, NOT_ISOLATED);
        bench.claim_stretches(&hit, &why);
        bench.claim_readable(&hit[1], &read[1]);
        if is_papers(profile) {
            bench.claim_printed(&hit)?;
            pictures(findings, &hit, &read);
        }
        Ok(())
    })?;
    findings.note(NOTE);
    Ok(findings)
}

const NOTE: &str = "Time-outs of repairs waited for data that had been retransmitted and was corrupted \
                    again. Fig. 20 to 23 show the first seed. All headers corrupted, a file of 2 MB and one segment at a \
                    time are not in the paper: they explain the differences.";

/// The results of one sender.
struct Row {
    outcome: Outcome,
    /// The longest time without an ACK with each seed, in seconds.
    stretches: Vec<f64>,
    /// The trail with the first seed.
    trail: Trail,
}

impl Row {
    fn outcomes(&self) -> &[Outcome] {
        std::slice::from_ref(&self.outcome)
    }
}

/// Measures the rows of one profile.
struct Bench<'a> {
    run: &'a Run,
    profile: &'a Profile,
    findings: &'a mut Findings,
}

impl Bench<'_> {
    fn row(&mut self, course: &Course, sender: &Sender) -> Result<Row, LabError> {
        let (outcome, mut trails) = course.watch(self.run, sender, self.profile, self.findings)?;
        let stretches: Vec<_> = trails.iter().map(Trail::longest_stretch).collect();
        self.findings.table.row([
            self.profile.name.to_owned(),
            course.header.to_string(),
            (course.size(self.run).0 / 1000).to_string(),
            sender.name.to_owned(),
            theory::show(&outcome.seconds, 1.0, 1),
            theory::show(&outcome.timeouts, 1.0, 1),
            format!("{:.1}", outcome.of_repairs),
            theory::show(&Interval::of(&stretches), 1.0, 1),
        ]);
        Ok(Row { outcome, stretches, trail: trails.swap_remove(0) })
    }

    fn all(&mut self, course: &Course) -> Result<[Row; 3], LabError> {
        let [(sack, _), (hack, _), (both, _)] = &SENDERS;
        Ok([self.row(course, sack)?, self.row(course, hack)?, self.row(course, both)?])
    }

    /// Figs. 24 and 25: SACK takes longest, HACK + SACK takes least.
    fn claim_order(&mut self, place: &str, [sack, hack, both]: &[Row; 3], why: &str) {
        for (name, [above, below], why) in [
            ("HACK over SACK", [hack, sack], why),
            ("HACK + SACK over HACK", [both, hack], NOT_ISOLATED),
        ] {
            let what = format!("{name}, {place}, {}", self.profile.name);
            Factor::of(above.outcomes(), below.outcomes()).claim_above(self.findings, what, why);
        }
    }

    /// HACK 5.2 about Figs. 20 to 22: with HACK there are no long horizontal lines.
    fn claim_stretches(&mut self, [sack, hack, both]: &[Row; 3], why: &str) {
        for (name, row) in [("HACK", hack), ("HACK + SACK", both)] {
            let [own, other] = [row, sack].map(|row| &row.stretches);
            let shown =
                [own, other].map(|all| theory::show(&Interval::of(all), 1.0, 1)).join(" and ");
            self.findings.claim(
                format!("longest stretch of {name} and of SACK, {}", self.profile.name),
                "shorter",
                format!("{shown} s"),
                theory::less(own, other, || why.to_owned()),
            );
        }
    }

    /// HACK 5.2 about Fig. 25: HACK is much better if all headers are intact.
    fn claim_readable(&mut self, hit: &Row, read: &Row) {
        let what = format!("HACK, header hit 0 % over 95 %, {}", self.profile.name);
        let factor = Factor::of(read.outcomes(), hit.outcomes());
        factor.claim_above(self.findings, what, NOT_ISOLATED);
    }

    /// The bars of Fig. 24, whose values the text gives.
    fn claim_printed(&mut self, rows: &[Row; 3]) -> Result<(), LabError> {
        let one = self.row(&COURSE, &ONE)?.outcome.seconds.mean;
        let large = self.all(&Course { size: ByteCount(2_000_000), ..COURSE })?;
        for ((printed, row), large) in SECONDS.iter().zip(rows).zip(&large) {
            let why = format!(
                "256 KB take {one:.0} s even with never more than one segment in flight; the paper does not give the size \
                 of its file: 2 MB take this sender {:.0} s",
                large.outcome.seconds.mean
            );
            self.findings.printed(printed, "bursts of five", &row.outcome.seconds, &why);
        }
        Ok(())
    }
}

fn pictures(findings: &mut Findings, hit: &[Row; 3], read: &[Row; 3]) {
    let mut throughputs = Vec::new();
    for ((sender, name), row) in SENDERS.iter().zip(hit) {
        let title = format!("{}: bursts of five at 5 %, header hit 95 %", sender.name);
        findings.picture(*name, row.trail.graph(title));
        let points = row.trail.throughput(BIN);
        throughputs.push(draw::series(sender.name, Style::Steps, points));
    }
    let title = "Throughput over time: bursts of five at 5 %, header hit 95 %";
    findings.plot(
        "fig23",
        title,
        (draw::linear("time, s"), draw::linear(&draw::more("acknowledged, kbit/s"))),
        throughputs,
    );
    for (name, header, rows) in [("fig24", 95, hit), ("fig25", 0, read)] {
        let bar = |(number, (sender, row)): (u32, (&(Sender, &str), &Row))| {
            let point = draw::interval(f64::from(number), &row.outcome.seconds, 1.0);
            draw::series(format!("{number} {}", sender.0.name), Style::Marks, vec![point])
        };
        let x = Axis { range: Some((0.5, 3.5)), ..draw::linear("sender") };
        let y = draw::linear(&draw::less("transfer time, s"));
        let title = format!("Bursts of five at 5 %, header hit {header} %");
        let bars = (1..).zip(SENDERS.iter().zip(rows)).map(bar);
        findings.picture(name, draw::figure(title, x, y, bars));
    }
}
