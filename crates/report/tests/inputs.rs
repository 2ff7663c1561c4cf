//! Accepted inputs, and errors with their file and line.

use std::fs;
use std::path::Path;

use airtcp_report::{check_output, html};

const SUMMARY: &str = r#"{"experiment":"le/fig4","what":"Recovery time","source":"LE 3.1","kind":"study","ground":"simulated","command":"airtcp lab run le/fig4","seeds":2,"table":{"columns":["lost","reno, ms"],"rows":[["1","91 ± 90"]]},"claims":[{"what":"runs without a time-out","claimed":"18","measured":"17 ± 1","verdict":"holds"},{"what":"cuts","claimed":"1","measured":"<b>2</b>","verdict":"does-not-hold","reason":"a reason"}],"notes":["A note."],"pictures":[{"file":"fig4.svg","title":"A picture"}]}"#;

fn experiment(directory: &Path, summary: &str) {
    let directory = directory.join("le/fig4");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("summary.json"), format!("{summary}\n")).unwrap();
    fs::write(directory.join("records.jsonl"), "{\"seed\":1}\n").unwrap();
    fs::write(directory.join("fig4.svg"), "<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    fs::write(directory.join("scenario-1.toml"), "name = \"a & b\"\n").unwrap();
}

fn refusal(directory: &Path) -> String {
    html("A page", &[directory]).unwrap_err().to_string()
}

#[test]
fn an_experiment_has_verdicts_a_table_its_picture_and_its_scenario() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), SUMMARY);
    let page = html("A page", &[dir.path()]).unwrap();
    for part in [
        "2 claims: 1 hold, 1 do not hold, 0 are not comparable.",
        "<b class=\"good\">holds</b>",
        "<b class=\"bad\">does not hold</b>",
        ">a reason</td>",
        "&lt;b&gt;2&lt;/b&gt;",
        "<td class=\"n\">91 ± 90</td>",
        "<pre>airtcp lab run le/fig4</pre>",
        "name = &quot;a &amp; b&quot;",
    ] {
        assert!(page.contains(part), "no {part}");
    }
    assert_eq!(page.matches("<img ").count(), 1, "the picture is shown once");
    assert!(!page.contains("<h2>Scenario"), "the scenario is part of the experiment");
}

#[test]
fn a_later_directory_replaces_results_of_the_same_experiment() {
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    experiment(old.path(), SUMMARY);
    experiment(new.path(), &SUMMARY.replace("17 ± 1", "16 ± 1"));
    let page = html("A page", &[old.path(), new.path()]).unwrap();
    assert!(page.contains("16 ± 1") && !page.contains("17 ± 1"));
}

#[test]
fn published_results_have_their_pictures_below_the_summaries() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), SUMMARY);
    fs::remove_file(dir.path().join("le/fig4/summary.json")).unwrap();
    fs::remove_file(dir.path().join("le/fig4/records.jsonl")).unwrap();
    fs::write(dir.path().join("summaries.jsonl"), format!("{SUMMARY}\n")).unwrap();
    let page = html("A page", &[dir.path()]).unwrap();
    assert_eq!(page.matches("<img ").count(), 1);
}

#[test]
fn damaged_files_are_named_with_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let check = |name: &str, text: &str, place: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let error = refusal(dir.path());
        assert!(error.starts_with(&format!("{}:{place}", path.display())), "{error}");
        assert!(!error.contains('\n') && !error.contains(" at line "), "{error}");
        fs::remove_file(path).unwrap();
    };
    check("a.json", "{\n\"a\": 1,\n oops\n}", "3: ");
    check("b.jsonl", "{\"a\": 1}\n{\"a\": \n", "2: ");
    let state = r#"{"time":0.1,"link":"bottleneck","way":"forth","packets":1,"bytes":9}"#;
    check("states.jsonl", &format!("{state}\n{state}\n{{\"time\":1}}\n"), "3: not a state");
    check("summaries.jsonl", &format!("{SUMMARY}\n{{}}\n"), "2: missing field");
    let outside = SUMMARY.replace("fig4.svg", "../../../etc/passwd");
    check("summaries.jsonl", &outside, "1: `../../../etc/passwd`: expected a path below");
    check("compare.json", "{\"combinations\": [],\n\"warm_up_seconds\": \"x\"}", "2: ");
    fs::write(dir.path().join("c.json"), b"{\n\"a\": \"\xff\"}").unwrap();
    assert!(refusal(dir.path()).contains("c.json:2: not UTF-8"));
}

#[test]
fn nothing_to_show_is_an_error_that_says_what_is_expected() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("notes.txt"), "").unwrap();
    assert!(refusal(dir.path()).contains("no results in it: expected a trace"));
    assert!(refusal(&dir.path().join("notes.txt")).contains("not a result: expected a directory"));
    assert!(refusal(&dir.path().join("missing")).contains("missing: "));
}

#[test]
fn a_comparison_is_a_table_and_a_chart() {
    let dir = tempfile::tempdir().unwrap();
    let row = r#"{"combination":"rack/cubic","goodput_bits_per_second":{"mean":1500000.0,"half_width":20000.0,"sd":1.0,"n":3},"as_good":true,"rtt_seconds":{"mean":0.05,"half_width":null,"sd":0.0,"n":1},"timeouts":null}"#;
    let text = format!(
        r#"{{"link":["rate 2mbit","rate 2mbit"],"seconds":20.0,"warm_up_seconds":4.0,"seeds":3,"flows":1,"base_rtt_seconds":0.04,"beside":null,"combinations":[{row}],"recommendation":null}}"#
    );
    fs::write(dir.path().join("compare.json"), text).unwrap();
    let page = html("A page", &[dir.path()]).unwrap();
    assert!(page.contains("<td class=\"n\">1.500 ± 0.020</td>"));
    assert!(page.contains("\"name\":\"rack/cubic\",\"color\":\"c0\",\"look\":\"dots\",\"seen\":1,\"x\":[50000],\"y\":[1500000]"));
    for label in ["round-trip time, less is better", "goodput, more is better"] {
        assert!(page.contains(&format!("\"label\":\"{label}\"")), "{label}");
    }
    let command = "airtcp compare &#39;rate 2mbit&#39; --back &#39;rate 2mbit&#39; --flows 1 --seeds 3 --seconds 20 --with rack/cubic";
    assert!(page.contains(command), "arguments with spaces are quoted");
    assert!(!page.contains("time-outs</th>"), "columns without values are left out");
}

#[test]
fn a_summary_of_a_user_is_a_record_like_others() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("summary.json"), "{\n\"goodput\": 1.5\n}\n").unwrap();
    fs::write(dir.path().join("other.json"), "{\"delay\": 2}").unwrap();
    let page = html("A page", &[dir.path()]).unwrap();
    assert!(page.contains("<td>goodput</td>") && page.contains("<td>delay</td>"));
}

#[test]
fn blank_lines_of_summaries_are_skipped() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), SUMMARY);
    fs::remove_file(dir.path().join("le/fig4/summary.json")).unwrap();
    fs::write(dir.path().join("summaries.jsonl"), format!("\n{SUMMARY}\n\n")).unwrap();
    assert!(html("A page", &[dir.path()]).unwrap().contains("2 claims:"));
}

#[test]
fn a_path_given_twice_and_the_shards_of_a_sweep_are_shown_once() {
    let dir = tempfile::tempdir().unwrap();
    let shards = dir.path().join("shards");
    fs::create_dir(&shards).unwrap();
    fs::write(dir.path().join("records.jsonl"), "{\"cell\": 1}\n").unwrap();
    fs::write(dir.path().join("records.csv"), "seed,loss,rtt\n1,0,0.5\n").unwrap();
    fs::write(shards.join("shard-1-of-1.jsonl"), "{\"cell\": 1}\n").unwrap();
    let count = |paths: &[&Path]| html("A page", paths).unwrap().matches(">cell</th>").count();
    assert_eq!(count(&[dir.path()]), 2, "without means it is no sweep that is merged");
    fs::write(dir.path().join("means.csv"), "loss,mine\n0,1\n").unwrap();
    assert_eq!(count(&[dir.path()]), 2, "these means are not of a sweep");
    fs::write(dir.path().join("means.csv"), "loss,rtt,rtt_low,rtt_high,rtt_runs\n0,0.5,,,1\n")
        .unwrap();
    fs::write(dir.path().join("rtt.svg"), "<svg/>").unwrap();
    let page = html("A page", &[dir.path(), &dir.path().join(".")]).unwrap();
    assert!(!page.contains(">cell</th>"));
    // Once each: the picture, the mean, and the runs, which a reader opens.
    let (_, body) = page.split_once("<main>").unwrap();
    let places = ["<figure><img", "<td class=\"n\">0.5</td>", "<summary>All runs: 1</summary>"];
    let places = places.map(|part| body.find(part).unwrap_or_else(|| panic!("{part} in {body}")));
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(body.matches("<img").count(), 1);
}

#[test]
fn results_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    experiment(dir.path(), SUMMARY);
    let scenario = dir.path().join("x.toml");
    fs::write(&scenario, "").unwrap();
    fs::write(dir.path().join("report.html"), "").unwrap();
    let check = |input: &Path, output: &str| check_output(&[input], &dir.path().join(output));
    for (input, output) in [
        (scenario.as_path(), "x.toml"),
        (dir.path(), "le/../x.toml"),
        (dir.path(), "le/fig4/records.jsonl"),
        (&dir.path().join("le/fig4/summary.json"), "le/fig4/fig4.svg"),
    ] {
        let error = check(input, output).unwrap_err().to_string();
        assert!(error.contains("would overwrite: choose another file"), "{error}");
    }
    for output in ["report.html", "new.json"] {
        check(dir.path(), output).unwrap();
    }
    check(&scenario, "le/fig4/records.jsonl").unwrap();
}

#[cfg(unix)]
#[test]
fn links_and_pipes_below_a_directory_are_not_read() {
    use std::os::unix::fs::symlink;

    let [dir, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret.json"), "{\"secret\": 1}").unwrap();
    fs::write(outside.path().join("picture.svg"), "<svg/>").unwrap();
    experiment(dir.path(), SUMMARY);
    let experiment = dir.path().join("le/fig4");
    let links = [
        ("secret.json", dir.path().join("a.json")),
        ("secret.json", dir.path().join("packets.pcapng")),
        ("secret.json", experiment.join("b.toml")),
        ("", dir.path().join("directory")),
    ];
    for (to, from) in links {
        symlink(outside.path().join(to), from).unwrap();
    }
    fs::remove_file(experiment.join("fig4.svg")).unwrap();
    symlink(outside.path().join("picture.svg"), experiment.join("fig4.svg")).unwrap();
    // Reading it would block.
    let pipe = std::process::Command::new("mkfifo").arg(dir.path().join("pipe.json")).status();
    assert!(pipe.unwrap().success());
    let page = html("A page", &[dir.path()]).unwrap();
    assert!(!page.contains("secret") && !page.contains("<img "));
    assert!(page.contains("fig4.svg is no regular file: not shown."));
    let list = tempfile::tempdir().unwrap();
    fs::write(list.path().join("summaries.jsonl"), SUMMARY).unwrap();
    symlink(dir.path().join("le"), list.path().join("le")).unwrap();
    let page = html("A page", &[list.path()]).unwrap();
    assert!(!page.contains("<img ") && !page.contains("a &amp; b"));
}

#[test]
fn counts_of_a_record_may_be_as_large_as_they_like() {
    let dir = tempfile::tempdir().unwrap();
    let flow = format!(
        r#"{{"name":"a","copy":{},"combination":"rack/cubic","goodput":1.0,"bytes":1}}"#,
        u64::MAX
    );
    let text = format!(
        r#"{{"scenario":"a","seeds":[1],"runs":[{{"seed":1,"flows":[{flow}]}}],"aggregate":{{"flows":[],"links":[]}}}}"#
    );
    fs::write(dir.path().join("sim.json"), text).unwrap();
    fs::write(dir.path().join("it's.toml"), "").unwrap();
    let page = html("A page", &[dir.path()]).unwrap();
    assert!(page.contains(&u64::MAX.to_string()));
    assert!(page.contains(r"it&#39;\&#39;&#39;s.toml&#39; --seed 1"), "the path is quoted");
}
