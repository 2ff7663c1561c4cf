//! The target of `tests/fuzz/link_spec.rs`.
#![no_main]

#[path = "../../tests/fuzz/link_spec.rs"]
mod link_spec;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    link_spec::run(data);
});
