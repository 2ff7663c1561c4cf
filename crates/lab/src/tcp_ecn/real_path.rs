//! A path of Linux, a wire, a base station with its radio, and a mobile, with real packets.

use std::sync::{Arc, Mutex};

use airtcp_basestation::{Policy, Station, StationConfig};
use airtcp_link::{Arq, Link, RadioSpec};
use airtcp_stack::HostConfig;
use airtcp_stack::tcp::MarkAware;
use airtcp_testbed::dumbbell::{Dumbbell, Host, Plan};
use airtcp_types::{Chain, Observer};

use crate::prelude::*;

/// The wire between the fixed host and the base station, in each direction.
pub(super) const WIRE: &str = "rate 100mbit delay 20ms limit 1000";
/// The maximum lateness, in seconds: a tenth of the round-trip time. If more than one packet in a
/// hundred is later, the path differs from its description.
const LATE: f64 = 0.004;
/// The maximum number of runs until the path is on time.
const TRIES: u32 = 3;
/// The number of simultaneous paths. A radio carries a few hundred packets per second.
const LANES: usize = 16;

/// The nodes between the hosts.
pub(super) type Middle = Chain<Link, Station>;

/// The TCP implementation of the mobile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mobile {
    Linux,
    /// Our stack, which withholds duplicate ACKs if the base station marks packets.
    Ours,
}

impl Mobile {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Ours => "ours",
        }
    }
}

/// The path that a kernel sends over.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) radio: RadioSpec,
    pub(super) arq: Arq,
    pub(super) policy: Policy,
    pub(super) mobile: Mobile,
    /// Whether SACK and timestamps are off.
    pub(super) is_bare: bool,
}

impl Path {
    /// Builds the path; `observer` sees the hosts' packets.
    ///
    /// # Errors
    ///
    /// [`LabError::Station`] if the policy does not suit the ARQ; [`LabError::Testbed`].
    pub(super) fn build(
        &self,
        observer: Option<Arc<Mutex<dyn Observer + Send>>>,
    ) -> Result<Dumbbell<Middle>, LabError> {
        let Self { radio, arq, policy, mobile, is_bare } = self.clone();
        let station = StationConfig { radio, arq, policy, ..StationConfig::default() };
        let wire = feed::spec(WIRE)?;
        let middle = Chain::new(Link::new(&wire, &wire)?, Station::new(&station)?);
        let mobile = match mobile {
            Mobile::Linux => Host::Kernel,
            Mobile::Ours => {
                let mut config = HostConfig::new([]);
                config.tcp.sack = !is_bare;
                config.tcp.timestamps = !is_bare;
                config.tcp.mark_aware = (policy == Policy::TcpEcn).then(MarkAware::default);
                Host::Stack(Box::new(config))
            }
        };
        // Only packets are observed.
        let mut plan = Plan::over(Host::Kernel, middle, mobile, |_, _| {});
        plan.observer = observer;
        let dumbbell = Dumbbell::build(plan)?;
        if is_bare {
            for end in [dumbbell.left(), dumbbell.right()] {
                for key in ["net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps"] {
                    end.namespace().set_sysctl(key, "0")?;
                }
            }
        }
        Ok(dumbbell)
    }

    /// Returns the maximum payload that fits in the air time, with an ACK for every second segment,
    /// in bit/s.
    pub(super) fn bound(&self) -> f64 {
        let (payload, ack) = if self.is_bare { (1_460, 40) } else { (1_448, 52) };
        self.radio.bound_with(self.arq, payload, 1_500, ack, 2).bits_per_sec() as f64
    }
}

/// Returns whether a path was on time. `lateness` is the 99th percentile, in seconds.
pub(super) fn is_in_time(lateness: f64) -> bool {
    lateness <= LATE
}

/// Repeats `run`, up to three times, until the path is on time. Returns the result of the run that
/// was least late.
///
/// # Errors
///
/// An error of `run`.
pub(super) fn in_time<R>(
    run: impl Fn() -> Result<R, LabError>,
    lateness: impl Fn(&R) -> f64,
) -> Result<R, LabError> {
    let mut best = run()?;
    for _ in 1..TRIES {
        if is_in_time(lateness(&best)) {
            break;
        }
        let again = run()?;
        if lateness(&again) < lateness(&best) {
            best = again;
        }
    }
    Ok(best)
}

/// Parses a radio's description.
///
/// # Errors
///
/// [`LabError::Spec`] if the description is invalid.
pub(super) fn radio(text: &str) -> Result<RadioSpec, LabError> {
    text.parse().map_err(|source| LabError::Spec { text: text.to_owned(), source })
}

/// Measures every case with every seed, several runs at a time and each until its path is on time,
/// like [`Findings::sample`].
///
/// # Errors
///
/// The error of the first run that failed, or of the first record of another case.
pub(super) fn measure<T: Sync>(
    run: &Run,
    findings: &mut Findings,
    cases: &[T],
    place: impl Fn(&T) -> Fields,
    one: impl Fn(&T, u64) -> Result<Fields, LabError> + Sync,
) -> Result<Vec<Sample>, LabError> {
    let jobs = cases.iter().flat_map(|case| (1..=run.seeds).map(move |seed| (case, seed)));
    let jobs: Vec<_> = jobs.collect();
    let runs = match run.recorded {
        Some(_) => Vec::new(),
        None => side_by_side(run, &jobs, |(case, seed)| in_time(|| one(case, *seed), lateness))?,
    };
    let mut runs = runs.into_iter();
    let mut of = |case| {
        let runs = || Ok(runs.by_ref().take(run.seeds as usize).collect());
        findings.sample(run, 1..=run.seeds, &place(case), runs)
    };
    cases.iter().map(&mut of).collect()
}

/// Returns the 99th percentile of the lateness of a run's packets, in seconds.
pub(super) fn lateness(run: &Fields) -> f64 {
    run.number("lateness").unwrap_or_default()
}

/// Returns the runs whose path was on time: a late path differs from its description.
pub(super) fn timely(of: &Sample) -> Sample {
    Sample(of.runs().filter(|run| is_in_time(lateness(run))).cloned().collect())
}

/// Calls `work` for each item, several at a time, and counts each as a run. The results are in the
/// order of the items.
///
/// # Errors
///
/// The error of the first item that failed.
pub(super) fn side_by_side<T: Sync, R: Send>(
    run: &Run,
    items: &[T],
    work: impl Fn(&T) -> Result<R, LabError> + Sync,
) -> Result<Vec<R>, LabError> {
    run.may_run()?;
    simulate::on_threads(LANES, items.len(), |job| work(&items[job]).inspect(|_| run.done.add()))
}
