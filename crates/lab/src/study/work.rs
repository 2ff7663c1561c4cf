//! Runs a user's experiment.

use airtcp_link::Trace;
use airtcp_sim::toml::{Source, Template};
use airtcp_sim::{Cancel, Interval, Scenario, Simulation};
use airtcp_trace::figure::{Axis as PictureAxis, Figure, Scale, Series};

use super::grid::points;
use super::measure::Asked;
use super::{Axis, Fields, Grid, Point, Runs as _, Slice, Value, file};
use crate::report::Heading;
use crate::theory::Bound;
use crate::{Findings, Ground, Kind, LabError, Plan, Report, Run, Table, Verdict, theory};

/// An experiment that is data: axes, a scenario, measures, claims and pictures.
///
/// ```
/// use airtcp_lab::{Plan, Study};
///
/// let text = r#"
///     measures = ["goodput", "timeouts"]
///     [[axis]]
///     name = "loss"
///     values = [0.1, 5]
///     [scenario]
///     duration = "2s"
///     wire = ["rate 10mbit delay 10ms loss {loss}% limit 50"]
///     flow = [{ strategies = "sack/reno" }]
///     [[claim]]
///     measure = "goodput"
///     of = { loss = 0.1 }
///     over = { loss = 5 }
///     above = 1
/// "#;
/// let study = Study::read("mine.toml", text, |_| Err("no traces here".into()))?;
/// let report = study.run(&Plan { seeds: Some(2), ..Plan::default() })?;
/// assert_eq!(report.findings.records.len(), 4);
/// assert_eq!(report.findings.claims.len(), 1);
/// # Ok::<(), airtcp_lab::LabError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Study {
    /// The name of the experiment file.
    file: String,
    design: Design,
    /// One for each point.
    scenarios: Vec<Scenario>,
    /// The scenarios as scenario files.
    texts: Vec<String>,
}

/// The content of an experiment file, except the scenarios of its points.
#[derive(Clone, Debug)]
pub(crate) struct Design {
    pub(crate) heading: Heading,
    pub(crate) seeds: u64,
    pub(crate) axes: Vec<Axis>,
    /// One for each axis.
    pub(crate) labels: Vec<String>,
    /// The measures in the table.
    pub(crate) measures: Vec<Asked>,
    pub(super) claims: Vec<Claimed>,
    pub(crate) pictures: Vec<Drawn>,
}

/// Values of some axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Where(pub(crate) Vec<(String, Value)>);

impl Where {
    pub(crate) fn has(&self, axis: &str) -> bool {
        self.0.iter().any(|(name, _)| name == axis)
    }
}

/// A claim about a measure, or about the ratio of a measure in two cells.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    pub(super) what: Option<String>,
    pub(super) asked: Asked,
    pub(super) of: Where,
    /// The axis values of the cell in the denominator that differ from those in the numerator.
    pub(super) over: Option<Where>,
    pub(super) bound: Bound,
    /// The reason if the claim does not hold; empty if the file has none.
    pub(super) why: String,
}

/// A picture.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) x: String,
    pub(crate) y: Asked,
    pub(crate) series: Option<String>,
    pub(crate) at: Where,
    pub(crate) scales: [Scale; 2],
}

impl Study {
    /// Reads an experiment from `text`. `name` identifies it in errors, and in the report if the
    /// text has no name. `load` returns the packet-delivery traces that links name.
    ///
    /// # Errors
    ///
    /// The first mistake, with its line and column.
    pub fn read(
        name: &str,
        text: &str,
        mut load: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<Self, LabError> {
        let source = Source { name, text, settings: &[] };
        let design = Design::read(&source)?;
        let template = source.template("scenario")?;
        let cases = points(&design.axes);
        let cases = cases.iter().map(|point| design.case(&source, &template, point, &mut load));
        let cases: Vec<_> = cases.collect::<Result<_, _>>()?;
        let (scenarios, texts) = cases.into_iter().unzip();
        Ok(Self { file: name.to_owned(), design, scenarios, texts })
    }

    /// Returns the experiment's name, which is also the folder of its results.
    pub fn name(&self) -> &str {
        &self.design.heading.name
    }

    /// Runs every point with every seed, and judges the claims.
    ///
    /// # Errors
    ///
    /// A scenario is invalid.
    pub fn run(&self, plan: &Plan) -> Result<Report, LabError> {
        let Design { heading, seeds, .. } = &self.design;
        let command = plan.command(&self.file);
        Run::report(plan, heading.clone(), (command, *seeds), |run| self.findings(run))
    }

    fn findings(&self, run: &Run) -> Result<Findings, LabError> {
        let Design { axes, claims, pictures, .. } = &self.design;
        let asked = self.design.asked();
        let grid = Grid::run(run, axes.clone(), |point, seed| {
            once(self.scenarios[point.index].clone(), seed, &asked, &Cancel::default())
        })?;
        let mut findings = self.design.table(&grid);
        let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        grid.record(&mut findings, &names)?;
        for claim in claims {
            claim.judge(&mut findings, axes, &grid.all());
        }
        for picture in pictures {
            let series = picture.series(&grid);
            findings.picture(picture.name.clone(), self.design.figure(picture, series));
        }
        if !self.scenarios.iter().any(Scenario::is_random) {
            let note = "Nothing in the scenario is random: every seed gives the same, and intervals say nothing. Random loss, \
                        jitter or pauses make it so.";
            findings.notes.push(note.to_owned());
        }
        findings.scenarios.clone_from(&self.texts);
        Ok(findings)
    }
}

/// Runs a scenario with a seed, and returns its measurements.
///
/// # Errors
///
/// The scenario is invalid, or the run is cancelled.
pub(crate) fn once(
    scenario: Scenario,
    seed: u64,
    asked: &[Asked],
    cancel: &Cancel,
) -> Result<Fields, LabError> {
    let samples = scenario.samples || asked.iter().any(|asked| asked.measure.needs_samples);
    let scenario = Scenario { seed, samples, ..scenario };
    let warm_up = scenario.warm_up.as_secs_f64();
    let result = Simulation::new(&scenario)?.with_cancel(cancel).run(None)?;
    let add = |fields: Fields, asked: &Asked| fields.with(asked.name(), asked.of(&result, warm_up));
    Ok(asked.iter().fold(Fields::default(), add))
}

impl Design {
    /// A design without axes and with all measures.
    pub(crate) fn of_scenario(name: &str, seeds: u64) -> Self {
        let [name, what, source] = [name; 3].map(str::to_owned);
        let (kind, ground) = (Kind::Study, Ground::Simulated);
        Self {
            heading: Heading { name, what, source, kind, ground },
            seeds,
            axes: Vec::new(),
            labels: Vec::new(),
            measures: Asked::every(),
            claims: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The first mistake, with its line and column.
    pub(crate) fn read(source: &Source<'_>) -> Result<Self, LabError> {
        file::read(source)
    }

    /// Returns the scenario of a point, and its scenario file.
    ///
    /// # Errors
    ///
    /// The scenario is invalid, or a measure names a flow that it does not have.
    pub(crate) fn case(
        &self,
        source: &Source<'_>,
        template: &Template<'_>,
        point: &Point,
        load: impl FnMut(&str) -> Result<Trace, String>,
    ) -> Result<(Scenario, String), LabError> {
        let values: Vec<(String, String)> =
            point.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect();
        let (scenario, text) = template.fill(&values, load)?;
        self.asked().iter().try_for_each(|asked| asked.check(source, &scenario))?;
        Ok((scenario, text))
    }

    /// Returns all measures of the table, the claims and the pictures, without duplicates.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        let claims = self.claims.iter().map(|claim| &claim.asked);
        let pictures = self.pictures.iter().map(|picture| &picture.y);
        let mut all: Vec<Asked> = Vec::new();
        for asked in self.measures.iter().chain(claims).chain(pictures) {
            if all.iter().all(|known| known.name() != asked.name()) {
                all.push(asked.clone());
            }
        }
        all
    }

    fn table(&self, grid: &Grid) -> Findings {
        let mut findings = Findings::new("");
        let measures = self.measures.iter().map(Asked::label);
        findings.table = Table::of(self.labels.iter().cloned().chain(measures).collect());
        let names: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        for row in grid.all().rows(&names) {
            let values = names.iter().map(|axis| row.text(axis));
            let measured = self.measures.iter().map(|asked| asked.show(&row.mean(&asked.name())));
            findings.table.add(values.chain(measured).collect());
        }
        findings
    }

    /// Returns the picture with these lines.
    pub(crate) fn figure(&self, picture: &Drawn, series: Vec<Series>) -> Figure {
        let Drawn { title, x, y, scales, .. } = picture;
        let label = self.axes.iter().position(|axis| axis.name == *x).map(|at| &self.labels[at]);
        let axis = |label: String, scale| PictureAxis { label, scale, range: None };
        Figure {
            title: title.clone().unwrap_or_else(|| self.heading.what.clone()),
            x: axis(label.unwrap_or(x).clone(), scales[0]),
            y: axis(y.label(), scales[1]),
            series,
        }
    }
}

impl Drawn {
    /// Returns the lines of the picture.
    fn series(&self, grid: &Grid) -> Vec<Series> {
        let Self { x, y, series, at, .. } = self;
        let part = at.0.iter().fold(grid.all(), |part, (axis, value)| part.at(axis, value.clone()));
        let line = |name: String, part: &Slice<'_>| {
            part.line(name, x, y.measure.scale, |cell| cell.mean(&y.name()))
        };
        match series {
            Some(axis) => part.each(axis).map(|part| line(part.text(axis), &part)).collect(),
            None => vec![line(y.name(), &part)],
        }
    }
}

impl Claimed {
    /// Adds a claim for each combination of the axes that the claim leaves open.
    fn judge(&self, findings: &mut Findings, axes: &[Axis], all: &Slice<'_>) {
        let open: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        let open: Vec<&str> = open.into_iter().filter(|axis| !self.of.has(axis)).collect();
        let field = self.asked.name();
        let pick = |place: &[(String, Value)]| {
            place.iter().fold(all.clone(), |part, (axis, value)| part.at(axis, value.clone()))
        };
        for row in pick(&self.of.0).rows(&open) {
            let here = axes.iter().map(|axis| (axis.name.clone(), row.value(&axis.name).clone()));
            let here: Vec<(String, Value)> = here.collect();
            let (measured, unit) = match &self.over {
                None => (
                    theory::scaled(&row.mean(&field), self.asked.measure.scale),
                    self.asked.measure.unit,
                ),
                Some(over) => {
                    let mut there = here.clone();
                    for (axis, value) in &mut there {
                        if let Some((_, other)) = over.0.iter().find(|(name, _)| name == axis) {
                            *value = other.clone();
                        }
                    }
                    (ratio(&row, &pick(&there), &field), "")
                }
            };
            let decimals = if self.over.is_some() { 3 } else { self.asked.measure.decimals };
            let shown = theory::show(&measured, 1.0, decimals);
            let with_unit =
                |figure: String| if unit.is_empty() { figure } else { format!("{figure} {unit}") };
            findings.claim(
                self.what(&here, &open),
                with_unit(self.bound.claimed()),
                if measured.n == 0 { "0 runs".to_owned() } else { with_unit(shown) },
                self.verdict(&measured),
            );
        }
    }

    fn what(&self, here: &[(String, Value)], open: &[&str]) -> String {
        let places = |of: &mut dyn Iterator<Item = &(String, Value)>| {
            of.map(|(axis, value)| format!("{axis} {value}")).collect::<Vec<_>>().join(", ")
        };
        if let Some(what) = &self.what {
            let open = places(&mut here.iter().filter(|(axis, _)| open.contains(&axis.as_str())));
            return if open.is_empty() { what.clone() } else { format!("{what}, {open}") };
        }
        let here = places(&mut here.iter());
        let mut what = self.asked.name();
        if !here.is_empty() {
            what = format!("{what} at {here}");
        }
        match &self.over {
            Some(over) => format!("{what}, over {}", places(&mut over.0.iter())),
            None => what,
        }
    }

    fn verdict(&self, measured: &Interval) -> Verdict {
        if measured.n == 0 {
            let what = self.asked.name();
            return Verdict::NotComparable(format!("no run has a figure for {what}"));
        }
        let why = || self.why.split_whitespace().collect::<Vec<_>>().join(" ");
        self.bound.verdict(measured, why)
    }
}

/// Returns the ratio of two cells, over the seeds that have a figure in both.
fn ratio(own: &Slice<'_>, other: &Slice<'_>, field: &str) -> Interval {
    let pairs = own.runs().zip(other.runs());
    let pairs = pairs.filter_map(|(own, other)| own.number(field).zip(other.number(field)));
    let (own, other): (Vec<f64>, Vec<f64>) = pairs.unzip();
    if other.iter().sum::<f64>() == 0.0 {
        Interval::default()
    } else {
        theory::paired(&own, &other)
    }
}
