//! The findings of an experiment: records, a table, pictures, and its claims with their verdicts.

use std::borrow::Cow;
use std::ops::{Not, RangeInclusive};

use airtcp_sim::Interval;
use airtcp_trace::figure::{Axis, Graph, Series};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::real::{Course, Done};
use crate::study::{Fields, Grid, Runs, Sample};
use crate::theory::{self, Bound};
use crate::{Drawing, LabError, Run, Table, draw, simulate};

/// The findings of an experiment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// A record for each run of each case. Everything else is calculated from the records.
    pub records: Vec<Box<RawValue>>,
    /// The main table.
    pub table: Table,
    /// Pictures with the source's axes.
    pub pictures: Vec<Picture>,
    /// The claims of the source, beside the measured figures.
    pub claims: Vec<Claim>,
    /// Notes for the reader: how the set-up differs from the source's, and why.
    pub notes: Vec<String>,
    /// The scenario file of each case, in the order of the table's rows, if the cases are scenario
    /// files.
    pub scenarios: Vec<String>,
    /// Whether some claims are about figures that a paper prints.
    pub(crate) has_printed: bool,
}

/// A picture and the name of its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file's name without `.svg`.
    pub name: Cow<'static, str>,
    /// The drawing.
    pub graph: Graph,
}

impl Picture {
    /// Returns the file and the title.
    pub(crate) fn drawing(&self) -> Drawing {
        Drawing { file: format!("{}.svg", self.name), title: self.graph.title().to_owned() }
    }
}

/// A measurable statement of the source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The measured quantity.
    pub what: String,
    /// The figure that the source states.
    pub claimed: String,
    /// The figure that we measured.
    pub measured: String,
    /// Whether the claim is beside the source: about a sender or a set-up that the source does not
    /// have. In a self-check: a side result, which cannot fail the check.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub is_beside: bool,
    /// Whether the claim holds.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Claim {
    /// Returns the name of the verdict in tables, with a mark if the claim is beside the source.
    pub fn verdict_name(&self) -> String {
        let name = self.verdict.name();
        if self.is_beside { format!("{name}, beside") } else { name.to_owned() }
    }
}

/// Whether a claim holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "kebab-case")]
pub enum Verdict {
    /// The claim holds.
    Holds,
    /// The claim does not hold, with the reason.
    DoesNotHold(String),
    /// The figures do not decide the claim, with the reason.
    NotComparable(String),
}

impl Verdict {
    /// Returns [`Holds`](Verdict::Holds) if `holds`, and otherwise
    /// [`DoesNotHold`](Verdict::DoesNotHold) with the reason.
    pub fn of(holds: bool, reason: impl FnOnce() -> String) -> Self {
        if holds { Self::Holds } else { Self::DoesNotHold(reason()) }
    }

    /// Combines several verdicts: returns the first that does not hold, or else the first that is
    /// not comparable.
    pub(crate) fn all(of: impl IntoIterator<Item = Self>) -> Self {
        of.into_iter().fold(Self::Holds, |all, one| match (&all, &one) {
            (Self::DoesNotHold(_), _) | (_, Self::Holds) => all,
            (Self::NotComparable(_), Self::NotComparable(_)) => all,
            _ => one,
        })
    }

    /// Returns the name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold(_) => "does not hold",
            Self::NotComparable(_) => "not comparable",
        }
    }

    /// Returns the reason, unless the claim holds.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Holds => None,
            Self::DoesNotHold(reason) | Self::NotComparable(reason) => Some(reason),
        }
    }
}

impl Findings {
    /// Empty findings with a table of these columns; ` | ` separates their names.
    pub fn new(columns: &str) -> Self {
        Self {
            records: Vec::new(),
            table: Table::of(columns.split(" | ").map(str::to_owned).collect()),
            pictures: Vec::new(),
            claims: Vec::new(),
            notes: Vec::new(),
            scenarios: Vec::new(),
            has_printed: false,
        }
    }

    /// Adds a record. A record contains its seed, and wall-clock time only in real experiments.
    ///
    /// # Errors
    ///
    /// The record cannot be encoded as JSON.
    pub fn record(&mut self, record: &impl Serialize) -> Result<(), LabError> {
        self.records.push(to_raw_value(record)?);
        Ok(())
    }

    /// Adds a record of a seed and its measurements.
    ///
    /// # Errors
    ///
    /// None: every value can be encoded as JSON.
    pub(crate) fn record_fields(&mut self, seed: u64, fields: &Fields) -> Result<(), LabError> {
        self.record(&Fields::default().with("seed", seed).and(fields.clone()))
    }

    /// Returns the runs of the case `place` with these seeds, and adds a record of each: the seed,
    /// `place`, and the measurements. If the experiment is judged from records, takes the next ones
    /// instead of calling `runs`: they have to be of this case.
    ///
    /// # Errors
    ///
    /// The error of `runs`, or of the first record of another case.
    pub(crate) fn sample(
        &mut self,
        run: &Run,
        seeds: RangeInclusive<u64>,
        place: &Fields,
        runs: impl FnOnce() -> Result<Vec<Fields>, LabError>,
    ) -> Result<Sample, LabError> {
        if let Some(recorded) = &run.recorded {
            return recorded.take(seeds, [place.iter()]).map(Sample);
        }
        let runs = runs()?.into_iter().map(|fields| place.clone().and(fields));
        let runs: Vec<Fields> = runs.collect();
        for (seed, fields) in seeds.zip(&runs) {
            self.record_fields(seed, fields)?;
        }
        Ok(Sample(runs))
    }

    /// Runs a course until its link is on time, at most three times, and returns the run of the
    /// case `place` with this seed, like [`sample`](Self::sample).
    ///
    /// # Errors
    ///
    /// The testbed or a transfer failed, or the next record is of another case.
    pub(crate) fn transfer(
        &mut self,
        run: &Run,
        seed: u64,
        place: &Fields,
        course: &Course,
        fields: impl Fn(&Done) -> Fields,
    ) -> Result<Fields, LabError> {
        let one = || Ok(vec![fields(&course.run_in_time(run)?)]);
        let Sample(mut runs) = self.sample(run, seed..=seed, place, one)?;
        Ok(runs.pop().unwrap_or_default())
    }

    /// Calls `one` for every seed, on all cores, and returns the runs like
    /// [`sample`](Self::sample).
    ///
    /// # Errors
    ///
    /// The error of the first run that failed, or of the first record of another case.
    pub(crate) fn measure(
        &mut self,
        run: &Run,
        place: &Fields,
        one: impl Fn(u64) -> Result<Fields, LabError> + Sync,
    ) -> Result<Sample, LabError> {
        let all = || simulate::spread(run, run.seeds as usize, |job| one(job as u64 + 1));
        self.sample(run, 1..=run.seeds, place, all)
    }

    /// Adds a claim. In a self-check, a claim that does not hold fails the check.
    pub fn claim(
        &mut self,
        what: impl Into<String>,
        claimed: impl Into<String>,
        measured: impl Into<String>,
        verdict: Verdict,
    ) {
        let (what, claimed, measured) = (what.into(), claimed.into(), measured.into());
        self.claims.push(Claim { what, claimed, measured, is_beside: false, verdict });
    }

    /// Adds a claim about a mean that is shown with this number of decimals. `why` gives the reason
    /// if the claim does not hold.
    pub(crate) fn mean(
        &mut self,
        what: impl Into<String>,
        claimed: impl Into<String>,
        (measured, decimals): (&Interval, usize),
        bound: Bound,
        why: impl FnOnce() -> String,
    ) {
        let shown = theory::show(measured, 1.0, decimals);
        self.claim(what, claimed, shown, bound.verdict(measured, why));
    }

    /// Adds a claim that is beside the source: see [`Claim::is_beside`].
    pub fn claim_beside(
        &mut self,
        what: impl Into<String>,
        claimed: impl Into<String>,
        measured: impl Into<String>,
        verdict: Verdict,
    ) {
        let (what, claimed, measured) = (what.into(), claimed.into(), measured.into());
        self.claims.push(Claim { what, claimed, measured, is_beside: true, verdict });
    }

    /// Adds the claims of `add`, which are beside the source if `is_beside`: see
    /// [`Claim::is_beside`].
    pub(crate) fn beside(&mut self, is_beside: bool, add: impl FnOnce(&mut Self)) {
        let before = self.claims.len();
        add(self);
        self.claims[before..].iter_mut().for_each(|claim| claim.is_beside |= is_beside);
    }

    /// Adds a row for each combination of the values of `axes`. A row has these values and the
    /// means of `fields`, each given as the field, a factor and the number of decimals.
    pub(crate) fn rows(&mut self, grid: &Grid, axes: &[&str], fields: &[(&str, f64, usize)]) {
        for row in grid.all().rows(axes) {
            let place = axes.iter().map(|axis| row.text(axis));
            self.table.add(place.chain(row.cells(fields)).collect());
        }
    }

    /// Adds a note below the table.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a picture.
    pub fn picture(&mut self, name: impl Into<Cow<'static, str>>, graph: impl Into<Graph>) {
        self.pictures.push(Picture { name: name.into(), graph: graph.into() });
    }

    /// Adds a picture of these lines, with its title and its axes.
    pub(crate) fn plot(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        title: impl Into<String>,
        (x, y): (Axis, Axis),
        series: impl IntoIterator<Item = Series>,
    ) {
        self.picture(name, draw::figure(title, x, y, series));
    }

    /// Returns the claims that do not hold.
    pub fn refuted(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| matches!(claim.verdict, Verdict::DoesNotHold(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::study::Axis;

    #[test]
    fn a_grid_has_a_row_for_each_cell_and_a_mean_is_judged() {
        let run = Run { seeds: 3, ..Run::default() };
        let axes = vec![Axis::new("loss", [1.0, 5.0])];
        let grid = Grid::run(&run, axes, |point, seed| {
            Ok(Fields::default().with("rate", 1e6 * (point.number("loss") + seed as f64)))
        });
        let grid = grid.unwrap();
        let mut findings = Findings::new("loss, % | Mbit/s");
        findings.rows(&grid, &["loss"], &[("rate", 1e-6, 1)]);
        assert_eq!(findings.table.rows(), [["1", "3.0 ± 2.5"], ["5", "7.0 ± 2.5"]]);

        let rate = theory::scaled(&grid.all().at("loss", 5.0).mean("rate"), 1e-6);
        for bound in [Bound::Above(4.0), Bound::Below(4.0), Bound::Within(4.0, 8.0)] {
            findings.mean("rate", "claimed", (&rate, 0), bound, || "of the moon".to_owned());
        }
        assert!(findings.claims.iter().all(|claim| claim.measured == "7 ± 2" && !claim.is_beside));
        let verdicts = findings.claims.iter().map(|claim| claim.verdict.name());
        let expected = ["holds", "does not hold", "not comparable"];
        assert!(verdicts.eq(expected));
        assert_eq!(findings.claims[1].verdict.reason(), Some("of the moon"));

        for is_beside in [true, false] {
            findings.beside(is_beside, |findings| {
                findings.claim("rate", "claimed", "1", Verdict::Holds);
            });
        }
        let beside = findings.claims.iter().map(|claim| claim.is_beside);
        assert!(beside.eq([false, false, false, true, false]));
    }
}
