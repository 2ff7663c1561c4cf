//! Reading of experiment files, with the position of mistakes, and running of experiments.

use std::num::NonZero;

use airtcp_link::Trace;
use airtcp_sim::Scenario;
use airtcp_sim::toml::Source;
use airtcp_trace::figure::{Figure, Graph};

use super::*;
use crate::{Plan, Report, Run, Verdict};

const SMALL: &str = r#"measures = ["goodput", "retransmissions"]

[[axis]]
name = "sender"
values = ["sack/reno", "sack/cubic"]

[[axis]]
name = "loss"
values = [1, 10]

[scenario]
duration = "2s"
wire = ["rate 10mbit delay 10ms limit 50 loss {loss}%"]

[[scenario.flow]]
name = "bulk"
strategies = "{sender}"

[[claim]]
measure = "goodput"
of = { loss = 10 }
over = { loss = 1.0 }
below = 1

[[picture]]
name = "loss"
x = "loss"
y = "goodput"
series = "sender"
"#;

fn no_trace(name: &str) -> Result<Trace, String> {
    Err(format!("no `{name}` here"))
}

fn read(text: &str) -> Result<Study, crate::LabError> {
    Study::read("s.toml", text, no_trace)
}

fn run(text: &str, threads: usize) -> Report {
    let threads = NonZero::new(threads);
    let plan = Plan { seeds: Some(3), threads, ..Plan::default() };
    read(text).unwrap().run(&plan).unwrap()
}

/// Returns the error of [`SMALL`] with `part` replaced by `other`.
#[track_caller]
fn error(part: &str, other: &str) -> String {
    assert!(SMALL.contains(part), "{part}");
    read(&SMALL.replacen(part, other, 1)).unwrap_err().to_string()
}

#[test]
fn a_file_gives_records_a_table_claims_and_a_picture() {
    let report = run(SMALL, 2);
    let findings = &report.findings;
    assert_eq!((report.experiment.name.as_str(), findings.records.len()), ("s", 12));
    let first: serde_json::Value = serde_json::from_str(findings.records[0].get()).unwrap();
    assert_eq!((&first["seed"], &first["sender"]), (&1.into(), &"sack/reno".into()));
    assert!(first["goodput"].as_f64().unwrap() > 1e6, "{first}");
    assert!(
        findings.records[0].get().starts_with("{\"seed\":1,\"sender\":\"sack/reno\",\"loss\":1,")
    );
    assert_eq!(findings.table.rows().len(), 4);
    assert_eq!(findings.table.rows()[3][..2], ["sack/cubic", "10"]);
    let claims: Vec<_> = findings.claims.iter().map(|claim| claim.what.as_str()).collect();
    assert_eq!(
        claims,
        [
            "goodput at sender sack/reno, loss 10, over loss 1",
            "goodput at sender sack/cubic, loss 10, over loss 1"
        ]
    );
    assert!(findings.claims.iter().all(|claim| claim.verdict == Verdict::Holds));
    let Graph::Figure(Figure { series, .. }) = &findings.pictures[0].graph else {
        panic!("lines");
    };
    assert_eq!(
        (series.len(), series[1].name.as_str(), series[1].points.len()),
        (2, "sack/cubic", 2)
    );
    assert_eq!(series[0].points[0].x, 1.0);
}

#[test]
fn the_same_file_gives_the_same_bytes_on_any_number_of_threads() {
    let texts = |threads| serde_json::to_string(&run(SMALL, threads)).unwrap();
    assert_eq!(texts(1), texts(2));
}

#[test]
fn a_claim_that_does_not_hold_has_the_reason_of_the_file() {
    let text = SMALL.replace("below = 1\n", "within = [2, 3]\nwhy = \"of the moon\"\n");
    let claims = run(&text, 2).findings.claims;
    assert_eq!(claims[0].verdict, Verdict::DoesNotHold("of the moon".to_owned()));
    assert_eq!(claims[0].claimed, "2 to 3");
}

#[test]
fn a_users_own_claim_is_expected_or_undecided_and_has_no_empty_reason() {
    let text = SMALL.replace("below = 1\n", "within = [2, 3]\n");
    let report = run(&text, 2);
    assert!(report.findings.claims.iter().all(|claim| claim.verdict.name() == "does not hold"));
    for shown in [report.to_text(None), report.to_markdown()] {
        assert!(shown.contains("expected") && !shown.contains("source says"), "{shown}");
        assert!(shown.contains("does not hold") && !shown.contains("does not hold:"), "{shown}");
    }
    let one = read(SMALL).unwrap().run(&Plan { seeds: Some(1), ..Plan::default() }).unwrap();
    let shown = one.to_text(None);
    assert!(shown.contains(": undecided: one run") && !shown.contains("not comparable"), "{shown}");
}

#[test]
fn each_case_is_left_as_a_scenario_file_with_the_same_result() {
    let findings = run(SMALL, 2).findings;
    assert_eq!(findings.scenarios.len(), findings.table.rows().len());
    // The third of four cases, with the second of three seeds.
    let source = Source { name: "s.toml", text: &findings.scenarios[2], settings: &[] };
    let scenario = Scenario { seed: 2, ..source.read(no_trace).unwrap() };
    let goodput = airtcp_sim::run(&scenario, None).unwrap().flows[0].goodput;
    let record: serde_json::Value = serde_json::from_str(findings.records[7].get()).unwrap();
    assert_eq!((&record["loss"], &record["seed"]), (&1.into(), &2.into()));
    assert!((record["goodput"].as_f64().unwrap() / goodput - 1.0).abs() < 1e-9, "{record}");
}

#[test]
fn a_measure_may_be_of_one_flow_and_in_the_unit_of_the_table() {
    let text = SMALL
        .replace("\"goodput\", \"ret", "\"goodput:bulk\", \"rtt-p95\", \"time\", \"ret")
        .replace("of = { loss = 10 }\nover = { loss = 1.0 }\nbelow = 1\n", "below = 10\n");
    let report = run(&text, 2);
    let claim = &report.findings.claims[0];
    assert_eq!((claim.claimed.as_str(), &claim.verdict), ("below 10 Mbit/s", &Verdict::Holds));
    let row = &report.findings.table.rows()[0];
    let rtt: f64 = row[3].split(' ').next().unwrap().parse().unwrap();
    assert!((20.0..80.0).contains(&rtt), "{row:?}");
    assert_eq!(row[4], "-", "what has no end does not come to it");
}

#[test]
fn a_number_alone_takes_the_place_of_a_text() {
    let text = SMALL
        .replace("name = \"loss\"\nvalues = [1, 10]", "name = \"flows\"\nvalues = [1, 3]")
        .replace(" loss {loss}%", "")
        .replace("\"{sender}\"\n", "\"{sender}\"\ncount = \"{flows}\"\n")
        .replace("loss = 10 ", "flows = 3 ")
        .replace("loss = 1.0", "flows = 1")
        .replace("x = \"loss\"", "x = \"flows\"");
    let report = run(&text, 2);
    assert_eq!(report.findings.table.rows()[1][1], "3");
    assert!(report.findings.notes[0].starts_with("Nothing in the scenario is random"));
}

#[test]
fn mistakes_have_their_place_and_say_what_would_be_right() {
    for (part, other, expected) in [
        (
            "\"retrans",
            "\"retrains",
            "s.toml:1:24: unknown measure `retrainsmissions`, expected one of `goodput`, ",
        ),
        (
            "{ loss = 10 }",
            "{ lost = 1 }",
            "s.toml:21:15: unknown axis `lost`, expected one of `sender`, `loss`; did you mean `loss`?",
        ),
        (
            "{ loss = 10 }",
            "{ loss = 2 }",
            "s.toml:21:15: unknown value `2` of the axis `loss`, expected one of `1`, `10`",
        ),
        (
            "loss {loss}%",
            "loss {los}%",
            "s.toml:13:47: unknown placeholder `{los}`, expected one of `{sender}`, `{loss}`; did you mean `{loss}`?",
        ),
        (
            "loss {loss}%",
            "loss 1%",
            "s.toml:8:8: axis `loss` is unused: write `{loss}` in a string of [scenario]",
        ),
        (
            "\"2s\"",
            "\"{time}\"",
            "s.toml:12:13: unknown placeholder `{time}`, expected one of `{sender}`, `{loss}`",
        ),
        ("10mbit delay", "10mbps delay", "s.toml:13:9: `10mbps`: expected a rate"),
        ("sack/cubic", "sack/cubci", "s.toml:17:14: no congestion control `cubci`"),
        (
            "name = \"bulk\"",
            "nome = \"bulk\"",
            "s.toml:16:1: unknown field `nome`, expected one of `name`, ",
        ),
        ("below = 1", "", "s.toml:19:1: a claim has one of `above = 1.0`"),
        ("below = 1", "within = [2, 1]", "s.toml:19:1: `within` is the lower end"),
        ("series = \"sender\"", "", "s.toml:26:8: the picture leaves axis `sender` open"),
        (
            "x = \"loss\"",
            "x = \"sender\"",
            "s.toml:27:5: axis `sender` has values that are no numbers",
        ),
        (
            "[\"goodput\", \"ret",
            "[\"goodput:web\", \"ret",
            "s.toml:1:13: not every scenario has a flow `web`",
        ),
        (
            "[\"goodput\", \"ret",
            "[\"jain:bulk\", \"ret",
            "s.toml:1:13: `jain` is of all flows together",
        ),
        ("measures = [", "name = \"../x\"\nmeasures = [", "s.toml:1:8: `../x` is no name"),
        (
            "measures = [",
            "name = \"self/loss\"\nmeasures = [",
            "s.toml:1:8: the lab has an experiment `self/loss`",
        ),
        ("values = [1, 10]", "values = [1, 1.0]", "s.toml:9:10: axis `loss` has the value 1 twice"),
        ("values = [1, 10]", "values = []", "s.toml:9:10: axis `loss` has no values"),
        (
            "name = \"loss\"\nv",
            "name = \"seed\"\nv",
            "s.toml:8:8: `seed` is a name that records have",
        ),
        ("name = \"loss\"\nv", "name = \"sender\"\nv", "s.toml:8:8: there are two axes `sender`"),
        ("measures =", "mesures =", "s.toml:1:1: unknown field `mesures`, expected one of "),
    ] {
        let error = error(part, other);
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn cells_are_found_by_names() {
    let run = Run { seeds: 2, ..Run::default() };
    let axes = vec![Axis::new("a", ["x", "y"]), Axis::new("b", [1.0, 2.0, 3.0])];
    let grid = Grid::run(&run, axes, |point, seed| {
        let is_x = point.text("a") == "x";
        let value = (!is_x || seed == 1).then_some(point.number("b") * seed as f64);
        Ok(fields! { value }.with("seed twice", 2 * seed))
    })
    .unwrap();
    let y = grid.all().at("a", "y");
    assert_eq!(y.at("b", 2.0).values("value"), [2.0, 4.0]);
    assert_eq!(y.values("value"), [1.0, 2.0, 2.0, 4.0, 3.0, 6.0]);
    let x = grid.all().at("b", 3.0).at("a", "x");
    assert_eq!(x.values("value"), [3.0], "what was not measured does not count");
    assert!(y.get("b", 4.0).is_none());
    let rows: Vec<_> = grid.all().rows(&["b", "a"]).iter().map(|row| row.text("b")).collect();
    assert_eq!(rows, ["1", "1", "2", "2", "3", "3"]);
    let line = y.line("y", "b", 10.0, |cell| cell.mean("value"));
    assert_eq!(line.points[1].y, 30.0);
    let mut findings = crate::Findings::new("a");
    grid.record(&mut findings, &["b"]).unwrap();
    let records: Vec<_> = findings.records.iter().map(|record| record.get()).collect();
    assert_eq!(
        records[..2],
        [
            r#"{"seed":1,"b":1.0,"value":1.0,"seed twice":2}"#,
            r#"{"seed":2,"b":1.0,"value":null,"seed twice":4}"#
        ]
    );
}
