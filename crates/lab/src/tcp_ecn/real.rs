//! Linux over a base station's radio with each policy, with real packets.

use std::sync::{Arc, Mutex};

use airtcp_basestation::Policy;
use airtcp_basestation::station::Status;
use airtcp_link::{Arq, Way};
use airtcp_testbed::{Bulk, Bulked};
use airtcp_types::Observer;

use super::real_path::{Mobile, Path, measure, radio, timely};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-ecn/real",
    what: "Real packets from Linux over a radio: ARQ modes and policies",
    source: "TCP-ECN 8.3: the base station and the mobile between a Linux host and a radio",
    ground: Ground::Real,
    seconds: 920,
    seeds: 3,
    body,
    ..Experiment::STUDY
};

/// The warm-up: slow start overflows the radio's queue, and the sender needs time to recover.
const WARM_UP: Duration = Duration::from_secs(3);
/// The warm-up without SACK: the sender repairs one segment per round trip, which the queue extends
/// to 0.15 s.
pub(super) const BARE_WARM_UP: Duration = Duration::from_secs(10);
const TIME: Duration = Duration::from_secs(5);
pub(super) const SMALL: (Duration, Duration) =
    (Duration::from_millis(300), Duration::from_millis(700));

const SENDERS: [&str; 3] = ["cubic", "reno", "bbr"];
pub(super) const POLICIES: [Policy; 3] = [Policy::Plain, Policy::Snoop, Policy::TcpEcn];
/// The per cent of data frames with errors.
const ERRORS: [u32; 4] = [0, 5, 10, 20];
/// Radios on which frames overtake each other, or are lost after all tries.
pub(super) const ROUGH: [(&str, Arq); 6] = [
    ("error 40% tries 4", Arq::MacLink),
    ("error 20% tries 2", Arq::MacLink),
    ("error 30% tries 2", Arq::MacLink),
    ("error 40% tries 2", Arq::MacLink),
    ("error 20% delay 10ms", Arq::Head),
    ("error 10% delay 20ms", Arq::Head),
];

/// A radio and its ARQ.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) radio: String,
    pub(super) arq: Arq,
    /// Whether SACK and timestamps are off.
    pub(super) is_bare: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) point: Point,
    pub(super) sender: &'static str,
    pub(super) mobile: Mobile,
    pub(super) policy: Policy,
}

impl Case {
    /// Returns the part of a record that says what was run.
    pub(super) fn place(&self) -> Fields {
        let Self { point: Point { radio, arq, is_bare }, sender, mobile, policy } = self;
        fields! {
            radio: radio.as_str(),
            arq: arq.name(),
            bare: *is_bare,
            sender: *sender,
            mobile: mobile.name(),
            policy: policy.name(),
        }
    }
}

fn points(run: &Run) -> Vec<Point> {
    let point = |radio: &str, arq, is_bare| Point { radio: radio.to_owned(), arq, is_bare };
    if run.is_small {
        return vec![point("error 20% tries 2", Arq::MacLink, false)];
    }
    let grid = ERRORS
        .into_iter()
        .flat_map(|error| Arq::ALL.map(|(_, arq)| point(&format!("error {error}%"), arq, false)));
    let rough = [false, true]
        .into_iter()
        .flat_map(|is_bare| ROUGH.map(|(radio, arq)| point(radio, arq, is_bare)));
    grid.chain(rough).collect()
}

fn cases(run: &Run, points: &[Point]) -> Vec<Case> {
    let mut cases = Vec::new();
    let senders = if run.is_small { &SENDERS[..1] } else { &SENDERS };
    for point in points {
        for sender in senders {
            for mobile in [Mobile::Linux, Mobile::Ours] {
                // Without ARQ, nothing repairs the losses whose duplicate ACKs TCP-ECN hides.
                let policies =
                    POLICIES.into_iter().filter(|p| *p != Policy::TcpEcn || point.arq != Arq::Off);
                let case = |policy| Case { point: point.clone(), sender, mobile, policy };
                cases.extend(policies.map(case));
            }
        }
    }
    cases
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let points = points(run);
    let cases = cases(run, &points);
    let mut findings = Findings::new(
        "radio | arq | SACK, time stamps | Linux sends | mobile | bound, Mbit/s | plain | snoop | tcp-ecn | \
         lost, % | overtaken, % | sent again | tail probes",
    );
    let samples = measure(run, &mut findings, &cases, Case::place, |case, seed| {
        let times = match (run.is_small, case.point.is_bare) {
            (true, _) => SMALL,
            (false, true) => (BARE_WARM_UP, TIME),
            (false, false) => (WARM_UP, TIME),
        };
        case.run(seed, times, None)
    })?;
    let all = Sample(samples.into_iter().flat_map(|Sample(runs)| runs).collect());
    // Late runs do not count. A small run makes no claims and keeps them.
    let table = Table(if run.is_small { all.clone() } else { timely(&all) });
    let late = all.runs().count() - table.0.runs().count();
    for point in &points {
        for sender in SENDERS {
            for mobile in [Mobile::Linux, Mobile::Ours] {
                table.row(point, sender, mobile, &mut findings);
            }
        }
    }
    findings.picture("real", table.figure());
    if !run.is_small {
        // The paper's Linux and its radio are others.
        findings.beside(true, |findings| {
            table.claim_grid(findings);
            table.claim_rough(findings);
        });
    }
    findings.note(format!(
        "plain, snoop, tcp-ecn: goodput of {} s, after {} s ({} s without SACK), over the bound, which has an ACK for every second segment: with fewer there \
         is more. 20 ms of wire each way. Our mobile withholds duplicate ACKs with tcp-ecn, where the base station marks; with \
         the others it knows no marks. Lost and overtaken: packets on the radio, after all tries, with plain. Sent again by \
         Linux, and its tail loss probes (TCPLossProbes): plain, snoop, tcp-ecn. {late} runs were \
         late and do not count.",
        TIME.as_secs(),
        WARM_UP.as_secs(),
        BARE_WARM_UP.as_secs()
    ));
    Ok(findings)
}

/// All runs that count.
struct Table(Sample);

impl Table {
    fn of(&self, point: &Point, sender: &'static str, mobile: Mobile, policy: Policy) -> Sample {
        let place = Case { point: point.clone(), sender, mobile, policy }.place();
        let is_of = |run: &&Fields| place.iter().all(|(name, value)| run.value(name) == value);
        Sample(self.0.runs().filter(is_of).cloned().collect())
    }

    /// Returns the goodput as a fraction of the bound.
    fn share(
        &self,
        point: &Point,
        sender: &'static str,
        mobile: Mobile,
        policy: Policy,
    ) -> Interval {
        let share = |run: &Fields| Some(run.number("goodput")? / run.number("bound")?);
        Interval::of(&self.of(point, sender, mobile, policy).of(share))
    }

    fn row(&self, point: &Point, sender: &'static str, mobile: Mobile, findings: &mut Findings) {
        let plain = self.of(point, sender, mobile, Policy::Plain);
        let Some(bound) = plain.values("bound").first().copied() else { return };
        let share = |policy| {
            let share = self.share(point, sender, mobile, policy);
            if share.n == 0 { "-".to_owned() } else { theory::show(&share, 1.0, 2) }
        };
        let per_cent =
            |field| format!("{:.2}", 100.0 * plain.sum(field) / plain.sum("received").max(1.0));
        let each = |field| {
            let means = POLICIES.map(|policy| {
                let mean = self.of(point, sender, mobile, policy).mean(field);
                if mean.n == 0 { "-".to_owned() } else { format!("{:.0}", mean.mean) }
            });
            means.join(", ")
        };
        findings.table.row([
            point.radio.clone(),
            point.arq.name().to_owned(),
            if point.is_bare { "no" } else { "yes" }.to_owned(),
            sender.to_owned(),
            mobile.name().to_owned(),
            format!("{:.2}", bound * 1e-6),
            share(Policy::Plain),
            share(Policy::Snoop),
            share(Policy::TcpEcn),
            per_cent("lost"),
            per_cent("reordered"),
            each("retransmissions"),
            each("loss_probes"),
        ]);
    }

    /// Draws the goodput on the rough radios.
    fn figure(&self) -> Figure {
        let series = POLICIES.map(|policy| {
            let points = ROUGH.into_iter().zip(1u32..).map(|((radio, arq), number)| {
                let point = Point { radio: radio.to_owned(), arq, is_bare: false };
                let share = self.share(&point, "cubic", Mobile::Ours, policy);
                draw::interval(f64::from(number), &share, 1.0)
            });
            draw::series(policy.name(), Style::LineAndMarks, points.collect())
        });
        let names: Vec<_> = ROUGH.iter().map(|(radio, arq)| format!("{radio}, {arq}")).collect();
        Figure {
            title: "Linux cubic, our mobile".to_owned(),
            x: draw::linear(&names.join("; ")),
            y: draw::linear(&draw::more("goodput over the bound")),
            series: series.into(),
        }
    }

    /// Claims for radios on which the ARQ repairs all losses.
    fn claim_grid(&self, findings: &mut Findings) {
        for (radio, arq) in [("error 0%", Arq::MacLink), ("error 20%", Arq::MacLink)] {
            let point = Point { radio: radio.to_owned(), arq, is_bare: false };
            let share = |policy| self.of(&point, "cubic", Mobile::Ours, policy).values("goodput");
            let ratio = theory::paired(&share(Policy::TcpEcn), &share(Policy::Plain));
            findings.mean(format!("tcp-ecn over plain where the ARQ repairs all, {radio}, {arq}, cubic, our mobile"), "no less than 0.95", (&ratio, 2), Bound::Above(0.95), theory::unknown);
        }
    }

    /// Claims for radios on which frames overtake each other: the cost, and the cost with TCP-ECN.
    fn claim_rough(&self, findings: &mut Findings) {
        for (is_bare, (radio, arq)) in
            [false, true].into_iter().flat_map(|is| ROUGH.map(|r| (is, r)))
        {
            let point = Point { radio: radio.to_owned(), arq, is_bare };
            let share = |policy| self.share(&point, "cubic", Mobile::Ours, policy);
            let (plain, ours) = (share(Policy::Plain), share(Policy::TcpEcn));
            let of = self.of(&point, "cubic", Mobile::Ours, Policy::TcpEcn);
            let [lost, dropped, timeouts] =
                ["lost", "queue_dropped", "timeouts"].map(|field| of.sum(field));
            let options = if is_bare { ", no SACK, no time stamps" } else { "" };
            let shown = [&ours, &plain].map(|share| theory::show(share, 1.0, 2));
            findings.claim(
                format!("tcp-ecn, {radio}, {arq}, cubic{options}, our mobile"),
                "0.9 of the bound at least",
                shown.join(", plain "),
                theory::above(&ours, 0.9, || {
                    format!(
                        "{lost} packets were lost after all tries and {dropped} by the radio's queue, with {timeouts} \
                         time-outs; which of it is the cause was not determined"
                    )
                }),
            );
        }
    }
}

impl Case {
    /// Runs the transfer; `observer` sees the hosts' packets.
    ///
    /// # Errors
    ///
    /// The testbed or the transfer fails.
    pub(super) fn run(
        &self,
        seed: u64,
        (warm_up, time): (Duration, Duration),
        observer: Option<Arc<Mutex<dyn Observer + Send>>>,
    ) -> Result<Fields, LabError> {
        let Self { point, sender, mobile, policy } = self.clone();
        let path = Path {
            radio: radio(&format!("{} seed {seed}", point.radio))?,
            arq: point.arq,
            policy,
            mobile,
            is_bare: point.is_bare,
        };
        let dumbbell = path.build(observer)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LabError::Transfer)?;
        let bulk = Bulk {
            way: Way::Forth,
            is_ipv6: false,
            congestion: Some(sender.to_owned()),
            warm_up,
            time,
        };
        let done = runtime.block_on(dumbbell.bulk(&bulk));
        let done: Bulked = done.map_err(LabError::Transfer)?;
        let host = dumbbell.left().namespace();
        let timeouts = host.timeouts().map_err(LabError::Transfer)?;
        let loss_probes = host.tcp_counter("TCPLossProbes").map_err(LabError::Transfer)?;
        let status: Status = dumbbell.act(|middle, now| middle.far.status(now));
        let lateness = dumbbell.lateness().percentile(99.0).as_secs_f64();
        dumbbell.stop()?;
        let forth = &status.radio[Way::Forth as usize];
        Ok(fields! {
            goodput: done.goodput().bits_per_sec() as f64,
            bound: path.bound(),
            retransmissions: done.retransmissions,
            timeouts,
            loss_probes,
            received: forth.received,
            lost: forth.channel_lost,
            reordered: forth.reordered,
            queue_dropped: forth.queue_dropped,
            marked: status.counters.marked,
            hidden: status.counters.hidden,
            lateness,
        })
    }
}
