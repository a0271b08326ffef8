#![no_main]

#[path = "../properties/retry_after.rs"]
mod retry_after;

libfuzzer_sys::fuzz_target!(|data: &[u8]| retry_after::check(data));
