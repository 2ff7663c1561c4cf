//! The outcomes of all senders at several points, and their pictures.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, HACK, HACK_SACK, NEWRENO, Outcome, SACK, SENDERS, Sender, is_papers};
use super::factor::Factor;
use super::unread::Unread;
use crate::{Findings, LabError, Run, draw, theory};

/// Creates the findings with a table for [`Sweep::rows`]. `course` names its three columns for the
/// course.
pub(super) fn findings(course: &str) -> Findings {
    let senders = "NewReno, kbit/s | SACK | HACK | HACK + SACK | time-outs of each";
    Findings::new(&format!("profile | {course} | {senders}"))
}

/// The outcomes of all four senders at several points.
pub(super) struct Sweep<'a> {
    run: &'a Run,
    pub(super) courses: Vec<Course>,
    pub(super) profile: &'a Profile,
    pub(super) newreno: Vec<Outcome>,
    pub(super) sack: Vec<Outcome>,
    pub(super) hack: Vec<Outcome>,
    pub(super) both: Vec<Outcome>,
}

impl<'a> Sweep<'a> {
    pub(super) fn measure(
        run: &'a Run,
        courses: Vec<Course>,
        profile: &'a Profile,
        findings: &mut Findings,
    ) -> Result<Self, LabError> {
        let [newreno, sack, hack, both] = [const { Vec::new() }; 4];
        let mut sweep = Self { run, courses, profile, newreno, sack, hack, both };
        sweep.newreno = sweep.beside(&NEWRENO, profile, findings, Clone::clone)?;
        sweep.sack = sweep.beside(&SACK, profile, findings, Clone::clone)?;
        sweep.hack = sweep.beside(&HACK, profile, findings, Clone::clone)?;
        sweep.both = sweep.beside(&HACK_SACK, profile, findings, Clone::clone)?;
        Ok(sweep)
    }

    /// Runs a sender at the same points after `change` of each course. Courses that become equal
    /// run once.
    pub(super) fn beside(
        &self,
        sender: &Sender,
        profile: &Profile,
        findings: &mut Findings,
        change: impl Fn(&Course) -> Course,
    ) -> Result<Vec<Outcome>, LabError> {
        let mut known: Vec<(Course, Outcome)> = Vec::new();
        for course in self.courses.iter().map(change) {
            let outcome = match known.iter().find(|(of, _)| *of == course) {
                Some((_, outcome)) => outcome.clone(),
                None => course.measure(self.run, sender, profile, findings)?,
            };
            known.push((course, outcome));
        }
        Ok(known.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Compares HACK at the same points with every header corrupted with the outcomes here.
    pub(super) fn unread(&self, findings: &mut Findings) -> Result<Unread, LabError> {
        let all_hit = |course: &Course| Course { header: 100, ..*course };
        let unread = self.beside(&HACK, self.profile, findings, all_hit)?;
        Ok(Unread::of(&unread, [&self.newreno, &self.sack, &self.hack]))
    }

    pub(super) fn is_papers(&self) -> bool {
        is_papers(self.profile)
    }

    /// Returns the outcomes in the order of [`SENDERS`].
    pub(super) const fn all(&self) -> [&Vec<Outcome>; 4] {
        [&self.newreno, &self.sack, &self.hack, &self.both]
    }

    fn of(&self, sender: Sender) -> &[Outcome] {
        let place = SENDERS.iter().position(|known| known.name == sender.name);
        self.all()[place.expect("one of the senders")]
    }

    /// Claims that the first sender is faster than the second.
    pub(super) fn claim_above(
        &self,
        findings: &mut Findings,
        [own, other]: [Sender; 2],
        place: &str,
        why: &str,
    ) {
        let what = format!("{} over {}, {place}, {}", own.name, other.name, self.profile.name);
        Factor::of(self.of(own), self.of(other)).claim_above(findings, what, why);
    }

    /// Adds a row to the table for each course: the profile, the values that `point` returns for
    /// the course, the goodput of each sender in kbit/s, and their time-outs.
    pub(super) fn rows(&self, findings: &mut Findings, point: impl Fn(&Course) -> [String; 3]) {
        for (index, course) in self.courses.iter().enumerate() {
            let of = self.all().map(|outcomes| &outcomes[index]);
            let [a, b, c, d] = of.map(|outcome| theory::show(&outcome.goodput, 1e-3, 2));
            let timeouts = of.map(|outcome| format!("{:.1}", outcome.timeouts.mean)).join(" / ");
            let [x, y, z] = point(course);
            findings.table.row([self.profile.name.to_owned(), x, y, z, a, b, c, d, timeouts]);
        }
    }

    /// Draws one value of every outcome, multiplied by its unit, over a value of the courses.
    pub(super) fn draw(
        &self,
        title: String,
        [x, y]: [&str; 2],
        at: impl Fn(&Course) -> f64,
        (value, unit): (fn(&Outcome) -> &Interval, f64),
    ) -> Figure {
        let points = |outcomes: &Vec<Outcome>| {
            let points = self.courses.iter().zip(outcomes);
            points.map(|(course, of)| draw::interval(at(course), value(of), unit)).collect()
        };
        let series = SENDERS.iter().zip(self.all());
        let series =
            series.map(|(sender, of)| draw::series(sender.name, Style::LineAndMarks, points(of)));
        draw::figure(title, draw::linear(x), draw::linear(y), series)
    }

    /// Draws the throughput in kbit/s.
    pub(super) fn throughput(&self, title: String, x: &str, at: impl Fn(&Course) -> f64) -> Figure {
        self.draw(
            title,
            [x, &draw::more("throughput, kbit/s")],
            at,
            (|outcome| &outcome.goodput, 1e-3),
        )
    }
}
