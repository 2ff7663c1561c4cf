//! The target of `tests/fuzz/scenario.rs`.
#![no_main]

#[path = "../../tests/fuzz/scenario.rs"]
mod scenario;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    scenario::run(data);
});
