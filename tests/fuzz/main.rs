//! The checks of the fuzz targets in `fuzz/`, and a replay of their corpora.
//!
//! Each target is a module here. `cargo test` replays the files of `fuzz/corpus/NAME`;
//! `cargo +nightly fuzz run NAME` searches for more inputs. An input that finds a fault is added to
//! the corpus.

mod datagrams;
mod feed;
mod fragments;
mod gateway;
mod host;
mod link_spec;
mod mobility;
mod options;
mod rrtp;
mod scenario;
mod station;
mod stream;

use std::fs;
use std::path::Path;

use airtcp_basestation::station::StationCounters;
use airtcp_rrtp::Counters;
use airtcp_stack::tcp::State;
use airtcp_types::rng::Stream;

/// The contents of a target's corpus files, sorted by name.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", directory.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Replays a corpus. It must contain both valid and invalid inputs.
fn replay(target: &str, run: fn(&[u8]) -> bool) {
    let understood: Vec<bool> = corpus(target).iter().map(|data| run(data)).collect();
    assert!(understood.contains(&true) && understood.contains(&false), "{target}: {understood:?}");
}

#[test]
fn options_from_any_bytes() {
    replay("options", options::run);
}

#[test]
fn requests_to_a_gateway_from_any_bytes() {
    replay("gateway", gateway::run);
}

#[test]
fn datagrams_to_a_gateway_from_any_bytes() {
    replay("datagrams", datagrams::run);
}

#[test]
fn messages_to_a_home_agent_from_any_bytes() {
    replay("mobility", |data| mobility::run(data).is_some());
    let registered =
        corpus("mobility").iter().filter(|data| mobility::run(data) == Some(true)).count();
    assert_eq!(registered, 2, "one of each IP version");
}

#[test]
fn links_from_any_text() {
    replay("link_spec", link_spec::run);
}

#[test]
fn scenarios_from_any_text() {
    replay("scenario", scenario::run);
}

#[test]
fn packets_to_a_host_in_any_state() {
    let mut reached: Vec<State> = corpus("host").iter().flat_map(|data| host::run(data)).collect();
    reached.sort();
    reached.dedup();
    assert_eq!(reached.len(), 9, "all but CLOSED: {reached:?}");
}

#[test]
fn fragments_in_any_order() {
    let whole: usize = corpus("fragments").iter().map(|data| fragments::run(data)).sum();
    assert!(whole > 0);
}

#[test]
fn pieces_of_a_stream_in_any_order() {
    let read: usize = corpus("stream").iter().map(|data| stream::run(data)).sum();
    assert!(read > 0);
}

#[test]
fn packets_of_strangers_to_a_base_station() {
    let mut reached = StationCounters::default();
    let mut has_heard = false;
    for data in corpus("station") {
        let (counters, heard) = station::run(&data);
        reached += counters;
        has_heard |= heard;
    }
    assert!(has_heard, "no mobile was heard");
    let StationCounters { marked, hidden, sent_again, frozen, held, let_go, .. } = reached;
    let done = [marked, hidden, sent_again, frozen, held, let_go];
    let refused = [
        reached.out_of_window_data,
        reached.out_of_window_acks,
        reached.out_of_window_syns,
        reached.out_of_window_rsts,
    ];
    assert!(done.into_iter().chain(refused).all(|count| count > 0), "{reached:?}");
}

#[test]
fn datagrams_of_strangers_and_liars_to_an_rrtp_server() {
    let reached: Vec<Counters> = corpus("rrtp").iter().map(|data| rrtp::run(data)).collect();
    let counts: [fn(&Counters) -> u64; 17] = [
        |of| of.bad_checksum,
        |of| of.malformed,
        |of| of.bad_version,
        |of| of.bad_cookie,
        |of| of.expired_cookie,
        |of| of.replayed_start,
        |of| of.repeated_start,
        |of| of.too_many,
        |of| of.unknown_connection,
        |of| of.wrong_address,
        |of| of.unexpected,
        |of| of.implausible,
        |of| of.optimistic_acks,
        |of| of.rate_capped,
        |of| of.over_window,
        |of| of.no_memory,
        |of| of.duplicates,
    ];
    for (index, count) in counts.iter().enumerate() {
        assert!(reached.iter().any(|of| count(of) > 0), "{index} of the counters");
    }
}

#[test]
fn drawn_datagrams_to_an_rrtp_server() {
    for seed in 0..300 {
        let mut drawn = Stream::new(seed, 0);
        let data: Vec<u8> = (0..1_000).map(|_| drawn.next_u64() as u8).collect();
        rrtp::run(&data);
    }
}
