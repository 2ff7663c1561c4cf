//! Every kind of mistake has a line here, and its position is checked to the column.

mod settings;

use std::time::Duration;

use airtcp_basestation::station::Mark;
use airtcp_basestation::{Policy, StationConfig};
use airtcp_link::named;
use airtcp_link::{Arq, LinkSpec};
use airtcp_recovery::{Profile, RtoForm};
use airtcp_types::ByteCount;

use super::*;
use crate::{App, Change, FlowDirection, Topology};

const SMALL: &str = r#"duration = "2s"
[bottleneck]
forth = "rate 10mbit delay 10ms limit 50"

[[flow]]
congestion = "reno"
count = 2
"#;

fn no_trace(name: &str) -> Result<Trace, String> {
    Err(format!("no `{name}` here"))
}

fn read_with(text: &str, settings: &[&str]) -> Result<Scenario, SimError> {
    let settings: Vec<Setting> = settings.iter().map(|text| text.parse().unwrap()).collect();
    Source { name: "s.toml", text, settings: &settings }.read(no_trace)
}

fn read(text: &str) -> Result<Scenario, SimError> {
    read_with(text, &[])
}

#[track_caller]
fn error(text: &str) -> String {
    let error = read(text).unwrap_err();
    assert!(matches!(error, SimError::File { .. }), "{error:?}");
    one_line(error)
}

#[track_caller]
fn set_error(settings: &[&str]) -> String {
    let error = read_with(SMALL, settings).unwrap_err();
    assert!(matches!(error, SimError::Setting { .. }), "{error:?}");
    one_line(error)
}

#[track_caller]
fn one_line(error: SimError) -> String {
    let text = error.to_string();
    assert!(!text.contains(['\n', '\r']), "{text}");
    text
}

fn spec(text: &str) -> LinkSpec {
    text.parse().unwrap()
}

#[test]
fn a_small_file_has_defaults_for_the_rest() {
    let scenario = read(SMALL).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed, scenario.samples), ("s", 1, false));
    assert_eq!(scenario.duration, Duration::from_secs(2));
    assert_eq!(scenario.warm_up, Duration::ZERO);
    let Topology::Dumbbell { access, bottleneck } = &scenario.topology else {
        panic!("that is a dumbbell")
    };
    assert_eq!(*access, crate::Wire::default());
    assert_eq!(bottleneck.forth, spec("rate 10mbit delay 10ms limit 50"));
    assert_eq!(bottleneck.back, bottleneck.forth);
    let [flow] = scenario.flows.as_slice() else { panic!("that is one flow") };
    assert_eq!((flow.name.as_str(), flow.count), ("rack/reno", 2));
    let usual = crate::FlowSpec::new("rack/reno".parse().unwrap());
    assert_eq!(format!("{:?}", crate::FlowSpec { count: 2, ..usual }), format!("{flow:?}"));
}

#[test]
fn a_combination_is_taken_whole_as_tables_show_it() {
    let text = SMALL.replace("congestion = \"reno\"", "strategies = \"sack/reno/hack\"");
    let scenario = read(&text).unwrap();
    assert_eq!(scenario.flows[0].sender.to_string(), "sack/reno/hack");
}

#[test]
fn rrtp_is_named_where_a_combination_is() {
    let with = |value: &str| {
        read(&SMALL.replace("congestion = \"reno\"", &format!("strategies = \"{value}\"")))
    };
    let name = "rrtp:wireless-last-hop+rate=144kbit";
    let flow = &with(name).unwrap().flows[0];
    assert_eq!((flow.name.as_str(), flow.sender.to_string().as_str()), (name, name));
    let error = with("rrtp:lan").unwrap_err().to_string();
    assert!(error.contains("`lan` is not valid for rrtp"), "{error}");
    for line in [
        "profile = 'modern'",
        "prr = true",
        "min_rto = '1s'",
        "initial_window = 4",
        "cwnd_clamp = 9",
        "timestamps = true",
        "sack = true",
        "pacing = false",
        "path_memory = false",
    ] {
        let (key, _) = line.split_once(' ').unwrap();
        let error = one_line(with(&format!("rrtp\"\n{line}\nname = \"r")).unwrap_err());
        let expected = format!("`{key}` is an option of TCP, which rrtp does not have: remove it");
        assert!(error.ends_with(&expected) && error.starts_with("s.toml:7:"), "{error}");
    }
}

#[test]
fn every_key_arrives_where_it_belongs() {
    let text = r#"
name = "all"
duration = "1min"
warm_up = "10s"
seed = 18446744073709551615
samples = true
[bottleneck]
forth = "weak-4g"
[access]
forth = "delay 1ms"
back = "delay 2ms"
[[flow]]
name = "one"
count = 3
detection = "newreno"
congestion = "fixed:32"
profile = "paper"
prr = true
min_rto = "300ms"
initial_window = 4
cwnd_clamp = 64
way = "back"
start = "1.5s"
stagger = "100ms"
stop = "9s"
mtu = 1040
timestamps = false
sack = false
pacing = true
path_memory = true
receive_buffer = "4MB"
send_buffer = "64KiB"
wake_up_delay = "2ms"
access.forth = "delay 5ms"
bulk.size = "10MB"
change = [{ at = "5s", strategies = "sack/cubic" }]
[[flow]]
request_response = { request = "100B", response = "10kB", think = "1s", count = 7 }
[[flow]]
short_flows = { smallest = "5kB", largest = "50kB", gap = "2s", pareto = true, users = 5 }
[[flow]]
ping_pong = { size = "64B", count = 9 }
"#;
    let scenario = read(text).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed, scenario.samples), ("all", u64::MAX, true));
    assert_eq!(scenario.duration, Duration::from_secs(60));
    assert_eq!(scenario.warm_up, Duration::from_secs(10));
    let Topology::Dumbbell { access, bottleneck } = &scenario.topology else {
        panic!("that is a dumbbell")
    };
    assert_eq!((&access.forth, &access.back), (&spec("delay 1ms"), &spec("delay 2ms")));
    let (down, up) = named::find("weak-4g").unwrap().specs();
    assert_eq!((&bottleneck.forth, &bottleneck.back), (&down, &up));
    let [one, two, three, four] = scenario.flows.as_slice() else { panic!("there are four") };
    assert_eq!((one.name.as_str(), one.count, one.mtu), ("one", 3, 1040));
    assert_eq!(one.sender.to_string(), "newreno/fixed:32");
    let spread = Profile {
        proportional_rate_reduction: true,
        rto: RtoForm::Rfc { floor: Duration::from_millis(300) },
        initial_window: 4,
        cwnd_clamp: Some(64),
        ..Profile::paper()
    };
    assert_eq!((&one.profile, one.way), (&spread, FlowDirection::RightToLeft));
    assert_eq!(
        (one.start, one.stagger),
        (Duration::from_millis(1_500), Duration::from_millis(100))
    );
    assert_eq!(one.stop, Some(Duration::from_secs(9)));
    let combination = "sack/cubic".parse().unwrap();
    assert_eq!(one.changes, [Change { at: Duration::from_secs(5), combination }]);
    assert_eq!((one.timestamps, one.sack, one.pacing, one.path_memory), (false, false, true, true));
    assert_eq!(one.receive_buffer, Some(ByteCount(4_000_000)));
    assert_eq!(one.send_buffer, Some(ByteCount(65_536)));
    assert_eq!(one.wake_up_delay, Duration::from_millis(2));
    assert_eq!(one.access.as_ref().unwrap().back, spec("delay 5ms"));
    assert_eq!(one.app, App::Bulk { size: Some(ByteCount(10_000_000)) });
    let (request, response) = (ByteCount(100), ByteCount(10_000));
    let think = Duration::from_secs(1);
    assert_eq!(two.app, App::RequestResponse { request, response, think, count: Some(7) });
    let size = (ByteCount(5_000), ByteCount(50_000));
    let gap = Duration::from_secs(2);
    assert_eq!(three.app, App::ShortFlows { size, gap, pareto: true, users: 5 });
    assert_eq!(four.app, App::PingPong { size: ByteCount(64), count: Some(9) });
}

#[test]
fn prr_is_as_the_profile_has_it_unless_it_is_said() {
    let spread = |lines: &str| {
        let flow = &read(&format!("{SMALL}{lines}\n")).unwrap().flows[0];
        flow.profile.proportional_rate_reduction
    };
    assert!(spread("profile = \"modern\""));
    assert!(!spread("profile = \"paper\""));
    assert!(!spread("prr = false"));
    assert!(spread("prr = true\nprofile = \"paper\""));
    let other = read(&format!("{SMALL}prr = false\n")).unwrap().flows[0].profile.clone();
    assert_eq!(Profile { proportional_rate_reduction: true, ..other }, Profile::modern());
}

/// A base station behind the bottleneck.
const MOBILE: &str = r#"duration = "2s"
[bottleneck]
forth = "rate 100mbit delay 20ms limit 1000"
[station]
radio = "error 20% at 0s 10 at 2s 30"
policy = "tcp-ecn"
[[flow]]
mark_aware = true
"#;

#[test]
fn a_station_makes_the_right_hosts_mobiles() {
    let scenario = read(MOBILE).unwrap();
    let Topology::Wireless { access, bottleneck, station, .. } = &scenario.topology else {
        panic!("that has a station")
    };
    assert_eq!(*access, crate::Wire::default());
    assert_eq!(bottleneck.back, spec("rate 100mbit delay 20ms limit 1000"));
    let usual = StationConfig::default();
    let radio = "error 20% at 0s 10 at 2s 30".parse().unwrap();
    assert_eq!(*station, StationConfig { radio, policy: Policy::TcpEcn, ..usual });
    assert!(scenario.flows[0].mark_aware && scenario.is_random());
    let all = r#"radio = "tries 2"
arq = "head"
policy = "snoop"
mark = "ce"
mark-bits = 0x04
flows = 7
unproven = 8
hold = "1MiB"
absence = "3min"
cache = "64KiB"
dupack-delay = "40ms""#;
    let text = MOBILE.replace("radio = \"error 20% at 0s 10 at 2s 30\"\npolicy = \"tcp-ecn\"", all);
    let Topology::Wireless { station, .. } = read(&text).unwrap().topology else {
        panic!("that has a station")
    };
    let wanted = StationConfig {
        radio: "tries 2".parse().unwrap(),
        arq: Arq::Head,
        policy: Policy::Snoop,
        mark: Mark::Ce,
        mark_bits: 4,
        flows: 7,
        unproven: 8,
        hold: ByteCount::from_mib(1),
        absence: Duration::from_secs(180),
        cache: ByteCount::from_kib(64),
        dupack_delay: Duration::from_millis(40),
        ..StationConfig::default()
    };
    assert_eq!(station, wanted);
}

#[test]
fn a_mistake_in_a_station_has_the_position_of_the_word() {
    let with = |old: &str, new: &str| error(&MOBILE.replace(old, new));
    assert_eq!(
        with("20% at", "20 at"),
        "s.toml:5:16: `20`: expected a share from 0% to 100%, such as `20%`"
    );
    assert_eq!(
        with("policy = \"tcp-ecn\"", "policy = \"tcpecn\""),
        "s.toml:6:10: unknown variant `tcpecn`, expected one of `plain`, `tcp-ecn`, `snoop`, \
         `delayed-dupack`; did you mean `tcp-ecn`?"
    );
    assert_eq!(
        with("policy", "arq = \"some\"\npolicy"),
        "s.toml:6:7: `some` is no ARQ mode: use off, mac, mac+link or head"
    );
    assert_eq!(
        with("policy", "arq = \"off\"\npolicy"),
        "s.toml:6:7: policy tcp-ecn hides duplicate ACKs that link retransmission answers: it needs arq mac, mac+link \
         or head"
    );
    assert_eq!(
        with("policy", "mark-bits = 16\npolicy"),
        "s.toml:6:13: `16`: expected a whole number from 1 to 15"
    );
    assert!(with("policy", "mark_bits = 8\npolicy").ends_with("did you mean `mark-bits`?"));
    assert!(with("error 20%", "eror 20%").ends_with("; did you mean `error`?"));
    let chain = MOBILE.replace("[bottleneck]\n", "[[wire]]\n");
    assert!(error(&chain).starts_with("s.toml:4:1: a `[station]` needs a `[bottleneck]`"));
    let nobody = format!("{SMALL}mark_aware = true\n");
    assert_eq!(
        error(&nobody),
        "s.toml:8:14: it needs the marks of a base station: add a `[station]`"
    );
    assert!(read(&format!("{SMALL}mark_aware = false\n")).is_ok());
    let set = read_with(SMALL, &["station.radio=error 20"]).unwrap_err();
    assert!(one_line(set).starts_with("`station.radio=error 20`: `20`: expected a share"));
}

#[test]
fn wires_in_a_row_are_a_chain() {
    let scenario = read(
        "[[wire]]\nforth = \"delay 1ms\"\n[[wire]]\nforth = \"lte\"\nback = \"edge\"\n[[flow]]",
    );
    let Topology::Chain { wires } = scenario.unwrap().topology else { panic!("that is a chain") };
    assert_eq!(wires.len(), 2);
    assert_eq!(wires[1].forth, named::find("lte").unwrap().specs().0);
    assert_eq!(wires[1].back, named::find("edge").unwrap().specs().1);
}

#[test]
fn the_example_is_a_scenario() {
    let scenario = Source { name: "x", text: EXAMPLE, settings: &[] }.read(no_trace).unwrap();
    assert_eq!(scenario.flows.len(), 3);
    assert!(EXAMPLE.lines().filter(|line| line.contains('#')).count() > 10);
}

#[test]
fn an_unknown_key_is_named_with_those_there_are() {
    assert_eq!(
        error("duration = \"2s\"\n\n  warmup = \"1s\"\n"),
        "s.toml:3:3: unknown field `warmup`, expected one of `name`, `duration`, `warm_up`, `seed`, \
         `samples`, `bottleneck`, `access`, `station`, `wire`, `flow`; did you mean `warm_up`?"
    );
    let text = format!("{SMALL}congestin = \"reno\"\n");
    let message = error(&text);
    assert!(
        message.starts_with("s.toml:8:1: unknown field `congestin`, expected one of `name`"),
        "{message}"
    );
    assert!(message.ends_with("; did you mean `congestion`?"), "{message}");
    let wire = SMALL.replace("forth =", "fort =");
    assert_eq!(
        error(&wire),
        "s.toml:3:1: unknown field `fort`, expected `forth` or `back`; did you mean `forth`?"
    );
    let app = format!("{SMALL}bulk = {{ size = \"1MB\",\n    sise = \"2MB\" }}\n");
    assert_eq!(
        error(&app),
        "s.toml:9:5: unknown field `sise`, expected `size`; did you mean `size`?"
    );
    let table = format!("{SMALL}[flows]\n");
    assert!(error(&table).starts_with("s.toml:8:2: unknown field `flows`"), "{}", error(&table));
}

#[test]
fn a_wrong_unit_is_named_with_those_there_are() {
    assert_eq!(
        error(&SMALL.replace("2s", "2sec")),
        "s.toml:1:12: `2sec`: expected a time with its unit (h, min, s, ms, us or ns), such as \"5ms\""
    );
    assert_eq!(
        error(&SMALL.replace("\"2s\"", "2")),
        "s.toml:1:12: invalid type: integer `2`, expected a time with its unit (h, min, s, ms, us or ns), \
         such as \"5ms\""
    );
    let size = format!("{SMALL}[flow.bulk]\nsize = \"10Mbit\"\n");
    assert_eq!(
        error(&size),
        "s.toml:9:8: `10Mbit`: expected a size over zero with its unit (B, kB, MB, GB, KiB, MiB or GiB), such \
         as \"10MB\""
    );
}

#[test]
fn a_wrong_value_is_named_with_what_is_allowed() {
    let flow = |line: &str| error(&format!("{SMALL}{line}\n"));
    assert_eq!(
        error(&SMALL.replace("\"reno\"", "\"illinois\"")),
        "s.toml:6:14: no congestion control `illinois`: use one of reno, cubic, fixed:N"
            .replace("reno, cubic, fixed:N", &names())
    );
    let near = flow("detection = \"sakc\"");
    assert!(
        near.starts_with("s.toml:8:13: no detection `sakc`")
            && near.ends_with("did you mean `sack`?"),
        "{near}"
    );
    assert!(
        flow("detection = \"x\"").starts_with("s.toml:8:13: no detection `x`: use one of reno")
    );
    assert!(flow("judge = \"x\"").starts_with("s.toml:8:9: no judge `x`"));
    let whole = |text: &str| error(&SMALL.replace("congestion = \"reno\"", text));
    assert!(
        whole("strategies = \"rack/vega\"")
            .starts_with("s.toml:6:14: no congestion control `vega`: use")
    );
    assert!(whole("strategies = \"rack//hack\"").starts_with("s.toml:6:14: `rack//hack` is not a"));
    assert_eq!(
        flow("strategies = \"rack/cubic\""),
        "s.toml:8:14: `strategies` includes `detection`, `congestion` and `judge`: remove them, or \
         set `strategies` anew, as in --set flow.0.strategies=rack/reno"
    );
    assert_eq!(
        flow("profile = \"old\""),
        "s.toml:8:11: no profile `old`: use one of modern, paper, ns-2.26, ns-2.35, linux-2.2"
    );
    assert_eq!(flow("way = \"up\""), "s.toml:8:7: `up`: expected \"forth\" or \"back\"");
    assert_eq!(flow("mtu = 80"), "s.toml:8:7: `80`: expected a whole number from 576 to 65535");
    assert_eq!(flow("mtu = -1"), "s.toml:8:7: `-1`: expected a whole number from 576 to 65535");
    assert_eq!(
        flow("mtu = 1e3"),
        "s.toml:8:7: invalid type: floating point `1000.0`, expected a whole number from 576 to 65535"
    );
    assert_eq!(
        flow("mtu = 99999999999999999999999999999999999999999"),
        "s.toml:8:7: integer number overflowed"
    );
    assert_eq!(flow("pacing = 1"), "s.toml:8:10: invalid type: integer `1`, expected a boolean");
    assert_eq!(
        error(&SMALL.replace("count = 2", "count = 0")),
        "s.toml:7:9: `0`: expected a whole number from 1 to 1000000"
    );
    assert_eq!(flow("send_buffer = \"0B\"").split(": ").next(), Some("s.toml:8:15"));
}

fn names() -> String {
    let entries = airtcp_recovery::registry::controls().iter();
    entries.map(|entry| format!("{}{}", entry.name, entry.parameter)).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_mistake_in_a_link_has_the_position_of_the_word() {
    assert_eq!(
        error(&SMALL.replace("10mbit", "10mbps")),
        "s.toml:3:15: `10mbps`: expected a rate with its unit (gbit, mbit, kbit or bit), such as `10mbit`"
    );
    assert_eq!(
        error(&SMALL.replace("10ms limit 50", "")),
        "s.toml:3:28: the end: expected a time with its unit (s, ms, us or ns), such as `5ms`"
    );
    let message = error(&SMALL.replace("rate 10mbit delay 10ms limit 50", "weak-5g"));
    assert!(message.starts_with("s.toml:3:10: `weak-5g`: expected a link (edge, 3g,"), "{message}");
    let part = error(&SMALL.replace("limit 50", "limt 50"));
    assert!(part.starts_with("s.toml:3:33: `limt`: expected rate, trace,"), "{part}");
    assert!(part.ends_with("; did you mean `limit`?"), "{part}");
    let several = SMALL.replace(
        "\"rate 10mbit delay 10ms limit 50\"",
        "\"\"\"\n  rate 10mbit\n  delay 10 ms\"\"\"",
    );
    assert_eq!(
        error(&several),
        "s.toml:5:9: `10`: expected a time with its unit (s, ms, us or ns), such as `5ms`"
    );
    let escaped = SMALL.replace("rate 10mbit", "rate\\t10mbps");
    assert_eq!(
        error(&escaped),
        "s.toml:3:9: `10mbps`: expected a rate with its unit (gbit, mbit, kbit or bit), such as `10mbit`"
    );
}

#[test]
fn columns_are_counted_in_characters() {
    assert_eq!(
        error("bottleneck = { forth = \"delay 1ms\", \"é\" = \"\" }\nflow = [{}]"),
        "s.toml:1:37: unknown field `é`, expected `forth` or `back`"
    );
    assert_eq!(
        error("name = \"Größe\" # é\nbottleneck.\"ü\".x = 1"),
        "s.toml:2:12: unknown field `ü`, expected `forth` or `back`"
    );
}

#[test]
fn a_missing_key_is_named() {
    assert!(error("").starts_with("s.toml:1:1: no network: add a `[bottleneck]`"));
    let nobody = error("[bottleneck]\nforth = \"delay 1ms\"\n");
    assert!(nobody.starts_with("s.toml:2:20: there are no flows: add a `[[flow]]`"), "{nobody}");
    assert_eq!(error("\n[bottleneck]\n[[flow]]"), "s.toml:2:1: missing field `forth`");
    let app = format!("{SMALL}request_response = {{ request = \"1B\" }}\n");
    assert_eq!(error(&app), "s.toml:8:20: missing field `response`");
}

#[test]
fn conflicting_keys_are_named() {
    let wires = format!("{SMALL}\n[[wire]]\nforth = \"delay 1ms\"\n");
    assert_eq!(
        error(&wires),
        "s.toml:9:1: use either `[[wire]]`s for a chain, or `[bottleneck]` and `[access]` for a dumbbell"
    );
    let apps = format!("{SMALL}ping_pong = {{ size = \"64B\" }}\nbulk = {{}}\n");
    assert_eq!(
        error(&apps),
        "s.toml:9:8: a flow has one application: bulk, request_response, short_flows or ping_pong"
    );
    assert_eq!(
        error(&format!("warm_up = \"3s\"\n{SMALL}")),
        "s.toml:1:11: the warm-up must be shorter than the duration, 2s"
    );
    assert_eq!(error(&SMALL.replace("2s", "0s")), "s.toml:1:12: the duration must be above zero");
    let sizes = format!("{SMALL}short_flows = {{ smallest = \"5kB\", largest = \"4kB\" }}\n");
    assert_eq!(error(&sizes), "s.toml:8:45: `largest` is below `smallest`");
    let access = "[[wire]]\nforth = \"\"\n[[flow]]\naccess = { forth = \"\" }\n";
    assert_eq!(error(access), "s.toml:4:10: a chain has no access wires");
}

#[test]
fn a_value_that_is_no_table_and_invalid_toml_are_named() {
    let flow = SMALL.replace("[[flow]]", "[flow]");
    assert_eq!(
        error(&flow),
        "s.toml:5:1: invalid type: map, expected a list of tables, each with two brackets, as in `[[flow]]`"
    );
    assert_eq!(
        error("bottleneck = 5\n[[flow]]"),
        "s.toml:1:14: invalid type: integer `5`, expected a link description or name, such as \"weak-4g\", or a \
         table with `forth` and optionally `back`"
    );
    assert!(error(&SMALL.replace("\"2s\"", "2s")).starts_with("s.toml:1:1"));
    assert!(error(&SMALL.replace("50\"", "50")).starts_with("s.toml:3:"));
    assert!(
        error(&SMALL.replace("count = 2", "congestion = \"cubic\"")).starts_with("s.toml:7:1: ")
    );
    assert!(error("\"a\\nb\" = 1").starts_with("s.toml:1:1: unknown field `a\\nb`"));
    assert!(error(&format!("duration = \"{}\"", "9".repeat(10_000))).len() < 200);
    assert!(error(&format!("{} = 1", "k".repeat(10_000))).len() < 600);
    assert!(error(&format!("x = {}", "[".repeat(100_000))).starts_with("s.toml:1:"));
}

#[test]
fn a_trace_is_read_once_and_its_error_has_both_positions() {
    let text = SMALL.replace("rate 10mbit", "trace up.txt");
    assert_eq!(error(&text), "s.toml:3:16: trace up.txt: no `up.txt` here");
    let source = Source { name: "s.toml", text: &text, settings: &[] };
    let mut loads = 0;
    let scenario = source.read(|_| {
        loads += 1;
        Trace::parse("1\n2\n").map_err(|error| error.to_string())
    });
    assert!(scenario.unwrap().traces.contains_key("up.txt"));
    assert_eq!(loads, 1);
    let rubbish = format!("{}x\n", "1\n".repeat(16));
    let error = source.read(|_| Trace::parse(&rubbish).map_err(|error| error.to_string()));
    assert_eq!(
        one_line(error.unwrap_err()),
        "s.toml:3:16: trace up.txt: line 17: expected a time in whole milliseconds, such as `17`"
    );
}

/// The documentation of the format lists every key, and no others.
#[test]
fn the_page_knows_every_key() {
    let page = include_str!("../../../../../docs/scenarios.md");
    let tables: [(&str, &str); 9] = [
        ("", ""),
        ("wire", "[bottleneck]\n"),
        ("station", "[station]\n"),
        ("flow", "[[flow]]\n"),
        ("change", "[[flow]]\n[[flow.change]]\n"),
        ("bulk", "[[flow]]\nbulk."),
        ("request_response", "[[flow]]\nrequest_response."),
        ("short_flows", "[[flow]]\nshort_flows."),
        ("ping_pong", "[[flow]]\nping_pong."),
    ];
    let mut keys = Vec::new();
    for (table, begin) in tables {
        // The error lists the valid keys.
        let message = error(&format!("{begin}zzz = 1"));
        let (_, list) = message.split_once("expected ").unwrap();
        keys.extend(list.split('`').skip(1).step_by(2).map(|key| match table {
            "" | "wire" | "station" | "flow" => key.to_owned(),
            app => format!("{app}.{key}"),
        }));
    }
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut listed: Vec<_> = rows.map(str::to_owned).collect();
    keys.sort_unstable();
    listed.sort_unstable();
    assert_eq!(keys, listed);
}
