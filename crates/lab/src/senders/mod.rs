//! Compares one of our combinations, the candidate, with the kernel's senders and other senders of
//! ours, and judges it by floors.
//!
//! Each experiment has two forms with the same cases, table and claims. One sends real packets. The
//! other has a name that ends in `-sim` and runs in virtual time: our `rack/bbr`, `rack/cubic` and
//! `rack/reno` replace the kernel's senders. `senders/receiver` has only the real form, because
//! nothing replaces the kernel's receiver; `senders/jitter-sim` only the simulated one, because
//! jitter is exact there alone. `senders/changes` has one more case in virtual time.

pub(crate) mod changes;
pub(crate) mod delay;
pub(crate) mod fairness;
pub(crate) mod goodput;
pub(crate) mod harm;
pub(crate) mod jitter;
pub(crate) mod links;
mod measured;
pub(crate) mod receiver;
pub(crate) mod short;

use std::time::Duration;

use airtcp_recovery::{Combination, Profile};
use airtcp_types::rng::Stream;

use crate::real::{self, BACK, Course, Flow, Tcp};
use crate::{Experiment, Ground, Kind, LabError, Run, feed, theory};
use measured::{Case, Measured, Shown, View};

/// The default candidate.
const CANDIDATE: &str = "rack/bbr3/spike";
/// Our senders beside the candidate; the first is BBRv3 without a judge. Experiments that look for
/// the best sender run all of them, the others run the first.
const OURS: [&str; 5] = ["rack/bbr3", "rack/bbr", BEST_BEFORE[0], BEST_BEFORE[1], "rack/cubic"];
/// Our best senders on lossy links before BBRv3.
const BEST_BEFORE: [&str; 2] = ["rack/westwood", "le/westwood"];
/// The kernel's senders.
const KERNEL: [&str; 3] = ["bbr", "cubic", "reno"];
/// The default length of a run of [`Kind::Candidate`](crate::Kind::Candidate).
pub const LENGTH: Duration = Duration::from_secs(60);
/// The common settings of the forms with real packets.
const REAL: Experiment =
    Experiment { kind: Kind::Candidate, ground: Ground::Real, seeds: 5, ..Experiment::STUDY };

/// Returns the form of `real` in virtual time. The caller sets its name, description, duration and
/// body.
const fn simulated(real: Experiment) -> Experiment {
    Experiment { ground: Ground::Simulated, seeds: 3, ..real }
}

/// A row of the tables.
#[derive(Clone, Debug)]
struct Sender {
    name: String,
    tcp: Tcp,
}

impl Sender {
    fn new(tcp: Tcp, ground: Ground) -> Self {
        Self { name: tcp.name(ground), tcp }
    }

    fn kernel(congestion: &'static str, ground: Ground) -> Self {
        Self::new(Tcp::Kernel(Some(congestion)), ground)
    }
}

/// Returns the candidate.
fn candidate(run: &Run) -> Result<Combination, LabError> {
    Ok(run.candidate.clone().map_or_else(|| CANDIDATE.parse(), Ok)?)
}

/// Returns a sender of ours with the modern profile.
fn modern(combination: Combination, run: &Run) -> Sender {
    Sender::new(Tcp::Ours(combination, Profile::modern()), run.ground)
}

/// Returns the candidate, BBRv3 without a judge, and the kernel's senders. A small run has the
/// candidate, bbr and cubic.
fn senders(run: &Run) -> Result<Vec<Sender>, LabError> {
    list(run, &OURS[..1])
}

/// Returns [`senders`] and all other senders of ours.
fn all_senders(run: &Run) -> Result<Vec<Sender>, LabError> {
    list(run, &OURS)
}

/// Returns every sender once, the candidate first.
fn list(run: &Run, beside: &[&str]) -> Result<Vec<Sender>, LabError> {
    let mut ours = vec![candidate(run)?];
    if !run.is_small {
        for text in beside {
            ours.push(text.parse()?);
        }
    }
    let ours = ours.into_iter().map(|combination| modern(combination, run));
    let kernel = KERNEL.into_iter().map(|name| Sender::kernel(name, run.ground));
    let mut senders: Vec<Sender> = Vec::new();
    for sender in ours.chain(kernel.take(if run.is_small { 2 } else { KERNEL.len() })) {
        if senders.iter().all(|other| other.name != sender.name) {
            senders.push(sender);
        }
    }
    Ok(senders)
}

/// Returns the start and the end of the measurement. The warm-up is at most `warm_up` seconds and
/// at most a third of a run.
fn window(run: &Run, warm_up: u64) -> (Duration, Duration) {
    if run.is_small {
        return real::SMALL;
    }
    let end = run.length.unwrap_or(LENGTH);
    (Duration::from_secs(warm_up).min(end / 3), end)
}

/// Returns the description of a link of `rate` Mbit/s and `rtt` ms, with a queue of `queue`
/// bandwidth-delay products.
fn words(rate: f64, rtt: f64, queue: f64) -> String {
    format!("rate {rate}mbit delay {}ms limit {}", rtt / 2.0, packets(rate, rtt, queue))
}

/// Returns the description of a link of 100 Mbit/s and 20 ms that loses `loss` per cent of the data
/// packets.
fn lossy(queue: f64, loss: f64, seed: u64) -> String {
    format!("{} loss {loss}% only payload seed {seed}", words(100.0, 20.0, queue))
}

/// Returns the number of packets of 1500 bytes in `products` bandwidth-delay products, at least
/// one.
fn packets(rate: f64, rtt: f64, products: f64) -> u64 {
    (products * rate * 1e3 * rtt / 12_000.0).ceil().max(1.0) as u64
}

/// Returns the description of the ACK direction, which drops nothing.
fn back(rtt: f64) -> String {
    format!("rate 100mbit delay {}ms limit 1000", rtt / 2.0)
}

/// Returns a course to Linux. ACKs return over 100 Mbit/s and 10 ms.
fn course(
    flows: Vec<Flow>,
    forth: &str,
    (warm_up, end): (Duration, Duration),
) -> Result<Course, LabError> {
    let (forth, back) = (feed::spec(forth)?, feed::spec(BACK)?);
    Ok(Course { flows, receiver: Tcp::Kernel(None), forth, back, warm_up, end })
}

/// Returns the note for every table that has the kernel's senders.
fn note(run: &Run, times: (Duration, Duration)) -> String {
    let taken = match run.ground {
        Ground::Real => "Runs of the senders alternate; all use the same seeds for losses.",
        Ground::Simulated => "Our rack/bbr, rack/cubic and rack/reno replace the senders of Linux.",
    };
    format!("{} {taken}", counted(run, times))
}

/// Describes the candidate and the time of the measurement.
fn counted(run: &Run, (warm_up, end): (Duration, Duration)) -> String {
    let candidate = candidate(run).map(|c| c.to_string()).unwrap_or_default();
    format!(
        "The candidate is {candidate}. Counted from {:.1} to {:.1} s.",
        warm_up.as_secs_f64(),
        end.as_secs_f64()
    )
}

/// Returns the reason of a claim that does not hold. `shown` is the known cause for the default
/// candidate; the causes for other candidates are unknown.
fn why(run: &Run, shown: Option<&str>) -> String {
    let is_default = candidate(run).is_ok_and(|candidate| candidate.to_string() == CANDIDATE);
    shown.filter(|_| is_default).map_or_else(theory::unknown, str::to_owned)
}

/// Starts every flow at a random time within the first second.
fn staggered(mut flows: Vec<Flow>, seed: u64) -> Vec<Flow> {
    let mut random = Stream::new(seed, 0);
    for flow in &mut flows {
        flow.start = Duration::from_nanos(random.below(1_000_000_000));
    }
    flows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        Run { seeds: 1, ground: Ground::Real, ..Run::default() }
    }

    fn names(senders: Result<Vec<Sender>, LabError>) -> Vec<String> {
        senders.unwrap().into_iter().map(|sender| sender.name).collect()
    }

    #[test]
    fn the_candidate_stands_first_and_every_sender_once() {
        let few = names(senders(&run()));
        assert_eq!(few, [CANDIDATE, "rack/bbr3", "Linux bbr", "Linux cubic", "Linux reno"]);
        let others = ["rack/bbr3", "rack/bbr", "rack/westwood", "le/westwood", "rack/cubic"];
        let real = names(all_senders(&run()));
        assert_eq!((real[0].as_str(), &real[1..6]), (CANDIDATE, &others.map(str::to_owned)[..]));
        assert_eq!(&real[6..], ["Linux bbr", "Linux cubic", "Linux reno"]);
        let ground = Ground::Simulated;
        let named = Run { candidate: "le/westwood".parse().ok(), ground, ..run() };
        assert_eq!(
            names(all_senders(&named)),
            ["le/westwood", "rack/bbr3", "rack/bbr", "rack/westwood", "rack/cubic", "rack/reno"]
        );
    }

    #[test]
    fn a_cause_is_that_of_the_default() {
        let named = |name: &str| Run { candidate: name.parse().ok(), ..run() };
        assert_eq!(why(&run(), Some("jitter")), "jitter");
        assert_eq!(why(&named(CANDIDATE), Some("jitter")), "jitter");
        assert_eq!(why(&named("rack/cubic"), Some("jitter")), theory::unknown());
        assert_eq!(why(&run(), None), theory::unknown());
    }

    #[test]
    fn the_warm_up_is_a_third_of_a_short_run() {
        let seconds = Duration::from_secs;
        assert_eq!(window(&run(), 10), (seconds(10), seconds(60)));
        let short = Run { length: Some(seconds(15)), ..run() };
        assert_eq!(window(&short, 10), (seconds(5), seconds(15)));
    }

    #[test]
    fn a_queue_is_sized_by_rate_and_round_trip() {
        assert_eq!(words(100.0, 20.0, 1.0), "rate 100mbit delay 10ms limit 167");
        assert_eq!([packets(20.0, 600.0, 1.0), packets(1.0, 1.0, 0.25)], [1_000, 1]);
    }

    #[test]
    fn flows_begin_within_a_second_and_as_the_seed_says() {
        let flows = vec![Flow::new(Tcp::Kernel(None)); 3];
        let starts = |seed| -> Vec<Duration> {
            staggered(flows.clone(), seed).iter().map(|flow| flow.start).collect()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
        assert!(starts(1).iter().all(|start| *start < Duration::from_secs(1)));
    }
}
