//! Small sweeps, whole and in shards: they give the same bytes, and no invalid shard is merged.

use std::fs;
use std::num::NonZero;
use std::path::Path;

use airtcp_link::Trace;
use airtcp_sim::SimError;

use super::*;

const GRID: &str = r#"seeds = 3
measures = ["goodput", "time", "retransmissions:bulk"]

[[axis]]
name = "sender"
values = ["sack/reno", "sack/cubic"]

[[axis]]
name = "loss"
values = [1, 2.5, 10]

[scenario]
duration = "500ms"
wire = ["rate 2mbit delay 5ms limit 20 loss {loss}%"]

[[scenario.flow]]
name = "bulk"
strategies = "{sender}"
"#;

const SCENARIO: &str = r#"duration = "300ms"
wire = ["rate 2mbit delay 5ms limit 20 loss 2%"]
flow = [{ strategies = "sack/reno" }]
"#;

/// A single combination.
const ONE: &str = r#"measures = ["goodput"]

[[axis]]
name = "loss"
values = [1]

[scenario]
duration = "200ms"
wire = ["rate 2mbit delay 5ms limit 20 loss {loss}%"]
flow = [{ strategies = "sack/reno" }]
"#;

fn no_trace(name: &str) -> Result<Trace, String> {
    Err(format!("no `{name}` here"))
}

fn read(text: &str) -> Sweep<'_> {
    Sweep::read("grid.toml", text, None, no_trace).unwrap()
}

fn shard(text: &str) -> Shard {
    text.parse().unwrap()
}

fn run(sweep: &Sweep<'_>, name: &str, dir: &Path, threads: usize) -> Done {
    sweep.run(shard(name), dir, NonZero::new(threads), |_| ()).unwrap()
}

/// Returns the names and contents of the files that a merge writes.
fn merged(sweep: &Sweep<'_>, dir: &Path) -> Vec<(String, String)> {
    let files = sweep.merge(dir).unwrap().files;
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    files.iter().map(read).collect()
}

fn whole(sweep: &Sweep<'_>, threads: usize) -> Vec<(String, String)> {
    let dir = tempfile::tempdir().unwrap();
    run(sweep, "1/1", dir.path(), threads);
    merged(sweep, dir.path())
}

#[test]
fn threads_shards_and_their_order_change_no_byte() {
    let sweep = read(GRID);
    let one = whole(&sweep, 1);
    let names: Vec<_> = one.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "records.jsonl",
            "records.csv",
            "means.csv",
            "goodput.svg",
            "time.svg",
            "retransmissions-bulk.svg"
        ]
    );
    assert!(one == whole(&sweep, 4), "four threads");
    let dir = tempfile::tempdir().unwrap();
    for name in ["4/5", "1/5", "5/5", "3/5", "2/5"] {
        run(&sweep, name, dir.path(), 2);
    }
    assert!(one == merged(&sweep, dir.path()), "five shards");
    // More shards than cells: some are empty.
    let dir = tempfile::tempdir().unwrap();
    for number in (1..=20).rev() {
        run(&sweep, &format!("{number}/20"), dir.path(), 1);
    }
    assert!(one == merged(&sweep, dir.path()), "twenty shards");
}

#[test]
fn records_and_means_are_those_of_the_experiment_file() {
    let files = whole(&read(GRID), 2);
    let records: Vec<serde_json::Value> =
        files[0].1.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 18);
    assert!(files[1].1.starts_with("seed,sender,loss,goodput,time,retransmissions:bulk\n"));
    let study = crate::Study::read("grid.toml", GRID, no_trace).unwrap();
    let report = study.run(&crate::Plan::default()).unwrap();
    for (own, study) in records.iter().zip(&report.findings.records) {
        let mut own = own.clone();
        let fields = own.as_object_mut().unwrap();
        assert!(fields.remove("cell").is_some() && fields.remove("hash").is_some());
        assert_eq!(own, serde_json::from_str::<serde_json::Value>(study.get()).unwrap());
    }
    let goodput = |line: &str| line.split(',').nth(3).unwrap().parse().unwrap();
    let goodputs: Vec<f64> = files[1].1.lines().skip(1).take(3).map(goodput).collect();
    let mean = airtcp_sim::Interval::of(&goodputs);
    let (low, high) = mean.bounds();
    let row = files[2].1.lines().nth(1).unwrap();
    let expected = format!("sack/reno,1,{},{low},{high},3,,,,0,", mean.mean);
    assert!(row.starts_with(&expected), "{row}\n{expected}");
    assert!(files[1].1.lines().nth(1).unwrap().split(',').nth(4) == Some(""), "it has no end");
}

#[test]
fn a_killed_shard_goes_on_where_it_was() {
    let sweep = read(GRID);
    let expected = whole(&sweep, 1);
    let dir = tempfile::tempdir().unwrap();
    let done = run(&sweep, "2/2", dir.path(), 1);
    assert_eq!((done.cells, done.earlier, done.is_random), (9, 0, true));
    let first = run(&sweep, "1/2", dir.path(), 1).path;
    let text = fs::read_to_string(&first).unwrap();
    let partial = first.with_added_extension("partial");
    // In the middle of the fifth record, between two records, and before the last line.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    for (cut, earlier) in [(ends[3] + 40, 4), (ends[6], 7), (ends[8], 9), (0, 0)] {
        fs::remove_file(&first).unwrap();
        fs::write(&partial, &text[..cut]).unwrap();
        let error = sweep.merge(dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "1 of 2 shards are not there (not finished: 1): run each of them, as in --shard 1/2"
            ),
            "{error}"
        );
        let counted = std::cell::Cell::new(0);
        let done = sweep
            .run(shard("1/2"), dir.path(), None, |more| counted.set(counted.get() + more))
            .unwrap();
        assert_eq!((done.earlier, counted.get()), (earlier, 9));
        assert!(fs::read_to_string(&first).unwrap() == text && !partial.exists());
        assert_eq!(run(&sweep, "1/2", dir.path(), 1).earlier, 9, "it is there");
    }
    // In a damaged partial file, the records from the damage on are run again.
    let changed = |from: &str, to: &str| {
        let (kept, rest) = text[..ends[6]].split_at(ends[3]);
        assert!(rest.contains(from), "{rest}");
        format!("{kept}{}", rest.replacen(from, to, 1))
    };
    for damaged in [
        changed("\"loss\":10", "\"loss\":11"),
        changed(",\"time\":null", ""),
        changed("\"goodput\":", "\"goodput\":\"1\",\"_\":"),
        changed("\"hash\":\"", "\"hash\":\"0"),
        changed("\"check\":\"", "\"check\":\"0"),
        changed("}", " }"),
    ] {
        fs::remove_file(&first).unwrap();
        fs::write(&partial, damaged).unwrap();
        assert_eq!(run(&sweep, "1/2", dir.path(), 1).earlier, 4);
        assert!(fs::read_to_string(&first).unwrap() == text);
    }
    // A file that a machine left behind when it lost power.
    fs::remove_file(&first).unwrap();
    fs::write(&partial, format!("{}{}", &text[..ends[2]], "\0".repeat(100))).unwrap();
    assert_eq!(run(&sweep, "1/2", dir.path(), 1).earlier, 3);
    assert!(expected == merged(&sweep, dir.path()));
}

#[test]
fn a_cancelled_sweep_keeps_its_records_and_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = Cancel::default();
    let sweep = read(GRID).with_cancel(&cancel);
    let cancelled = sweep.run(Shard::WHOLE, dir.path(), NonZero::new(1), |cells| {
        if cells > 0 {
            cancel.cancel();
        }
    });
    assert!(matches!(cancelled, Err(LabError::Sim(SimError::Cancelled))), "{cancelled:?}");
    let sweep = read(GRID);
    let earlier = run(&sweep, "1/1", dir.path(), 1).earlier;
    assert!((1..sweep.cells()).contains(&earlier), "{earlier}");
    assert_eq!(merged(&sweep, dir.path()), whole(&sweep, 1));
}

#[test]
fn shards_with_gaps_duplicates_or_damage_are_refused_by_name() {
    let sweep = read(GRID);
    let dir = tempfile::tempdir().unwrap();
    for name in ["1/3", "2/3", "3/3"] {
        run(&sweep, name, dir.path(), 2);
    }
    let path = |number: u64| dir.path().join(format!("shards/shard-{number}-of-3.jsonl"));
    let texts = [1, 2, 3].map(|number| fs::read_to_string(path(number)).unwrap());
    let lines: Vec<&str> = texts[1].lines().collect();
    let with = |lines: &[&str]| lines.join("\n") + "\n";
    let refused = |text: &str, expected: &str| {
        fs::write(path(2), text).unwrap();
        let error = sweep.merge(dir.path()).unwrap_err().to_string();
        let expected = format!("{}: {expected}", path(2).display());
        assert!(error.starts_with(&expected), "{error}\n{expected}");
        assert!(!dir.path().join("records.jsonl").exists());
        fs::write(path(2), &texts[1]).unwrap();
    };
    refused(
        &with(&lines[..4]),
        "line 5: it ends before cell 14; remove the file and run --shard 2/3 again",
    );
    refused(&with(&lines[..6]), "line 7: its last line, with the checksum, is missing");
    refused(&texts[1][..300], "line 2: no record of cell 5: damaged");
    refused(&with(&[lines[0], lines[0], lines[1]]), "line 2: cell 2 is there twice");
    refused(&with(&[lines[0], lines[2]]), "line 2: cell 5 is missing");
    refused(&texts[0], "line 1: cell 1 is there twice");
    refused("", "line 1: it ends before cell 2");
    refused(&"x".repeat(3 << 20), "line 1: no record of cell 2: damaged");
    // One digit of a figure, and one digit of the checksum.
    let at = texts[1].find("\"goodput\":").unwrap() + 10;
    let digit = if &texts[1][at..=at] == "1" { "2" } else { "1" };
    let mut changed = texts[1].clone();
    changed.replace_range(at..=at, digit);
    refused(&changed, "line 1: no record of cell 2: damaged");
    refused(
        &texts[1].replace("\"sha256\":\"", "\"sha256\":\"0"),
        "line 7: the checksum is not that of the records: damaged",
    );
    refused(&(texts[1].clone() + lines[0] + "\n"), "line 7: there are lines behind its end");
    assert!(sweep.merge(dir.path()).is_ok());
    let nothing = tempfile::tempdir().unwrap();
    let error = sweep.merge(nothing.path()).unwrap_err().to_string();
    assert!(error.ends_with("shards: there are no shards: run the sweep first"), "{error}");
}

#[test]
fn all_shards_that_are_missing_are_listed() {
    let (sweep, dir) = (read(GRID), tempfile::tempdir().unwrap());
    for number in [1, 2, 4, 5, 6, 8, 13] {
        run(&sweep, &format!("{number}/14"), dir.path(), 1);
    }
    let path = |number: u64| dir.path().join(format!("shards/shard-{number}-of-14.jsonl"));
    fs::rename(path(5), path(5).with_added_extension("partial")).unwrap();
    let error = sweep.merge(dir.path()).unwrap_err().to_string();
    let expected = "8 of 14 shards are not there (missing: 3,7,9-12,14; not finished: 5): run each of them, as in --shard 3/14";
    assert_eq!(error, format!("{}: {expected}", dir.path().join("shards").display()));
    let missing: Vec<_> = sweep.missing(dir.path()).unwrap();
    assert_eq!(missing.iter().map(Shard::to_string).collect::<Vec<_>>()[..2], ["3/14", "5/14"]);
    // A finished shard beside its partial file.
    fs::copy(path(4), path(4).with_added_extension("partial")).unwrap();
    assert_eq!(sweep.missing(dir.path()).unwrap().len(), 8);
}

#[test]
fn another_number_of_shards_is_refused_before_anything_runs() {
    let (sweep, dir) = (read(GRID), tempfile::tempdir().unwrap());
    run(&sweep, "2/3", dir.path(), 1);
    for name in ["1/2", "1/1"] {
        let error = sweep.run(shard(name), dir.path(), None, |_| panic!("it runs")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("it has files of 3 shards, and this run is one of "), "{error}");
        assert!(error.contains("run --shard K/3; else remove "), "{error}");
        assert!(error.ends_with("shard-*-of-3.jsonl*"), "{error}");
    }
    // The files that two simultaneous first runs leave.
    fs::write(dir.path().join("shards/shard-1-of-2.jsonl.partial"), "").unwrap();
    let error = sweep.merge(dir.path()).unwrap_err().to_string();
    let expected =
        "files of 2 shards and of 3: remove shard-*-of-2.jsonl* or shard-*-of-3.jsonl* there";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn another_number_of_seeds_is_reported() {
    let seeds =
        |text: &'static str, seeds| Sweep::read("g.toml", text, Some(seeds), no_trace).unwrap();
    let error = |ours: &Sweep<'_>, dir: &Path, name: &str| {
        ours.run(shard(name), dir, None, |_| ()).unwrap_err().to_string()
    };
    for (theirs, ours) in [(2, 3), (3, 2), (2, 4), (1, 3), (3, 1)] {
        for name in ["1/1", "2/4"] {
            let dir = tempfile::tempdir().unwrap();
            let path = run(&seeds(GRID, theirs), name, dir.path(), 2).path;
            let finished = error(&seeds(GRID, ours), dir.path(), name);
            fs::rename(&path, path.with_added_extension("partial")).unwrap();
            let partial = error(&seeds(GRID, ours), dir.path(), name);
            for error in [finished, partial] {
                assert!(error.contains("choose another directory with --out: line "), "{error}");
                assert!(
                    error.contains(" of the same sweep with another number of seeds; "),
                    "{error}"
                );
            }
        }
    }
    for (theirs, ours, expected) in
        [(2, 4, "a sweep of fewer cells"), (4, 2, "a sweep of more cells")]
    {
        let dir = tempfile::tempdir().unwrap();
        run(&seeds(ONE, theirs), "1/1", dir.path(), 1);
        let error = error(&seeds(ONE, ours), dir.path(), "1/1");
        assert!(error.contains(expected) && error.contains("the number of seeds or"), "{error}");
    }
}

#[test]
fn a_file_system_without_locks_is_no_error() {
    use std::io::{Error, ErrorKind};

    use super::shard::unless_unsupported;

    assert!(unless_unsupported(Err(ErrorKind::Unsupported.into())).is_ok());
    if cfg!(target_os = "linux") {
        for code in [38, 95] {
            assert!(unless_unsupported(Err(Error::from_raw_os_error(code))).is_ok(), "{code}");
        }
    }
    assert!(unless_unsupported(Err(ErrorKind::PermissionDenied.into())).is_err());
}

#[test]
fn another_sweep_is_not_mixed_in() {
    let dir = tempfile::tempdir().unwrap();
    run(&read(GRID), "1/2", dir.path(), 1);
    let shorter = GRID.replace("500ms", "400ms");
    let other = read(&shorter);
    let error = other.run(shard("1/2"), dir.path(), None, |_| ()).unwrap_err().to_string();
    assert!(
        error.contains("choose another directory with --out: line 1 is of another sweep, or"),
        "{error}"
    );
    // Changes that affect no record: comments, the order of keys, labels.
    let same = GRID.replace("[scenario]\n", "# Half a second\n[scenario]\n");
    let same = same.replace("name = \"loss\"", "label = \"%\"\nname = \"loss\"");
    let done = run(&read(&same), "1/2", dir.path(), 1);
    assert_eq!(done.earlier, done.cells);
}

#[test]
fn a_shard_that_another_process_runs_is_waited_for() {
    let (sweep, dir) = (read(GRID), tempfile::tempdir().unwrap());
    let path = run(&sweep, "1/2", dir.path(), 1).path;
    let text = fs::read_to_string(&path).unwrap();
    let partial = path.with_added_extension("partial");
    fs::rename(&path, &partial).unwrap();
    let held = fs::File::options().write(true).open(&partial).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&sweep, "1/2", dir.path(), 1));
        std::thread::sleep(std::time::Duration::from_millis(50));
        fs::rename(&partial, &path).unwrap();
        drop(held);
        assert_eq!(waiting.join().unwrap().earlier, 9);
    });
    assert!(fs::read_to_string(&path).unwrap() == text && !partial.exists());
    assert_eq!(run(&sweep, "2/2", dir.path(), 1).earlier, 0);
}

fn plan(sweep: &Sweep<'_>) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    sweep.plan(None, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_plan_has_a_line_and_a_hash_for_each_cell() {
    let lines = plan(&read(GRID));
    assert_eq!(lines.len(), 18);
    assert_eq!((&lines[17]["cell"], &lines[17]["seed"]), (&18.into(), &3.into()));
    assert_eq!((&lines[17]["sender"], &lines[17]["loss"]), (&"sack/cubic".into(), &10.into()));
    let hash = |line: &serde_json::Value| line["hash"].as_str().unwrap().to_owned();
    let hashes: std::collections::BTreeSet<String> = lines.iter().map(hash).collect();
    assert_eq!(hashes.len(), 18);
    // The hashes of the existing seeds do not change.
    let more = plan(&Sweep::read("other.toml", GRID, Some(4), no_trace).unwrap());
    assert_eq!(hash(&more[2]), hash(&lines[2]));
    assert!(!hashes.contains(&hash(&more[3])));
    let measures = plan(&read(&GRID.replace("\"time\", ", "")));
    assert!(!hashes.contains(&hash(&measures[0])));
}

#[test]
fn a_trace_is_part_of_the_hash() {
    let text = GRID.replace("rate 2mbit", "trace up.trace");
    let hash = |trace: &'static str| {
        let load = move |_: &str| Trace::parse(trace).map_err(|error| error.to_string());
        plan(&Sweep::read("grid.toml", &text, None, load).unwrap())[0]["hash"].clone()
    };
    assert_eq!(hash("1\n5\n"), hash("1\n5\n"));
    assert_ne!(hash("1\n5\n"), hash("1\n6\n"));
}

fn vary(axes: &[(&str, &[&str])]) -> Result<Sweep<'static>, LabError> {
    let text = |text: &&str| (*text).to_owned();
    let axes: Vec<_> =
        axes.iter().map(|(path, values)| (text(path), values.iter().map(text).collect())).collect();
    Sweep::vary("s.toml", SCENARIO, &axes, Some(2), no_trace)
}

#[test]
fn any_key_of_a_scenario_can_be_varied() {
    let sweep =
        vary(&[("flow.0.strategies", &["sack/reno", "rack/bbr3"]), ("flow.0.count", &["1", "2"])]);
    let sweep = sweep.unwrap();
    assert_eq!(sweep.cells(), 8);
    let files = whole(&sweep, 2);
    let head = "seed,flow.0.strategies,flow.0.count,goodput,time,segments,";
    assert!(files[1].1.starts_with(head), "{}", files[1].1);
    let flows: Vec<_> =
        files[1].1.lines().skip(1).map(|line| line.split(',').nth(2).unwrap()).collect();
    assert_eq!(flows, ["1", "1", "2", "2", "1", "1", "2", "2"]);
    assert!(files.iter().any(|(name, text)| name == "goodput.svg" && text.contains("rack/bbr3")));
}

#[test]
fn mistakes_say_where_they_are_and_what_would_be_right() {
    let error = |sweep: Result<Sweep<'_>, LabError>| match sweep
        .and_then(|sweep| sweep.plan(None, &mut Vec::new()))
    {
        Ok(()) => panic!("that is no mistake"),
        Err(error) => error.to_string(),
    };
    let of = |from: &str, to: &str| {
        error(Sweep::read("g.toml", &GRID.replace(from, to), None, no_trace))
    };
    assert!(of("goodput\"", "goodputt\"").starts_with("g.toml:2:13: unknown measure `goodputt`"));
    assert!(of("sack/cubic", "sack/cubci").contains("no congestion control `cubci`"));
    assert!(of("bulk\"]", "web\"]").contains("not every scenario has a flow `web`"));
    let hash = of("loss", "hash");
    assert!(hash.starts_with("axis `hash`: records have a field of that name"), "{hash}");
    let many = "values = [1, 2.5, 10]";
    let values = (0..99_999).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let many = error(Sweep::read(
        "g.toml",
        &GRID.replace(many, &format!("values = [{values}]")),
        Some(9_999),
        no_trace,
    ));
    assert!(many.contains("more than 100000000 cells"), "{many}");
    let wrong = error(vary(&[("flow.0.congestoin", &["reno"])]));
    assert!(wrong.contains("`flow.0.congestoin=reno`: unknown field `congestoin`"), "{wrong}");
    assert!(error(vary(&[("seed", &["1", "2"])])).contains("the seeds of a sweep are 1 to N"));
    let measured = error(vary(&[("goodput", &["1"])]));
    assert!(
        measured.contains("it is measured, and records have a field of that name"),
        "{measured}"
    );
    let axes = [("mtu".to_owned(), vec!["1".to_owned()])];
    let file = error(Sweep::vary("g.toml", GRID, &axes, None, no_trace));
    assert!(file.starts_with("g.toml: this is an experiment file, and --vary takes"), "{file}");
    assert!(error(vary(&[("mtu", &["1", "1"])])).contains("each of them once"));
    assert!(error(vary(&[("a", &["1"]), ("a", &["2"])])).contains("varied twice"));
    // The error comes before the first line is written.
    let mut out = Vec::new();
    let late = GRID.replace("sack/cubic", "sack/cubci");
    assert!(read(&late).plan(None, &mut out).is_err() && out.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = read(GRID).run(Shard::WHOLE, &file, None, |_| ()).unwrap_err().to_string();
    assert!(error.contains("file/shards: Not a directory"), "{error}");
    for text in ["0/3", "4/3", "1", "1/0", "a/b", "1/1000000", "-1/3"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}

#[test]
fn pictures_are_those_of_the_file_or_one_for_each_measure() {
    let names = |text: &str| -> Vec<String> {
        let sweep = read(text);
        match picture::Plot::all(&sweep.design) {
            Ok(plots) => plots.iter().map(|plot| plot.figure(&sweep.design).0).collect(),
            Err(note) => vec![note],
        }
    };
    let own = "\n[[picture]]\nname = \"own\"\nx = \"loss\"\ny = \"goodput\"\nat = { sender = \"sack/reno\" }\n";
    assert_eq!(names(&format!("{GRID}{own}")), ["own.svg"]);
    let delay = |values: &str| {
        GRID.replace(
            "[scenario]",
            &format!("[[axis]]\nname = \"delay\"\nvalues = [{values}]\n[scenario]"),
        )
        .replace("delay 5ms", "delay {delay}")
    };
    // Two names that become the same file name, and a measure that is listed twice.
    let flows = "[[scenario.flow]]\nname = \"a b\"\n[[scenario.flow]]\nname = \"a-b\"\n";
    let measures = r#"measures = ["goodput:a b", "goodput:a-b", "goodput", "goodput"]"#;
    let same = GRID.replace(r#"measures = ["goodput", "time", "retransmissions:bulk"]"#, measures);
    assert_eq!(names(&(same + flows)), ["goodput-a-b.svg", "goodput-a-b-2.svg", "goodput.svg"]);
    let two = names(&delay("\"1ms\", \"2ms\""));
    assert_eq!(two[..2], ["goodput-1.svg", "goodput-2.svg"]);
    // With thirteen delays on the axis, the two senders give the pictures.
    let values: Vec<String> = (1..=13).map(|ms| format!("\"{ms}ms\"")).collect();
    assert_eq!(names(&delay(&values.join(","))).len(), 6);
    let texts = GRID.replace("[1, 2.5, 10]", "[\"1\", \"2\"]");
    assert_eq!(names(&texts), ["no pictures: no axis has several numbers"]);
}
