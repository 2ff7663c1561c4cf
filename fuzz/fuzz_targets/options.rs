//! The target of `tests/fuzz/options.rs`.
#![no_main]

#[path = "../../tests/fuzz/options.rs"]
mod options;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    options::run(data);
});
