//! The target of `tests/fuzz/station.rs`.
#![no_main]

#[path = "../../tests/fuzz/feed.rs"]
mod feed;
#[path = "../../tests/fuzz/station.rs"]
mod station;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    station::run(data);
});
