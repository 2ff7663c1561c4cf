//! `airtcp compare`, and a judge in a scenario, as a user types them: their output and exit codes.

use std::error::Error;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn Error>>;

const LINK: &str = "rate 4mbit delay 10ms limit 20 loss 2% only forth";

fn airtcp(arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
    Ok(Command::new(env!("CARGO_BIN_EXE_airtcp")).args(arguments).output()?)
}

/// Runs `compare` over the link for 2 s with 3 seeds and these additional arguments.
fn compare(arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
    let common = ["compare", LINK, "--seconds", "2", "--seeds", "3"];
    airtcp(&[&common, arguments].concat())
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Result<Value, Box<dyn Error>> {
    assert!(output.status.success(), "{}", stderr(output));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Checks for a single error line on stderr and an empty stdout, and returns the line.
#[track_caller]
fn refused(output: &Output, code: i32) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(output.stdout.is_empty() && text.starts_with("error: "), "{text}");
    text
}

#[test]
fn json_is_the_same_on_one_thread_and_two_and_the_best_is_first() -> Outcome {
    let with = ["--json", "--with", "newreno/reno,rack/westwood,rack/cubic/dcr:timer"];
    let on = |threads| compare(&[&with[..], &["--threads", threads]].concat());
    let (one, two) = (on("1")?, on("2")?);
    assert_eq!(one.stdout, two.stdout);
    assert!(one.stderr.is_empty(), "{}", stderr(&one));
    let report = json(&one)?;
    assert_eq!((&report["seeds"], &report["flows"]), (&3.into(), &1.into()));
    let rows = report["combinations"].as_array().expect("a list");
    assert_eq!(rows.len(), 3);
    let goodput = |row: &Value| row["goodput_bits_per_second"]["mean"].as_f64().expect("a number");
    assert!(rows.is_sorted_by(|a, b| goodput(a) >= goodput(b)));
    assert_eq!(rows[0]["as_good"], true);
    assert_eq!(rows[0]["behind_best_bits_per_second"]["mean"], 0.0);
    assert_eq!(report["beside"], "rack/cubic");
    for row in rows {
        assert!(goodput(row) > 100e3 && goodput(row) < 4e6, "{row}");
        assert_eq!(row["goodput_bits_per_second"]["n"], 3);
        // With a loss of 2 %, about as much is retransmitted.
        let again = row["sent_again_share"]["mean"].as_f64().expect("a number");
        assert!((0.005..0.08).contains(&again), "{row}");
        let lost = row["link_harmed_share"]["mean"].as_f64().expect("a number");
        assert!((0.01..0.03).contains(&lost), "{row}");
        let behind = row["behind_best_bits_per_second"]["mean"].as_f64().expect("a number");
        assert!((behind - (goodput(&rows[0]) - goodput(row))).abs() < 1.0, "{row}");
        let share = &row["share_beside_cubic"];
        assert!(share["n"] == 3 && (0.2..0.9).contains(&share["mean"].as_f64().unwrap()), "{row}");
        assert!(row["rtt_inflation"]["mean"].as_f64() >= Some(1.0), "{row}");
        // 10 ms in each direction, plus the transmission time.
        assert!(row["rtt_seconds"]["mean"].as_f64() > Some(0.020), "{row}");
    }
    // The recommendation is one of the rows, and includes the share that a flow of cubic keeps
    // beside it.
    let recommended = &report["recommendation"];
    let row = rows.iter().find(|row| row["combination"] == recommended["combination"]);
    let row = row.expect("one of the rows");
    assert_eq!(recommended["goodput_bits_per_second"], row["goodput_bits_per_second"]["mean"]);
    let kept = recommended["cubic_keeps_share"].as_f64().expect("a number");
    assert!((0.4..3.0).contains(&kept), "{recommended}");
    let base = report["base_rtt_seconds"].as_f64().expect("a number");
    // The delay in both directions, plus the transmission times of 1500 bytes and of an ACK of 52.
    assert!((base - 0.023_104).abs() < 1e-9, "{base}");
    Ok(())
}

#[test]
fn the_result_of_a_combination_does_not_depend_on_the_others() -> Outcome {
    let row = |with| -> Result<Value, Box<dyn Error>> {
        let report = json(&compare(&["--json", "--with", with])?)?;
        let rows = report["combinations"].as_array().expect("a list");
        let mine = rows.iter().find(|row| row["combination"] == "sack/fixed:40");
        Ok(mine.expect("its row")["rtt_inflation"].clone())
    };
    // Alone, this combination never leaves the queue empty.
    assert_eq!(row("sack/fixed:40")?, row("sack/fixed:40,rack/cubic,sack/fixed:1")?);
    Ok(())
}

#[test]
fn the_recommendation_does_not_depend_on_a_row_of_cubic() -> Outcome {
    let recommended = |with| -> Result<Value, Box<dyn Error>> {
        Ok(json(&compare(&["--json", "--with", with])?)?["recommendation"].clone())
    };
    let alone = recommended("le/westwood")?;
    assert!(alone["cubic_keeps_share"].is_number(), "{alone}");
    assert_eq!(alone, recommended("le/westwood,rack/cubic")?);
    // Beside itself, cubic keeps everything.
    assert_eq!(recommended("rack/cubic")?["cubic_keeps_share"], 1.0);
    Ok(())
}

#[test]
fn the_page_has_every_field_and_its_example_is_a_recommendation() -> Outcome {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/compare.md"))?;
    let report = json(&compare(&["--json", "--with", "rack/cubic,rack/reno/rr"])?)?;
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    for key in keys(&report) {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
    for part in [&report["combinations"][0], &report["recommendation"]] {
        for key in keys(part) {
            assert!(page.contains(&format!("`.{key}`")), "{key}");
        }
    }
    let (_, example) = page.split_once("```json").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let example: Value = serde_json::from_str(example)?;
    assert_eq!(keys(&example), keys(&report["recommendation"]));
    Ok(())
}

#[test]
fn a_run_is_what_sim_run_makes_of_the_same_scenario() -> Outcome {
    let report = json(&compare(&["--json", "--with", "sack/cubic"])?)?;
    let directory = TempDir::new()?;
    let path = directory.path().join("same.toml");
    let flow = "[[flow]]\ndetection = \"sack\"\ncongestion = \"cubic\"\n";
    let wire = format!("[[wire]]\nforth = \"{LINK}\"\nback = \"{LINK}\"\n");
    fs::write(&path, format!("duration = \"2s\"\nwarm_up = \"400ms\"\n{wire}{flow}"))?;
    let path = path.to_str().expect("it is text");
    let same = json(&airtcp(&["sim", "run", path, "--seeds", "3", "--json"])?)?;
    let row = &report["combinations"][0];
    assert_eq!(row["goodput_bits_per_second"], same["aggregate"]["flows"][0]["goodput"]);
    assert_eq!(row["timeouts"], same["aggregate"]["flows"][0]["timeouts"]);
    Ok(())
}

#[test]
fn the_way_of_the_acks_may_be_another_and_changes_are_seen_before_and_after() -> Outcome {
    let forth = "rate 4mbit delay 10ms limit 20 at 1s rate 2mbit";
    let back = "delay 10ms aggregate 8ms packets 9";
    let arguments = ["compare", forth, "--back", back, "--with", "rack/cubic", "--json"];
    let report = json(&airtcp(&arguments)?)?;
    assert_eq!(
        report["link"],
        serde_json::json!([
            format!("rate 4mbit limit 20 delay 10ms seed 0 at 1s rate 2mbit"),
            format!("{back} seed 0")
        ])
    );
    assert_eq!(report["seconds"], 30.0, "20 s, a second before them, and rounded up");
    let directory = TempDir::new()?;
    let path = directory.path().join("same.toml");
    let flow = "[[flow]]\nstrategies = \"rack/cubic\"\n";
    let wire = format!("[[wire]]\nforth = \"{forth}\"\nback = \"{back}\"\n{flow}");
    fs::write(&path, format!("duration = \"30s\"\nwarm_up = \"6s\"\n{wire}"))?;
    let path = path.to_str().expect("it is text");
    let same = json(&airtcp(&["sim", "run", path, "--json"])?)?;
    let goodput = &report["combinations"][0]["goodput_bits_per_second"];
    assert_eq!(*goodput, same["aggregate"]["flows"][0]["goodput"]);
    let named =
        ["compare", "lte", "--back", "edge", "--with", "rack/cubic", "--seconds", "1", "--json"];
    let named = json(&airtcp(&named)?)?;
    assert_eq!(named["link"][1], "rate 200kbit limit 20 delay 440ms seed 0", "the way up");
    let wrong = refused(&airtcp(&["compare", LINK, "--back", "delay 10"])?, 2);
    assert!(wrong.contains("--back") && wrong.contains("at byte 6, `10`"), "{wrong}");
    let late = refused(&airtcp(&["compare", forth, "--seconds", "1"])?, 1);
    assert!(late.contains("it changes at 1s, and the run ends at 1s"), "{late}");
    Ok(())
}

#[test]
fn drops_of_a_policer_have_a_column() -> Outcome {
    // The policer is the link's only rate.
    let link = ["compare", "police rate 2mbit burst 30kb delay 10ms", "--seconds", "5"];
    let with = ["--with", "rack/cubic,rack/reno"];
    let report = json(&airtcp(&[&link[..], &with, &["--json"]].concat())?)?;
    for row in report["combinations"].as_array().expect("a list") {
        assert!(row["policed_share"]["mean"].as_f64() > Some(0.0), "{row}");
        assert_eq!(
            (&row["queue_dropped_share"]["mean"], &row["link_harmed_share"]["mean"]),
            (&0.0.into(), &0.0.into())
        );
    }
    let table = String::from_utf8(airtcp(&[&link[..], &with].concat())?.stdout)?;
    assert!(
        table.contains("iced %") && table.contains("share that the policer dropped"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let none = String::from_utf8(compare(&with)?.stdout)?;
    assert!(!none.contains("iced"), "{none}");
    Ok(())
}

#[test]
fn the_table_has_the_usual_combinations_and_the_picture_all_of_them() -> Outcome {
    let directory = TempDir::new()?;
    let path = directory.path().join("compare.svg");
    let output = compare(&["--picture", path.to_str().expect("it is text")])?;
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout)?;
    let svg = fs::read_to_string(&path)?;
    for name in ["rack/cubic", "le:echo/cubic", "le/westwood", "rack/cubic/hack"] {
        assert!(table.contains(name) && svg.contains(name), "{name}: {table}");
    }
    for words in
        ["one flow of rack/cubic", "keeps", "queue", "link", "\n* ", "seeds 1 to 3", "--with all"]
    {
        assert!(table.contains(words), "{words}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(!table.contains("Jain") && !table.contains("fixed"), "{table}");
    Ok(())
}

#[test]
fn several_flows_have_jains_index_and_their_goodput_together() -> Outcome {
    let flows = ["--flows", "3", "--with", "sack/reno"];
    let report = json(&compare(&[&flows[..], &["--json"]].concat())?)?;
    let row = &report["combinations"][0];
    let jain = row["jain"]["mean"].as_f64().expect("a number");
    assert!((0.4..1.0).contains(&jain), "{row}");
    assert!(row["goodput_bits_per_second"]["mean"].as_f64() > Some(2e6), "{row}");
    let table = String::from_utf8(compare(&flows)?.stdout)?;
    assert!(table.contains("Jain") && !table.contains("keeps") && !table.contains("--with"));
    let joined = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("with one flow only: omit --flows"), "{table}");
    Ok(())
}

#[test]
fn a_combination_without_goodput_has_no_rank() -> Outcome {
    let dead =
        ["compare", "rate 1mbit loss 100%", "--seconds", "2", "--with", "rack/cubic,sack/reno"];
    let report = json(&airtcp(&[&dead[..], &["--json"]].concat())?)?;
    let row = &report["combinations"][0];
    for field in ["as_good", "behind_best_bits_per_second", "rtt_seconds", "share_beside_cubic"] {
        assert!(row[field].is_null(), "{field}: {row}");
    }
    let table = String::from_utf8(airtcp(&dead)?.stdout)?;
    assert!(table.contains("NO DATA arrived from 0.4 s to 2 s with all of them"), "{table}");
    assert!(!table.contains("*") && !table.contains("seeds 1 to"), "{table}");
    Ok(())
}

#[test]
fn a_link_without_randomness_has_one_run() -> Outcome {
    let link = [
        "compare",
        "rate 4mbit delay 10ms codel",
        "--seconds",
        "2",
        "--with",
        "rack/cubic,sack/reno",
    ];
    let report = json(&airtcp(&[&link[..], &["--json", "--seeds", "5"]].concat())?)?;
    assert_eq!((&report["is_random"], &report["seeds"]), (&false.into(), &1.into()));
    for row in report["combinations"].as_array().expect("a list") {
        assert_eq!(row["goodput_bits_per_second"]["n"], 1);
        assert!(row["goodput_bits_per_second"]["half_width"].is_null(), "{row}");
    }
    let table = String::from_utf8(airtcp(&link)?.stdout)?;
    assert!(table.contains("one run: nothing is random"), "{table}");
    assert!(!table.contains("±") && !table.contains("*"), "{table}");
    Ok(())
}

#[test]
fn a_strategy_that_draws_runs_with_all_seeds_on_a_link_without_randomness() -> Outcome {
    let with = ["--seconds", "12", "--seeds", "3", "--with", "rack/bbr3,rack/cubic", "--json"];
    let report =
        json(&airtcp(&[&["compare", "rate 4mbit delay 10ms limit 20"], &with[..]].concat())?)?;
    assert_eq!((&report["is_random"], &report["seeds"]), (&true.into(), &3.into()));
    for row in report["combinations"].as_array().expect("a list") {
        let goodput = &row["goodput_bits_per_second"];
        assert_eq!(goodput["n"], 3, "{row}");
        // The other combination draws nothing, and has the same result with each seed; 1 bit/s
        // allows for rounding.
        let differs = goodput["half_width"].as_f64().expect("an interval") > 1.0;
        assert_eq!(differs, row["combination"] == "rack/bbr3", "{row}");
    }
    Ok(())
}

#[test]
fn a_run_is_as_long_as_the_round_trip_asks_for() -> Outcome {
    let slow = ["compare", "rate 100kbit delay 1s limit 5", "--with", "rack/cubic"];
    let report = json(&airtcp(&[&slow[..], &["--json"]].concat())?)?;
    assert_eq!(report["seconds"], 320.0);
    let asked = json(&airtcp(&[&slow[..], &["--json", "--seconds", "30"]].concat())?)?;
    assert_eq!(asked["seconds"], 30.0);
    let table = String::from_utf8(airtcp(&slow)?.stdout)?;
    assert!(table.contains("--seconds sets another"), "{table}");
    Ok(())
}

#[test]
fn ties_are_reported_with_the_options_that_separate_them() -> Outcome {
    let table = String::from_utf8(compare(&["--with", "rack/cubic,le/cubic,sack/cubic"])?.stdout)?;
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("--seconds 4 --seeds 6 separates more of them"), "{table}");
    Ok(())
}

#[test]
fn buffers_do_not_limit_a_link_that_holds_much() -> Outcome {
    // 37.5 MB: 100 Mbit/s over 600 ms, and a queue of 20,000 packets. Four times that exceeds the
    // largest buffer.
    let link = ["compare", "rate 100mbit delay 300ms limit 20000", "--seconds", "20"];
    let with = ["--with", "rack/fixed:13000"];
    let report = json(&airtcp(&[&link[..], &with, &["--json"]].concat())?)?;
    assert_eq!(report["buffer_bytes"].as_u64(), Some(128 << 20), "{report}");
    let row = &report["combinations"][0];
    // 13,000 packets take 2.6 round trips of the idle link; those that fit into 16 MiB take 2.3.
    assert!(row["rtt_inflation"]["mean"].as_f64() > Some(2.4), "{row}");
    let table = String::from_utf8(airtcp(&[&link[..], &with].concat())?.stdout)?;
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains("see --send-buffer and --receive-buffer"), "{table}");
    let small = json(&compare(&["--json", "--with", "rack/cubic"])?)?;
    assert!(small["buffer_bytes"].is_null(), "{small}");
    Ok(())
}

#[test]
fn a_combination_that_floods_the_queue_or_a_policer_is_marked() -> Outcome {
    let link = ["compare", "rate 1mbit delay 20ms limit 10", "--with", "rack/reno,rack/reno/rr"];
    let table = String::from_utf8(airtcp(&link)?.stdout)?;
    assert!(table.contains("rack/reno/rr !") && table.contains("!: floods the queue"), "{table}");
    assert!(!table.contains("rack/reno !"), "{table}");
    let table = String::from_utf8(
        airtcp(&["compare", "policed", "--with", "le/reno,rack/westwood"])?.stdout,
    )?;
    assert!(table.contains("rack/westwood !") && !table.contains("le/reno !"), "{table}");
    assert!(table.contains("Recommended: --strategies le/reno,"), "{table}");
    Ok(())
}

#[test]
fn a_link_without_a_rate_is_refused_at_once() -> Outcome {
    let text = refused(&airtcp(&["compare", "delay 20ms loss 1%"])?, 2);
    assert!(text.contains("no rate") && text.contains("rate 1gbit delay 20ms"), "{text}");
    Ok(())
}

#[test]
fn mistakes_are_one_line_that_names_what_there_is() -> Outcome {
    let name = refused(&compare(&["--with", "rack/cubic,sack/vega"])?, 2);
    assert!(name.contains("no congestion control `vega`: use one of reno, cubic"), "{name}");
    let judge = refused(&compare(&["--with", "rack/cubic/dcr"])?, 2);
    assert!(judge.contains("no judge `dcr`: use one of hack"), "{judge}");
    for with in ["rack/cubic,,", "", "rack//hack", "rack/cubic/"] {
        let none = refused(&compare(&["--with", with])?, 2);
        assert!(none.contains("for example --with"), "{none}");
    }
    assert!(refused(&compare(&["--picture", "a.png"])?, 2).contains(".svg"));
    let none = refused(&compare(&["--with", "rack/fixed"])?, 2);
    assert!(none.contains("`fixed` needs a parameter: it takes 1 to 65535 segments"), "{none}");
    let link = refused(&airtcp(&["compare", "geo-satelite"])?, 2);
    assert!(link.contains("did you mean `geo-satellite`?"), "{link}");
    assert!(refused(&airtcp(&["compare", LINK, "--seeds", "0"])?, 2).contains("1 to 100000"));
    let trace = refused(&airtcp(&["compare", "trace /no/such/file"])?, 1);
    assert!(trace.contains("/no/such/file"), "{trace}");
    Ok(())
}

#[test]
fn a_directory_gets_json_and_picture_and_keeps_them() -> Outcome {
    let directory = TempDir::new()?;
    let out = directory.path().join("results");
    let with = ["--with", "rack/cubic,le/westwood", "--out", out.to_str().expect("it is text")];
    let printed = compare(&with)?;
    assert!(printed.status.success(), "{}", stderr(&printed));
    let written = serde_json::from_slice::<Value>(&fs::read(out.join("compare.json"))?)?;
    assert_eq!(written, json(&compare(&["--with", "rack/cubic,le/westwood", "--json"])?)?);
    assert!(fs::read_to_string(out.join("compare.svg"))?.starts_with("<svg"));
    let refusal = refused(&compare(&with)?, 2);
    assert!(refusal.contains("has results already: choose another"), "{refusal}");
    Ok(())
}

#[test]
fn a_picture_that_cannot_be_written_is_an_error_before_all_runs() -> Outcome {
    let long = ["compare", LINK, "--seconds", "1000000", "--picture", "/no/such/place/a.svg"];
    let text = refused(&airtcp(&long)?, 1);
    assert!(text.contains("--picture /no/such/place/a.svg"), "{text}");
    Ok(())
}

#[test]
fn broken_connections_are_reported() -> Outcome {
    let link = "rate 1mbit delay 5ms down 1s 10000s";
    let arguments = ["compare", link, "--seconds", "3000", "--seeds", "1", "--with", "rack/cubic"];
    let table = String::from_utf8(airtcp(&arguments)?.stdout)?;
    assert!(table.contains("rack/cubic BROKEN") && table.contains("BROKEN: 3 conn"), "{table}");
    Ok(())
}

#[test]
fn each_flow_of_a_scenario_has_its_own_judges() -> Outcome {
    let directory = TempDir::new()?;
    let path = directory.path().join("judges.toml");
    let wire = "duration = \"2s\"\n[bottleneck]\nforth = \"rate 5mbit delay 10ms limit 30\"\n";
    let flows = "[[flow]]\n[[flow]]\ndetection = \"sack\"\njudge = \"hack+dcr:timer\"\n";
    fs::write(&path, format!("{wire}{flows}"))?;
    let path = path.to_str().expect("it is text");
    let set = ["sim", "run", path, "--json", "--set", "flow.0.judge=dcr:count"];
    let report = json(&airtcp(&set)?)?;
    let flows = &report["runs"][0]["flows"];
    assert_eq!(flows[0]["combination"], "rack/bbr3/dcr:count");
    assert_eq!(flows[1]["combination"], "sack/bbr3/hack+dcr:timer");
    Ok(())
}

#[test]
fn rrtp_is_compared_with_tcp_alone_and_beside_it() -> Outcome {
    let report = json(&compare(&["--json", "--with", "sack/reno,rrtp+rate=4mbit,rrtp"])?)?;
    let rows = report["combinations"].as_array().expect("a list");
    let of = |name: &str| rows.iter().find(|row| row["combination"] == name).expect("a row");
    for name in ["rrtp+rate=4mbit", "rrtp"] {
        let row = of(name);
        let number = |key: &str| row[key]["mean"].as_f64().expect("a number");
        // The loss of 2 % is the link's, and reno takes it for congestion.
        assert!(
            number("goodput_bits_per_second")
                > of("sack/reno")["goodput_bits_per_second"]["mean"].as_f64().unwrap(),
            "{row}"
        );
        assert!((0.005..0.08).contains(&number("sent_again_share")), "{row}");
        assert!(number("rtt_inflation") >= 1.0, "{row}");
        assert_eq!(row["share_beside_cubic"]["n"], 3);
        assert_eq!(row["broken_connections"], 0);
        assert!(row["timeouts"].is_null(), "{row}");
    }
    Ok(())
}
