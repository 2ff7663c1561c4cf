//! The target of `tests/fuzz/stream.rs`.
#![no_main]

#[expect(dead_code, reason = "it uses a part of it")]
#[path = "../../tests/fuzz/feed.rs"]
mod feed;
#[path = "../../tests/fuzz/stream.rs"]
mod stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    stream::run(data);
});
