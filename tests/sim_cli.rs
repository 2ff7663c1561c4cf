//! `airtcp sim` as a user types it: its output and exit codes.

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

const SMALL: &str = r#"duration = "2s"
[bottleneck]
forth = "rate 5mbit delay 10ms limit 30 loss 1%"

[[flow]]
congestion = "reno"
count = 2
"#;

fn airtcp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airtcp"));
    command.args(arguments);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command's output with `text` on its stdin.
fn fed(arguments: &[&str], text: &str) -> Result<Output, Box<dyn Error>> {
    let mut command = airtcp(arguments);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn()?;
    // The command may end without reading all of it.
    let _ = child.stdin.take().expect("it is piped").write_all(text.as_bytes());
    Ok(child.wait_with_output()?)
}

fn scenario(directory: &TempDir, text: &str) -> Result<PathBuf, Box<dyn Error>> {
    let path = directory.path().join("small.toml");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Checks for a single error line on stderr and an empty stdout, and returns the line without
/// `error: `.
#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(output.stdout.is_empty());
    text.trim_end().strip_prefix("error: ").expect("it begins so").to_owned()
}

fn json(output: &Output) -> Result<Value, Box<dyn Error>> {
    assert!(output.status.success(), "{}", stderr(output));
    assert!(output.stderr.is_empty(), "{}", stderr(output));
    Ok(serde_json::from_slice(&output.stdout)?)
}

#[test]
fn the_example_is_commented_and_runs() -> Outcome {
    let init = airtcp(&["sim", "init"]).output()?;
    assert!(init.status.success());
    let example = String::from_utf8(init.stdout)?;
    assert!(example.matches('#').count() > 10, "{example}");
    let output = fed(&["sim", "run", "-"], &example)?;
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout)?;
    assert!(table.starts_with("mixed: 20 s of simulated time, seed 1\n"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for word in ["newreno/reno", "sack/cubic", "goodput", "queue", "bottleneck"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    assert!(table.contains("\nJain's index of old (2 copies), new: "), "{table}");
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.ends_with("goodput from 5 s on, all else from 0 s"), "{table}");
    Ok(())
}

#[test]
fn json_has_every_run_and_is_the_same_on_one_thread_and_two() -> Outcome {
    let directory = TempDir::new()?;
    let path = scenario(&directory, SMALL)?;
    let path = path.to_str().expect("it is text");
    let run = |threads| {
        airtcp(&["sim", "run", path, "--json", "--seeds", "4", "--threads", threads]).output()
    };
    let (one, two) = (run("1")?, run("2")?);
    assert_eq!(one.stdout, two.stdout);
    let report = json(&one)?;
    assert_eq!(report["scenario"], "small");
    assert_eq!(report["seeds"], serde_json::json!([1, 2, 3, 4]));
    let runs = report["runs"].as_array().expect("a list");
    for (run, seed) in runs.iter().zip(1..) {
        assert_eq!(run["seed"], seed);
        assert_eq!(run["flows"].as_array().expect("a list").len(), 2);
        assert!(run["flows"][0]["bytes"].as_u64() > Some(0), "{run}");
    }
    assert_eq!(runs.len(), 4);
    assert_ne!(runs[0]["flows"], runs[1]["flows"], "a seed is a run of its own");
    let flow = &report["aggregate"]["flows"][0];
    assert_eq!((&flow["name"], &flow["copies"]), (&"rack/reno".into(), &2.into()));
    assert_eq!(flow["goodput"]["n"], 4);
    let mean = |run: &Value| {
        (run["flows"][0]["goodput"].as_f64().unwrap()
            + run["flows"][1]["goodput"].as_f64().unwrap())
            / 2.0
    };
    let expected = runs.iter().map(mean).sum::<f64>() / 4.0;
    assert!((flow["goodput"]["mean"].as_f64().unwrap() - expected).abs() < 1e-3);
    assert!(flow["goodput"]["half_width"].as_f64() > Some(0.0));
    Ok(())
}

#[test]
fn settings_and_seeds_take_the_place_of_the_files() -> Outcome {
    let output = fed(
        &[
            "sim",
            "run",
            "-",
            "--json",
            "--set",
            "flow.0.congestion=fixed:4",
            "--set",
            "bottleneck.forth=rate 1mbit delay 5ms",
            "--set",
            "duration=500ms",
            "--seed",
            "7",
        ],
        SMALL,
    )?;
    let report = json(&output)?;
    assert_eq!((&report["scenario"], &report["seeds"]), (&"stdin".into(), &serde_json::json!([7])));
    assert_eq!(report["runs"][0]["flows"][0]["combination"], "rack/fixed:4");
    assert!(report["aggregate"]["flows"][0]["goodput"]["half_width"].is_null());
    assert!(report["runs"][0]["flows"][0]["goodput"].as_f64() < Some(1e6));
    Ok(())
}

#[test]
fn the_table_of_many_seeds_fits_a_terminal_and_says_what_it_leaves_out() -> Outcome {
    let example = String::from_utf8(airtcp(&["sim", "init"]).output()?.stdout)?;
    let run = |strategies: &str| {
        let set = format!("flow.1.strategies={strategies}");
        let web = "flow.2.strategies=rack/cubic";
        let run = ["sim", "run", "-", "--seeds", "3", "--set", "duration=6s", "--set", &set];
        let run = [&run[..], &["--set", web]].concat();
        Ok::<_, Box<dyn Error>>(String::from_utf8(fed(&run, &example)?.stdout)?)
    };
    assert!(!run("sack/cubic")?.contains("Intervals that did not fit"));
    let table = run("le:echo/cubic/dcr:timer")?;
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(table.contains("seeds 1 to 3") && table.contains('±'), "{table}");
    assert!(table.contains("Intervals that did not fit"), "{table}");
    Ok(())
}

#[test]
fn a_scenario_without_randomness_has_one_run() -> Outcome {
    let quiet = SMALL.replace(" loss 1%", "");
    let output = fed(&["sim", "run", "-", "--seeds", "4", "--json"], &quiet)?;
    assert_eq!(json(&output)?["seeds"], serde_json::json!([1]));
    let table = String::from_utf8(fed(&["sim", "run", "-", "--seeds", "4"], &quiet)?.stdout)?;
    assert!(table.contains("one run: nothing is random") && !table.contains('±'), "{table}");
    Ok(())
}

#[test]
fn a_link_by_name_is_one_setting_and_half_of_it_is_refused() -> Outcome {
    let example = String::from_utf8(airtcp(&["sim", "init"]).output()?.stdout)?;
    let run = |set: &str| fed(&["sim", "run", "-", "--set", "duration=6s", "--set", set], &example);
    assert!(run("bottleneck=weak-4g")?.status.success());
    assert!(run("flow.0.strategies=rack/cubic/hack")?.status.success());
    let half = refused(&run("bottleneck.forth=weak-4g")?, 2);
    assert!(half.contains("write `bottleneck=weak-4g` for both directions"), "{half}");
    Ok(())
}

#[test]
fn a_mistake_in_the_file_is_one_line_with_its_place() -> Outcome {
    let directory = TempDir::new()?;
    let rubbish = format!("{}x\n", "1\n".repeat(16));
    std::fs::write(directory.path().join("up.txt"), rubbish)?;
    let cases = [
        (
            "loss 1%\"",
            "loss 1%\"\nfourth = \"\"",
            ":4:1: unknown field `fourth`, expected `forth` or `back`; did you mean `forth`?",
        ),
        (
            "\"2s\"",
            "\"2sec\"",
            ":1:12: `2sec`: expected a time with its unit (h, min, s, ms, us or ns), such as \"5ms\"",
        ),
        (
            "10ms limit",
            "limit",
            ":3:27: `limit`: expected a time with its unit (s, ms, us or ns), such as `5ms`",
        ),
        (
            "rate 5mbit",
            "trace up.txt",
            ":3:16: trace up.txt: line 17: expected a time in whole milliseconds, such as `17`",
        ),
        (
            "rate 5mbit",
            "trace down.txt",
            ":3:16: trace down.txt: No such file or directory; give a mahimahi trace: a file with a \
             time in whole milliseconds on each line",
        ),
        (
            "[[flow]]",
            "[[flow]]\nstart = \"2s\"",
            ":6:9: flow `rack/reno`: a copy starts after the end of the run: start it earlier",
        ),
        (
            "loss 1%",
            "loss 1% at 3s rate 1mbit",
            ":1:12: link `bottleneck`: it changes at 3s, and the run ends at 2s: change it earlier, \
             or run longer",
        ),
        (
            "[[flow]]",
            "[flow]",
            ":5:1: invalid type: map, expected a list of tables, each with two brackets, as in `[[flow]]`",
        ),
    ];
    for (right, wrong, expected) in cases {
        let path = scenario(&directory, &SMALL.replace(right, wrong))?;
        let output = airtcp(&["sim", "run"]).arg(&path).output()?;
        assert_eq!(refused(&output, 2), format!("{}{expected}", path.display()));
    }
    Ok(())
}

#[test]
fn a_file_that_cannot_be_read_is_one_line() -> Outcome {
    let missing = airtcp(&["sim", "run", "/no/such.toml"]).output()?;
    assert_eq!(
        refused(&missing, 1),
        "reading /no/such.toml: No such file or directory; give a scenario file; `airtcp sim init > scenario.toml` \
         writes an example"
    );
    let long = fed(&["sim", "run", "-"], &" ".repeat((1 << 20) + 1))?;
    assert_eq!(refused(&long, 1), "reading stdin: larger than 1 MiB");
    Ok(())
}

#[test]
fn a_mistake_on_the_command_line_is_one_line_and_exit_code_two() -> Outcome {
    let cases: [(&[&str], &str); 8] = [
        (&["--set", "flow.0.congestin=reno"], "unknown field `congestin`, expected one of `name`"),
        (
            &["--set", "flow.3.congestion=reno"],
            "`flow.3` does not exist: the only element is `flow.0`",
        ),
        (&["--set", "duration=60"], "expected a time with its unit"),
        (&["--set", "duration"], "such as `flow.0.congestion=reno`"),
        (&["--seeds", "0"], "1 to 100000"),
        (&["--seeds", "-3"], "for example --seeds 10"),
        (&["--threads", "0"], "for example --threads 2"),
        (&["--seed", "18446744073709551615", "--seeds", "2"], "for example --seed 1"),
    ];
    for (arguments, expected) in cases {
        let output = fed(&[&["sim", "run", "-"], arguments].concat(), SMALL)?;
        let text = refused(&output, 2);
        assert!(text.contains(expected), "{text}");
    }
    let nothing = airtcp(&["sim", "run"]).output()?;
    assert!(refused(&nothing, 2).contains("SCENARIO.toml"));
    Ok(())
}

#[test]
fn a_trace_of_the_first_seed_changes_no_result() -> Outcome {
    let directory = TempDir::new()?;
    let into = directory.path().join("trace");
    let plain = fed(&["sim", "run", "-", "--json", "--seeds", "2"], SMALL)?;
    let traced = fed(
        &["sim", "run", "-", "--json", "--seeds", "2", "--trace", into.to_str().expect("text")],
        SMALL,
    )?;
    assert!(traced.status.success(), "{}", stderr(&traced));
    assert_eq!(traced.stdout, plain.stdout);
    for name in ["packets.pcapng", "events.sqlog"] {
        let file = into.join(name);
        assert!(std::fs::metadata(&file)?.len() > 10_000, "{name}");
        assert!(stderr(&traced).contains(&format!("wrote {}\n", file.display())));
    }
    let pictures = stderr(&traced).lines().filter(|line| line.ends_with(".svg")).count();
    assert_eq!(pictures, 2, "one of each flow");
    Ok(())
}

#[test]
fn states_of_the_first_seed_are_json_lines_and_change_no_result() -> Outcome {
    let directory = TempDir::new()?;
    let file = directory.path().join("state.jsonl");
    let path = file.to_str().expect("text");
    let run = ["sim", "run", "-", "--json", "--seeds", "2"];
    let plain = fed(&run, SMALL)?;
    let sampled = fed(&[&run[..], &["--state", path, "--every", "0.5"]].concat(), SMALL)?;
    assert_eq!(sampled.stdout, plain.stdout, "{}", stderr(&sampled));
    assert!(stderr(&sampled).contains(&format!("wrote {path}\n")));
    let lines = std::fs::read_to_string(&file)?;
    let states: Result<Vec<Value>, _> = lines.lines().map(serde_json::from_str).collect();
    let states = states?;
    assert!(states.iter().any(|state| state["cwnd"].as_u64() > Some(0)), "{lines}");
    assert!(states.iter().any(|state| state["link"] == "bottleneck"), "{lines}");
    assert!(states.iter().all(|state| state["time"].as_f64() >= Some(0.5)), "{lines}");
    let every = fed(&[&run[..], &["--every", "1"]].concat(), SMALL)?;
    assert!(refused(&every, 2).contains("--state"));
    Ok(())
}

#[test]
fn a_directory_gets_scenario_results_and_states_and_keeps_them() -> Outcome {
    let directory = TempDir::new()?;
    let out = directory.path().join("new/run");
    let run = ["sim", "run", "-", "--seeds", "2", "--set", "flow.0.congestion=reno"];
    let with = [&run[..], &["--out", out.to_str().expect("text"), "--every", "0.5"]].concat();
    let printed = fed(&with, SMALL)?;
    assert!(printed.status.success(), "{}", stderr(&printed));
    let read = |name: &str| std::fs::read_to_string(out.join(name));
    assert_eq!(read("scenario.toml")?, format!("# --set flow.0.congestion=reno\n{SMALL}"));
    let as_json = fed(&[&run[..], &["--json"]].concat(), SMALL)?;
    assert_eq!(serde_json::from_str::<Value>(&read("sim.json")?)?, json(&as_json)?);
    let states: Result<Vec<Value>, _> =
        read("states.jsonl")?.lines().map(serde_json::from_str).collect();
    assert!(states?.iter().any(|state| state["cwnd"].as_u64() > Some(0)));
    let page = directory.path().join("page.html");
    let paths = [out.to_str().expect("text"), "-o", page.to_str().expect("text")];
    let report = airtcp(&[&["report"], &paths[..]].concat()).output()?;
    assert!(report.status.success(), "{}", stderr(&report));
    let refusal = refused(&fed(&with, SMALL)?, 2);
    assert!(refusal.ends_with("has results already: choose another"), "{refusal}");
    Ok(())
}

const MOBILE: &str = r#"duration = "3s"
[bottleneck]
forth = "rate 100mbit delay 20ms limit 1000"
[station]
radio = "error 20% tries 1"
policy = "tcp-ecn"
[[flow]]
"#;

#[test]
fn a_station_is_in_the_table_in_json_and_in_the_trace() -> Outcome {
    let table = fed(&["sim", "run", "-", "--seeds", "2"], MOBILE)?;
    assert!(table.status.success(), "{}", stderr(&table));
    let table = String::from_utf8(table.stdout)?;
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for words in ["lost after", "Station (tcp-ecn, arq mac+link):", "hidden", "memory"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let directory = TempDir::new()?;
    let into = directory.path().join("trace");
    let traced =
        fed(&["sim", "run", "-", "--json", "--trace", into.to_str().expect("text")], MOBILE)?;
    let plain = fed(&["sim", "run", "-", "--json"], MOBILE)?;
    assert_eq!(traced.stdout, plain.stdout, "{}", stderr(&traced));
    let events = std::fs::read_to_string(into.join("events.sqlog"))?;
    assert!(events.contains("\"station\"") && events.contains("duplicate ACK"));
    let report = json(&plain)?;
    let station = &report["runs"][0]["station"];
    assert_eq!((&station["policy"], &station["arq"]), (&"tcp-ecn".into(), &"mac+link".into()));
    // Three tries all fail with a probability of 0.008.
    let lost = station["radio"][0]["residual_loss"].as_f64().expect("a share");
    assert!((0.0005..0.05).contains(&lost), "{lost}");
    assert_eq!(report["aggregate"]["station"]["radio"][0]["residual_loss"]["mean"], lost);
    assert!(station["memory"]["queued"].as_u64() > Some(1_500));
    Ok(())
}
