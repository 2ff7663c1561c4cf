//! Every sender's outcomes, and pictures of them.

use airtcp_recovery::Profile;
use airtcp_trace::figure::{Figure, Point, Style};

use super::course::{Course, Outcome, SENDERS};
use super::unread::Unread;
use crate::{Findings, LabError, Run, draw, theory};

/// What all four senders came to at several points, in the order of [`SENDERS`].
pub(super) struct Sweep {
    pub(super) newreno: Vec<Outcome>,
    pub(super) sack: Vec<Outcome>,
    pub(super) hack: Vec<Outcome>,
    pub(super) both: Vec<Outcome>,
}

impl Sweep {
    pub(super) fn measure(
        run: &Run,
        courses: &[Course],
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<Self, LabError> {
        let mut of = |index: usize| -> Result<Vec<Outcome>, LabError> {
            let sender = &SENDERS[index];
            courses.iter().map(|course| course.measure(run, sender, profile, findings)).collect()
        };
        Ok(Self { newreno: of(0)?, sack: of(1)?, hack: of(2)?, both: of(3)? })
    }

    /// HACK at the same points with every header hit, beside what is here.
    pub(super) fn unread(
        &self,
        run: &Run,
        courses: &[Course],
        profile: &Profile,
        findings: &mut Findings,
    ) -> Result<Unread, LabError> {
        let Self { newreno, sack, hack, .. } = self;
        Unread::measure(run, courses, profile, findings, [newreno, sack, hack])
    }

    pub(super) const fn all(&self) -> [&Vec<Outcome>; 4] {
        [&self.newreno, &self.sack, &self.hack, &self.both]
    }

    /// A row of the table for each of `courses`: the profile, what `point` has of the course, each
    /// sender's kbit/s, and all their time-outs.
    pub(super) fn rows(
        &self,
        courses: &[Course],
        profile: &Profile,
        findings: &mut Findings,
        point: impl Fn(&Course) -> [String; 3],
    ) {
        for (index, course) in courses.iter().enumerate() {
            let of = self.all().map(|outcomes| &outcomes[index]);
            let [a, b, c, d] = of.map(|outcome| theory::show(&outcome.goodput, 1e-3, 2));
            let timeouts = of.map(|outcome| format!("{:.1}", outcome.timeouts.mean)).join(" / ");
            let [x, y, z] = point(course);
            findings.table.row([profile.name.to_owned(), x, y, z, a, b, c, d, timeouts]);
        }
    }

    /// One value of every outcome over `xs`.
    pub(super) fn draw(
        &self,
        title: String,
        [x, y]: [&str; 2],
        xs: &[f64],
        point: impl Fn(f64, &Outcome) -> Point,
    ) -> Figure {
        let points = |outcomes: &Vec<Outcome>| {
            xs.iter().zip(outcomes).map(|(x, outcome)| point(*x, outcome)).collect()
        };
        let series = SENDERS.iter().zip(self.all());
        Figure {
            title,
            x: draw::linear(x),
            y: draw::linear(y),
            series: series
                .map(|(sender, of)| draw::series(sender.name, Style::LineAndMarks, points(of)))
                .collect(),
        }
    }
}

/// Throughput in kbit/s.
pub(super) fn throughput(x: f64, outcome: &Outcome) -> Point {
    draw::interval(x, &outcome.goodput, 1e-3)
}
