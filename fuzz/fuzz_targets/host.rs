//! The target of `tests/fuzz/host.rs`.
#![no_main]

#[path = "../../tests/fuzz/feed.rs"]
mod feed;
#[path = "../../tests/fuzz/host.rs"]
mod host;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    host::run(data);
});
