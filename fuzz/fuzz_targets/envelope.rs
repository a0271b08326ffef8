#![no_main]

#[path = "../properties/envelope.rs"]
mod envelope;
#[path = "../properties/said.rs"]
#[allow(dead_code, reason = "every target uses its own part")]
mod said;

libfuzzer_sys::fuzz_target!(|data: &[u8]| envelope::check(data));
