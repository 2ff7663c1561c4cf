//! The target of `tests/fuzz/datagrams.rs`.
#![no_main]

#[path = "../../tests/fuzz/datagrams.rs"]
mod datagrams;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    datagrams::run(data);
});
