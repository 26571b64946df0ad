#![no_main]

#[allow(dead_code, reason = "one target of several")]
#[path = "../../rust/tests/decoders/bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::numbers(data));
