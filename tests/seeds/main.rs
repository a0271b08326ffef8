//! The seeds of the fuzz targets, through the functions that `make fuzz` runs for minutes: nothing that was
//! found and mended comes back. Those of the functions' events are with the functions.

#[path = "../../fuzz/properties/configuration.rs"]
mod configuration;
#[path = "../../fuzz/properties/envelope.rs"]
mod envelope;
#[path = "../../fuzz/properties/event.rs"]
mod event;
#[path = "../../fuzz/properties/retry_after.rs"]
mod retry_after;
#[path = "../../fuzz/properties/said.rs"]
mod said;
#[path = "../../fuzz/properties/seeds.rs"]
mod seeds;
#[path = "../../fuzz/properties/signature.rs"]
mod signature;

#[test]
fn a_configuration_is_read_alike_each_time_and_refused_with_every_fault() {
    seeds::run("configuration", configuration::check);
}

#[test]
fn a_message_body_that_is_read_is_written_as_the_same() {
    seeds::run("envelope", envelope::check);
}

#[test]
fn an_event_keeps_the_bytes_of_its_payload_and_changes_in_no_other_form() {
    seeds::run("event", event::check);
}

#[test]
fn a_retry_after_is_never_undercut_and_never_made_up() {
    seeds::run("retry_after", retry_after::check);
}

#[test]
fn nothing_is_trusted_but_what_its_key_has_signed() {
    seeds::run("signature", signature::check);
}
