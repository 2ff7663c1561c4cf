//! Runs every simulated experiment as a small run, and checks its output.

use std::num::NonZero;

use airtcp_lab::{EXPERIMENTS, Experiment, Ground, Kind, Plan, Report, Verdict};
use airtcp_trace::figure::Graph;

fn small(experiment: &Experiment, threads: usize) -> Report {
    let plan = Plan { threads: NonZero::new(threads), is_small: true, ..Plan::default() };
    experiment.run(&plan).unwrap_or_else(|error| panic!("{}: {error}", experiment.name))
}

fn simulated() -> impl Iterator<Item = &'static Experiment> {
    EXPERIMENTS.iter().filter(|experiment| experiment.ground == Ground::Simulated)
}

/// The experiments that show more than their records have, such as the course of a run.
const NOT_OF_RECORDS: [&str; 9] = [
    "self/rate",
    "self/trace",
    "self/delay",
    "self/half-duplex",
    "senders/changes-sim",
    "hack/fig20",
    "tcp-ecn/fig10",
    "tcp-ecn/fig20",
    "tcp-ecn/fig22",
];

/// Returns everything that a report shows.
fn shown(report: &Report) -> (String, String, String, Vec<String>) {
    let json = serde_json::to_string(&report).unwrap();
    let svgs = report.findings.pictures.iter().map(|picture| picture.graph.to_svg());
    (report.to_text(None), report.to_markdown(), json, svgs.collect())
}

/// Judges the records of a report, which gives the same report.
fn assert_of_records(experiment: &Experiment, report: &Report) {
    let dir = tempfile::tempdir().unwrap();
    report.write(dir.path()).unwrap();
    let records = Some(dir.path().to_owned());
    let plan = Plan { records, is_small: true, ..Plan::default() };
    match experiment.run(&plan) {
        Ok(again) => assert_eq!(shown(&again), shown(report), "{}", experiment.name),
        Err(error) => {
            let is_known = NOT_OF_RECORDS.contains(&experiment.name);
            assert!(is_known, "{}: {error}", experiment.name);
            let expected = "1: the experiment shows more than its records have: run";
            assert!(error.to_string().contains(expected), "{}: {error}", experiment.name);
        }
    }
    assert_eq!(plan.done.get(), 0, "{}", experiment.name);
}

#[test]
fn every_simulated_experiment_leaves_records_a_table_and_verdicts() {
    for experiment in simulated() {
        let report = small(experiment, 1);
        assert_of_records(experiment, &report);
        let findings = &report.findings;
        assert!(!findings.table.rows().is_empty() && !findings.claims.is_empty());
        for record in &findings.records {
            let record: serde_json::Value = serde_json::from_str(record.get()).unwrap();
            let seed = record["seed"].as_u64().expect("a record has its seed");
            assert!((1..=report.seeds).contains(&seed), "{}: seed {seed}", experiment.name);
        }
        for seed in 1..=report.seeds {
            let of_seed = format!("\"seed\":{seed},");
            assert!(findings.records.iter().any(|record| record.get().contains(&of_seed)));
        }
        for claim in &findings.claims {
            assert!(!claim.what.is_empty() && !claim.claimed.is_empty());
            let is_number = |c: char| c.is_ascii_digit();
            assert!(claim.measured.contains(is_number), "{}: {claim:?}", experiment.name);
            if let Some(reason) = claim.verdict.reason() {
                assert!(!reason.is_empty() && reason.lines().count() == 1);
            }
        }
        for picture in &findings.pictures {
            let is_drawn = match &picture.graph {
                Graph::Figure(figure) => figure.series.iter().any(|of| !of.points.is_empty()),
                Graph::Dots(dots) => {
                    dots.rows.iter().flat_map(|row| row.1.concat()).any(|dot| dot.is_some())
                }
            };
            assert!(is_drawn, "{}", experiment.name);
            assert!(picture.graph.to_svg().contains("<svg"));
        }
    }
}

/// Claims that do not depend on the duration of a flow hold in small runs too.
#[test]
fn the_link_is_as_described_in_the_small_form_too() {
    let of_the_link = ["loss", "bursts", "bit-errors", "rate", "trace", "delay", "md1"];
    for experiment in simulated() {
        let name = experiment.name.strip_prefix("self/");
        if name.is_some_and(|name| of_the_link.contains(&name)) {
            let report = small(experiment, 1);
            let refuted: Vec<_> = report.findings.refuted().collect();
            assert!(refuted.is_empty(), "{}: {refuted:?}", experiment.name);
            assert!(!report.is_failed_check());
        }
    }
}

#[test]
fn the_same_plan_gives_the_same_bytes_on_any_number_of_threads() {
    for experiment in simulated() {
        let texts = |threads| shown(&small(experiment, threads));
        assert_eq!(texts(1), texts(2), "{}", experiment.name);
    }
}

#[test]
fn seeds_are_as_many_as_asked_for() {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == "self/trace").unwrap();
    let plan = Plan { seeds: Some(3), is_small: true, ..Plan::default() };
    let report = experiment.run(&plan).unwrap();
    assert_eq!((report.seeds, report.findings.records.len()), (3, 3));
    assert!(report.to_text(None).contains("3 runs of each case, simulated."));
}

#[test]
fn a_report_is_written_below_its_name() {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == "self/loss").unwrap();
    let report = small(experiment, 1);
    let dir = tempfile::tempdir().unwrap();
    let written = report.write(dir.path()).unwrap();
    let names: Vec<_> = written
        .iter()
        .map(|path| path.strip_prefix(dir.path()).unwrap().to_str().unwrap())
        .collect();
    let files = ["records.jsonl", "table.md", "loss.svg", "summary.json"];
    assert_eq!(names, files.map(|file| format!("self/loss/{file}")));
    let records = std::fs::read_to_string(&written[0]).unwrap();
    assert_eq!(records.lines().count(), report.findings.records.len());
    let page = std::fs::read_to_string(&written[1]).unwrap();
    assert!(page.contains("](loss.svg)") && page.contains("| link "), "{page}");

    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = report.write(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}/self/loss: ", file.display())), "{error}");
}

#[test]
fn only_a_self_check_fails_by_a_claim_of_its_own_that_does_not_hold() {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == "self/rate").unwrap();
    let mut report = small(experiment, 1);
    assert!(!report.is_failed_check());
    report.findings.claim("of a moon", "round", "flat 1", Verdict::NotComparable("far".into()));
    assert!(!report.is_failed_check());
    let verdict = Verdict::DoesNotHold("not asked".into());
    report.findings.claim_beside("of a star", "bright", "dim 1", verdict);
    assert!(!report.is_failed_check() && report.findings.refuted().count() == 1);
    report.findings.claim("of a sun", "hot", "cold 1", Verdict::DoesNotHold("night".into()));
    assert!(report.is_failed_check());
    assert!(report.to_text(None).ends_with("of a sun: does not hold: night\n"));
    report.experiment.kind = Kind::Study;
    assert!(!report.is_failed_check());
}

/// Checks the whole text of one report. `AIRTCP_RECORD=1 cargo test -p airtcp-lab` rewrites the
/// recorded text.
#[test]
fn a_report_reads_as_recorded() {
    let experiment = EXPERIMENTS.iter().find(|e| e.name == "self/half-duplex").unwrap();
    let measured = small(experiment, 1).to_markdown();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/half-duplex.md");
    if std::env::var_os("AIRTCP_RECORD").is_some() {
        std::fs::write(path, &measured).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), measured);
}
