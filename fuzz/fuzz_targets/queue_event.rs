#![no_main]

#[path = "../properties/queue_event.rs"]
mod queue_event;
#[path = "../../functions/consumer/src/handler.rs"]
mod handler;

libfuzzer_sys::fuzz_target!(|data: &[u8]| queue_event::check(data));
