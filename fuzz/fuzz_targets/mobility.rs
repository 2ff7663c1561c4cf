//! The target of `tests/fuzz/mobility.rs`.
#![no_main]

#[path = "../../tests/fuzz/mobility.rs"]
mod mobility;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    mobility::run(data);
});
