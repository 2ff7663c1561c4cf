//! Every sender's outcomes, and pictures of them.

use airtcp_recovery::Profile;
use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Style};

use super::course::{Course, HACK, HACK_SACK, NEWRENO, Outcome, SACK, SENDERS, Sender};
use super::factor::Factor;
use super::unread::Unread;
use crate::{Findings, LabError, Run, draw, theory};

/// A table for [`Sweep::rows`], whose three columns of the course are these.
pub(super) fn findings(course: &str) -> Findings {
    let senders = "NewReno, kbit/s | SACK | HACK | HACK + SACK | time-outs of each";
    Findings::new(&format!("profile | {course} | {senders}"))
}

/// What all four senders came to at several points.
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

    /// What a sender comes to at the same points, after a change of each course. Courses that are
    /// the same then run once.
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

    /// HACK at the same points with every header hit, beside what is here.
    pub(super) fn unread(&self, findings: &mut Findings) -> Result<Unread, LabError> {
        let all_hit = |course: &Course| Course { header: 100, ..*course };
        let unread = self.beside(&HACK, self.profile, findings, all_hit)?;
        Ok(Unread::of(&unread, [&self.newreno, &self.sack, &self.hack]))
    }

    pub(super) fn is_paper(&self) -> bool {
        self.profile.name == Profile::paper().name
    }

    /// In the order of [`SENDERS`].
    pub(super) const fn all(&self) -> [&Vec<Outcome>; 4] {
        [&self.newreno, &self.sack, &self.hack, &self.both]
    }

    fn of(&self, sender: Sender) -> &[Outcome] {
        let place = SENDERS.iter().position(|known| known.name == sender.name);
        self.all()[place.expect("one of the senders")]
    }

    /// Claims that a sender is faster than another.
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

    /// A row of the table for each course: the profile, what `point` has of the course, each
    /// sender's kbit/s, and all their time-outs.
    pub(super) fn rows(&self, findings: &mut Findings, point: impl Fn(&Course) -> [String; 3]) {
        for (index, course) in self.courses.iter().enumerate() {
            let of = self.all().map(|outcomes| &outcomes[index]);
            let [a, b, c, d] = of.map(|outcome| theory::show(&outcome.goodput, 1e-3, 2));
            let timeouts = of.map(|outcome| format!("{:.1}", outcome.timeouts.mean)).join(" / ");
            let [x, y, z] = point(course);
            findings.table.row([self.profile.name.to_owned(), x, y, z, a, b, c, d, timeouts]);
        }
    }

    /// One value of every outcome, with its unit, over one of the courses.
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

    /// The throughput in kbit/s.
    pub(super) fn throughput(&self, title: String, x: &str, at: impl Fn(&Course) -> f64) -> Figure {
        self.draw(title, [x, "throughput, kbit/s"], at, (|outcome| &outcome.goodput, 1e-3))
    }
}
