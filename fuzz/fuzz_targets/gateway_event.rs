#![no_main]

#[path = "../properties/gateway_event.rs"]
mod gateway_event;
#[path = "../../functions/ingest/src/handler.rs"]
mod handler;

libfuzzer_sys::fuzz_target!(|data: &[u8]| gateway_event::check(data));
