#![no_main]

#[allow(dead_code, reason = "one target of several")]
#[path = "../../rust/tests/decoders/bodies.rs"]
mod bodies;
#[allow(dead_code, reason = "one target of several")]
#[path = "../../rust/tests/decoders/verified.rs"]
mod verified;

libfuzzer_sys::fuzz_target!(|data: &[u8]| verified::verified(data));
