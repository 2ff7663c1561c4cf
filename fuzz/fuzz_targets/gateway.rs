//! The target of `tests/fuzz/gateway.rs`.
#![no_main]

#[path = "../../tests/fuzz/gateway.rs"]
mod gateway;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gateway::run(data);
});
