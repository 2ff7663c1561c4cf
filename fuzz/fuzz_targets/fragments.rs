//! The target of `tests/fuzz/fragments.rs`.
#![no_main]

#[path = "../../tests/fuzz/feed.rs"]
mod feed;
#[path = "../../tests/fuzz/fragments.rs"]
mod fragments;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fragments::run(data);
});
