//! The rows of Table 16, and their claims.

use super::congested::{AS_DESCRIBED, CHANGES, Change, NS2, RANDOM_WAIT};
use super::table16::Case;
use crate::paper::{Printed, TOLERANCE};
use crate::prelude::*;

/// The printed figures for each scenario's kinds of flows: with DCR (`true`) and without.
pub(super) const PRINTED: [(u32, bool, [f64; 4]); 4] = [
    (1, true, [0.801, 2.72, 0.0, 44.0]),
    (2, false, [0.801, 2.27, 0.009, 44.0]),
    (3, true, [0.748, 2.77, 0.0, 45.0]),
    (3, false, [0.852, 2.13, 0.02, 45.0]),
];
/// The quantities of the printed figures, and their decimals.
pub(super) const COLUMNS: [(&str, usize); 4] = [
    ("goodput of a flow, Mbit/s", 3),
    ("dropped packets, %", 2),
    ("time-outs per segment, %", 3),
    ("mean queue, packets", 0),
];

/// One kind of flows of a case.
pub(super) struct Row<'a> {
    pub(super) case: &'a Case,
    pub(super) combination: &'a str,
    columns: [Interval; 4],
    rtt: Interval,
    jain: Interval,
}

impl<'a> Row<'a> {
    pub(super) fn of(case: &'a Case, combination: &'a str, sample: &Sample) -> Self {
        let goodput = |run: &Fields| {
            let goodputs = run.list("goodputs");
            Some(goodputs.iter().sum::<f64>() / goodputs.len().max(1) as f64 / 1e6)
        };
        let share = |field: &'static str| {
            move |run: &Fields| Some(run.number(field)? / run.number("segments")?.max(1.0) * 100.0)
        };
        let columns = [
            sample.of(goodput),
            sample.of(share("dropped")),
            sample.of(share("timeouts")),
            sample.values("queue"),
        ];
        let columns = columns.map(|values| Interval::of(&values));
        let [rtt, jain] = ["rtt", "jain"].map(|field| sample.mean(field));
        Self { case, combination, columns, rtt, jain }
    }

    fn show(&self, column: usize) -> String {
        theory::show(&self.columns[column], 1.0, COLUMNS[column].1)
    }

    pub(super) fn report(&self, findings: &mut Findings) {
        let [a, b, c, d] = std::array::from_fn(|column| self.show(column));
        findings.table.row([
            self.case.scenario.to_string(),
            self.combination.to_owned(),
            self.case.profile.name.to_owned(),
            self.case.setup.name.to_owned(),
            a,
            b,
            c,
            d,
            theory::show(&self.rtt, 1e3, 1),
            theory::show(&self.jain, 1.0, 3),
        ]);
    }

    /// Returns whether the row is compared with the paper: not our profile, and not a change that
    /// exists to isolate its effect.
    pub(super) fn is_judged(&self) -> bool {
        let is_change = |(setup, _): &Change| *setup == self.case.setup;
        self.case.profile.name != Profile::modern().name && !CHANGES.iter().any(is_change)
    }

    /// Returns the row that has only the random wait in addition to the set-up as described.
    fn at_random<'b>(&self, rows: &'b [Self]) -> Option<&'b Self> {
        let paper = Profile::paper().name;
        rows.iter().find(|other| {
            (other.case.setup, other.case.profile.name) == (RANDOM_WAIT, paper)
                && other.combination == self.combination
                && (other.case.scenario, other.case.kinds) == (self.case.scenario, self.case.kinds)
        })
    }

    /// Adds claims that compare the row's figures with the paper's.
    pub(super) fn judge(&self, findings: &mut Findings, rows: &[Self]) {
        let Self { case, combination, columns, .. } = self;
        let waits = combination.contains("dcr");
        let printed = PRINTED.iter().find(|(n, w, _)| *n == case.scenario && *w == waits);
        let spoiled = self.spoiled(rows);
        for (column, (what, decimals)) in COLUMNS.into_iter().enumerate() {
            let Some((_, _, figures)) = printed else { continue };
            let (setup, profile) = (case.setup.name, case.profile.name);
            let of = format!("scenario {}, {combination}, {setup}, {profile}", case.scenario);
            let printed = Printed { what, figure: figures[column], decimals };
            let why = || self.why(column, figures[column], rows);
            if let Some(spoiled) = spoiled.clone() {
                let verdict = Verdict::NotComparable(spoiled);
                findings.printed_as(&printed, &of, &columns[column], verdict);
            } else if figures[column] == 0.0 {
                findings.claim(
                    format!("{what}, {of}"),
                    "0.0, with one decimal in print (below 0.05)",
                    self.show(column),
                    theory::below(&columns[column], 0.05, why),
                );
            } else {
                findings.printed(&printed, &of, &columns[column], &why());
            }
        }
    }

    /// Returns the reason why a row without random waits decides nothing, if its flows keep in step
    /// with the queue: the random wait alone makes their shares more even.
    fn spoiled(&self, rows: &[Self]) -> Option<String> {
        let random = self.at_random(rows).filter(|_| self.case.setup == AS_DESCRIBED)?;
        let by = theory::difference(&self.jain, &random.jain);
        let [own, even] = [self, random].map(|row| theory::show(&row.jain, 1.0, 3));
        (by.bounds().1 < 0.0).then(|| {
            format!(
                "flows over access links as fast as the bottleneck keep in step with its queue: Jain's index is {own}, and \
                 {even} with random waits before the bottleneck and everything else equal; the paper does not say how it avoids that"
            )
        })
    }

    fn why(&self, column: usize, printed: f64, rows: &[Self]) -> String {
        match (self.at_random(rows), self.case.scenario) {
            (Some(paper), 2) => paper.isolated(column, printed, rows),
            (Some(paper), _) if self.case.setup == NS2 => format!(
                "with our own sender and a queue longer by one it is {}; for single differences, see scenario 2",
                paper.show(column)
            ),
            _ => "single differences were only tried for flows without DCR: see scenario 2"
                .to_owned(),
        }
    }

    /// Describes the effect of every change of one thing on a figure of this row.
    fn isolated(&self, column: usize, printed: f64, rows: &[Self]) -> String {
        let is_change = |row: &&Self| CHANGES.iter().any(|(setup, _)| *setup == row.case.setup);
        let (mut alike, mut others, mut is_reached) = (Vec::new(), Vec::new(), false);
        for row in rows.iter().filter(is_change) {
            let figure = row.columns[column];
            let by = theory::difference(&figure, &self.columns[column]);
            let shown = format!("{} ({})", row.case.setup.name, row.show(column));
            let differs = by.bounds().0 > 0.0 || by.bounds().1 < 0.0;
            if differs { &mut others } else { &mut alike }.push(shown);
            is_reached |= differs && (figure.mean / printed - 1.0).abs() <= TOLERANCE;
        }
        let list = |of: Vec<String>| if of.is_empty() { "none".to_owned() } else { of.join(", ") };
        format!(
            "one change at a time from the profile paper with random waits ({}): no significant difference by {}; a difference by {}; {}",
            self.show(column),
            list(alike),
            list(others),
            match is_reached {
                true => "one of these alone brings it within a tenth of the paper's",
                false => "none of these alone brings it within a tenth of the paper's",
            }
        )
    }
}
