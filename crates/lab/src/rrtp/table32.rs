//! RRTP, Table 3.2: the losses that Biaz misjudges, by sigma and phi.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use airtcp_sim::Simulation;
use airtcp_types::{Crossing, Event, EventKind, Fate, Instant, NodeId, Observer, Packet};

use super::network::{RENO, flow};
use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "rrtp/table3.2",
    what: "Losses that Biaz misclassifies, by sigma and phi, with cross traffic",
    source: "RRTP (Wang 2009) 3.6, Table 3.2; the simulations' links are not stated",
    seconds: 60,
    body,
    ..Experiment::STUDY
};

/// Sigma, phi, and the printed figures: congestive losses judged wireless, and wireless losses
/// judged congestive.
const TABLE: [(f64, f64, f64, f64); 7] = [
    (0.5, 2.0, 2.0, 8.0),
    (0.75, 2.0, 1.0, 2.0),
    (1.0, 2.0, 0.0, 0.0),
    (1.25, 2.0, 0.0, 4.0),
    (1.0, 1.75, 0.0, 3.0),
    (1.0, 2.25, 2.0, 3.0),
    (1.0, 2.5, 3.0, 7.0),
];
/// The bounds that the thesis finds best.
const BEST: (f64, f64) = (1.0, 2.0);
/// Our limit of the share of misjudged losses where the thesis prints 0.
const NONE: f64 = 0.02;
/// The losses of each kind in a trial.
const LOSSES: usize = 50;
/// A wired path, and the wireless link at its end with the base station's queue.
const WIRED: &str = "rate 10mbit delay 20ms limit 100";
const WIRELESS: &str = "rate 144kbit limit 10 loss 4% only forth";
/// Each transfer is configured with twice the link's rate, so that it starts with congestive
/// losses.
const SENDER: &str = "rrtp:wireless-last-hop+rate=288kbit";
const TRANSFERS: u32 = 40;
const EACH: Duration = Duration::from_secs(15);

/// Disturbances of the times between packets.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    delay: &'static str,
    /// Whether short TCP transfers share the link.
    cross: bool,
}

const SETTINGS: [Setting; 3] = [
    Setting { name: "alone", delay: "delay 55ms", cross: false },
    Setting { name: "cross traffic", delay: "delay 55ms", cross: true },
    Setting { name: "jitter", delay: "delay 55ms 30ms inorder", cross: false },
];

/// Every lost data packet with its cause, and the receiver's first judgement of it. A packet is
/// identified by connection and number; if it is lost twice, only the first loss counts.
#[derive(Debug, Default)]
struct Judgements {
    /// In the order of the losses: whether a queue dropped it.
    lost: Vec<((u64, u32), bool)>,
    known: BTreeMap<(u64, u32), Option<bool>>,
}

/// The packet format of docs/rrtp.md, version 1: the number of a data packet, and the losses that a
/// NACK or a SACK reports.
const UDP: u8 = 17;
const HEADERS: usize = 28;
const DATA: u8 = 4;
const REPORTS: [u8; 2] = [7, 8];
const BODY: usize = HEADERS + 16;
const KNOWN: usize = 20;
const RANGE: usize = 6;

/// Returns the type and the connection of an RRTP packet, and the bytes after its header.
fn read(packet: &Packet) -> Option<(u8, u64, &[u8])> {
    let data = &packet.data;
    let kind = *data.get(HEADERS)? & 0xf;
    let id = data.get(HEADERS + 4..)?.first_chunk()?;
    (data.get(9) == Some(&UDP)).then_some((kind, u64::from_be_bytes(*id), data.get(BODY..)?))
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|number| u32::from_be_bytes(*number))
}

impl Observer for Judgements {
    fn on_event(&mut self, _: NodeId, event: &Event) {
        let EventKind::Packet { fate: Fate::Dropped { cause }, packet } = &event.kind else {
            return;
        };
        let Some((DATA, id, body)) = read(packet) else { return };
        let Some(number) = number(body) else { return };
        let key = (id, number);
        if let Entry::Vacant(unknown) = self.known.entry(key) {
            unknown.insert(None);
            self.lost.push((key, cause.starts_with("queue")));
        }
    }

    fn on_packet(&mut self, _: Instant, _: NodeId, crossing: Crossing, packet: &Packet) {
        let Some((kind, id, body)) = read(packet).filter(|_| crossing == Crossing::Out) else {
            return;
        };
        if !REPORTS.contains(&kind) {
            return;
        }
        for range in body.get(KNOWN..).unwrap_or_default().chunks_exact(RANGE) {
            let Some(first) = number(range) else { return };
            let (congestive, count) =
                (range[4] >> 7 == 1, u16::from_be_bytes([range[4] & 0x7f, range[5]]));
            for number in first..first.saturating_add(u32::from(count)) {
                if let Some(judged) = self.known.get_mut(&(id, number)) {
                    judged.get_or_insert(congestive);
                }
            }
        }
    }
}

impl Judgements {
    /// Returns, for the first losses of a kind: their number, the number that were judged to be of
    /// the other kind, and how many of these are next to a loss of the other kind, in one hole.
    fn wrong(&self, congestive: bool) -> (usize, usize, usize) {
        let judged = self.lost.iter().filter(|(_, truth)| *truth == congestive);
        let judged = judged.filter_map(|(key, _)| Some((*key, self.known[key]?)));
        let judged: Vec<_> = judged.take(LOSSES).collect();
        let wrong: Vec<_> = judged.iter().filter(|(_, found)| *found != congestive).collect();
        let is_other = |key: &(u64, u32)| self.lost.contains(&(*key, !congestive));
        let beside = wrong.iter().filter(|((id, number), _)| {
            is_other(&(*id, number.wrapping_sub(1))) || is_other(&(*id, number.wrapping_add(1)))
        });
        (judged.len(), wrong.len(), beside.count())
    }
}

fn body(run: &Run) -> Result<Findings, LabError> {
    let mut findings = Findings::new(
        "setting | sigma | phi | congestive of 50 judged wireless | thesis | \
         wireless of 50 judged congestive | thesis | misjudged, %",
    );
    let table = if run.is_small { &TABLE[2..=3] } else { &TABLE[..] };
    for setting in SETTINGS {
        let mut rates = Vec::new();
        let mut mixed = (0, 0);
        for (sigma, phi, to_wireless, to_congestive) in table {
            let scenario = scenario(&setting, *sigma, *phi, run.is_small)?;
            let place = fields! { setting: setting.name };
            let place = place.with("sigma", *sigma).with("phi", *phi);
            let sample = findings.measure(run, &place, |seed| {
                let judgements = |_: &Simulation<'_>| Judgements::default();
                let (_, judgements) = simulate::once_watched(scenario.clone(), seed, judgements)?;
                let [(congestive, one, first), (wireless, other, second)] =
                    [true, false].map(|of| judgements.wrong(of));
                Ok(fields! {
                    congestive,
                    judged_wireless: one,
                    wireless,
                    judged_congestive: other,
                    // The misjudged losses in one hole with a loss of the other kind.
                    beside_the_other: first + second,
                })
            })?;
            if (*sigma, *phi) == BEST {
                let wrong = ["beside_the_other", "judged_wireless", "judged_congestive"];
                let [beside, one, other] = wrong.map(|field| sample.sum(field) as usize);
                mixed = (beside, one + other);
            }
            let losses = [sample.values("congestive"), sample.values("wireless")].concat();
            let fewest = losses.into_iter().fold(LOSSES as f64, f64::min) as usize;
            let scaled = |wrong: &'static str, of: &'static str| {
                move |run: &Fields| {
                    let of = run.number(of).filter(|of| *of > 0.0)?;
                    Some(run.number(wrong)? * LOSSES as f64 / of)
                }
            };
            let wireless = scaled("judged_wireless", "congestive");
            let congestive = scaled("judged_congestive", "wireless");
            let both =
                sample.of(|run| Some((wireless(run)? + congestive(run)?) / (2 * LOSSES) as f64));
            let (wireless, congestive) = (sample.of(wireless), sample.of(congestive));
            findings.table.row([
                setting.name.to_owned(),
                sigma.to_string(),
                phi.to_string(),
                shown(&wireless, 1.0),
                to_wireless.to_string(),
                shown(&congestive, 1.0),
                to_congestive.to_string(),
                shown(&both, 100.0),
            ]);
            rates.push(Rated { bounds: (*sigma, *phi), rates: both, fewest });
        }
        // The thesis has neither cross traffic nor jitter.
        findings.beside(setting.name != SETTINGS[0].name, |findings| {
            claims(findings, &setting, &rates, mixed);
        });
    }
    findings.note(format!(
        "\"{WIRED}\", then \"{WIRELESS}\" with the delay; {TRANSFERS} transfers of 100 kB, one every {} s, each configured with twice \
         the link's rate; a congestive loss is a drop of the base station's queue of 10 packets, a wireless loss is one \
         behind it; the first 50 of each kind in a run are counted",
        EACH.as_secs()
    ));
    findings.note(
        "guess: the thesis divides both counts by 50, the losses of one kind; our rates refer to all 100 losses",
    );
    Ok(findings)
}

/// The misjudged losses with one pair of bounds.
struct Rated {
    /// Sigma and phi.
    bounds: (f64, f64),
    /// The rate of misjudged losses among all that were judged, for each run.
    rates: Vec<f64>,
    /// The minimum number of judged losses of a kind in a run.
    fewest: usize,
}

fn shown(values: &[f64], unit: f64) -> String {
    match values {
        [] => "0 losses".to_owned(),
        _ => theory::show(&Interval::of(values), unit, 1),
    }
}

/// Returns not comparable if a run has fewer than 50 losses of a kind.
fn of_enough(fewest: usize, verdict: impl FnOnce() -> Verdict) -> Verdict {
    if fewest < LOSSES {
        let few = format!("in a run {fewest} losses of one kind were judged, and {LOSSES} count");
        return Verdict::NotComparable(few);
    }
    verdict()
}

/// Adds the claims. The last argument is for the best bounds: the number of misjudged losses next
/// to one of the other kind, and the number of all misjudged losses.
fn claims(
    findings: &mut Findings,
    setting: &Setting,
    rated: &[Rated],
    (beside, wrong): (usize, usize),
) {
    let Some(best) = rated.iter().find(|rated| rated.bounds == BEST) else { return };
    let rate = Interval::of(&best.rates);
    let is_alone = setting.name == SETTINGS[0].name;
    let claimed = if is_alone { "0 (our limit: below 2)" } else { "more than 0" };
    findings.claim(
        format!("{}: misjudged with sigma 1 and phi 2, %", setting.name),
        claimed,
        shown(&best.rates, 100.0),
        of_enough(best.fewest, || match is_alone {
            true => theory::below(&rate, NONE, || {
                format!(
                    "{beside} of {wrong} misjudged losses are in one hole with a loss of the other kind, and a \
                     hole has one cause"
                )
            }),
            false => theory::above(&rate, 0.0, || "nothing was misjudged".to_owned()),
        }),
    );
    for Rated { bounds: (sigma, phi), rates, fewest } in
        rated.iter().filter(|rated| rated.bounds != BEST)
    {
        let more: Vec<_> = rates.iter().zip(&best.rates).map(|(own, best)| own - best).collect();
        findings.claim(
            format!(
                "{}: sigma {sigma}, phi {phi}: misjudged beyond sigma 1 and phi 2, %",
                setting.name
            ),
            "more: above 0",
            shown(&more, 100.0),
            of_enough(best.fewest.min(*fewest), || {
                theory::above(&Interval::of(&more), 0.0, || {
                    "here these bounds misclassify no more than the best of the thesis".to_owned()
                })
            }),
        );
    }
}

fn scenario(setting: &Setting, sigma: f64, phi: f64, is_small: bool) -> Result<Scenario, LabError> {
    let count = if is_small { 3 } else { TRANSFERS };
    let transfers = FlowSpec {
        count,
        stagger: EACH,
        app: App::Bulk { size: Some(ByteCount(100_000)) },
        ..flow(&format!("{SENDER}+sigma={sigma}+phi={phi}"))
    };
    let mut flows = vec![transfers];
    if setting.cross {
        let size = (ByteCount(3_000), ByteCount(12_000));
        let gap = Duration::from_secs(3);
        flows.push(FlowSpec {
            app: App::ShortFlows { size, gap, pareto: false, users: 1 },
            ..flow(RENO)
        });
    }
    let wireless = feed::spec(&format!("{WIRELESS} {}", setting.delay))?;
    let wires = vec![Wire::both(feed::spec(WIRED)?), Wire::both(wireless)];
    Ok(Scenario {
        duration: EACH * count,
        flows,
        ..Scenario::new("table3.2", Topology::Chain { wires })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(setting: &Setting, rates: [&[f64]; 2], fewest: usize) -> Vec<&'static str> {
        let mut findings = Findings::new("");
        let rated = |bounds, rates: &[f64]| Rated { bounds, rates: rates.to_vec(), fewest };
        let [best, other] = rates;
        claims(&mut findings, setting, &[rated(BEST, best), rated((0.5, 2.0), other)], (0, 0));
        findings.claims.iter().map(|claim| claim.verdict.name()).collect()
    }

    #[test]
    fn too_few_losses_of_a_kind_decide_nothing() {
        for setting in &SETTINGS {
            for (rates, fewest) in [(&[][..], 0), (&[0.0, 0.0], 1), (&[0.0, 0.0], LOSSES - 1)] {
                assert_eq!(verdicts(setting, [rates; 2], fewest), ["not comparable"; 2]);
            }
        }
    }

    #[test]
    fn the_best_bounds_misjudge_less_than_the_others_not_as_many() {
        let verdicts = |best: &[f64], other: &[f64]| verdicts(&SETTINGS[0], [best, other], LOSSES);
        assert_eq!(verdicts(&[0.0; 3], &[0.04, 0.05, 0.04]), ["holds"; 2]);
        assert_eq!(verdicts(&[0.01; 3], &[0.01; 3]), ["holds", "does not hold"]);
        assert_eq!(verdicts(&[0.025; 3], &[0.03; 3]), ["does not hold", "holds"]);
        assert_eq!(verdicts(&[0.04; 3], &[0.01; 3]), ["does not hold"; 2]);
        assert_eq!(verdicts(&[0.0, 0.06, 0.0], &[0.02; 3]), ["not comparable"; 2]);
    }
}
