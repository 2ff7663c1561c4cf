//! The target of `tests/fuzz/rrtp.rs`.
#![no_main]

#[path = "../../tests/fuzz/feed.rs"]
mod feed;
#[path = "../../tests/fuzz/rrtp.rs"]
mod rrtp;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    rrtp::run(data);
});
