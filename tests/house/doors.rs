//! What a request is for, and what its refusal says, without a server.

use waybill_domain::fault::InvalidField;
use waybill_service::event::MAX_PAYLOAD_BYTES;
use waybill_service::ingest::{Inlet, Route};
use waybill_service::ports::PortError;
use waybill_service::refusal::{Code, Refusal};

#[test]
fn a_path_is_a_door_only_as_it_is_written() {
    let source = |name| Some(Route::In(Inlet::Source(name)));
    let rows = [
        ("/v1/events", Some(Route::In(Inlet::Events))),
        ("/v1/sources/github", source("github")),
        ("/v1/sources/", None),
        ("/v1/sources/a/b", None),
        ("/v1/sources//", None),
        ("/v1/sources", None),
        ("/v1/events/", None),
        ("/", None),
    ];
    for (path, route) in rows {
        assert_eq!(Route::of("POST", path).ok(), route, "{path}");
    }
}

#[test]
fn only_a_payload_over_the_limit_is_too_large() {
    let rows = [
        ("event", 10, Code::InvalidJson),
        ("payload", MAX_PAYLOAD_BYTES, Code::InvalidField),
        ("payload", MAX_PAYLOAD_BYTES + 1, Code::PayloadTooLarge),
        ("tenant", MAX_PAYLOAD_BYTES + 1, Code::InvalidField),
    ];
    for (field, length, code) in rows {
        assert_eq!(
            Refusal::of_event(InvalidField::new(field, "is odd", "even"), length).code,
            code,
            "{field}"
        );
    }
}

#[test]
fn a_store_that_keeps_nothing_is_told_apart_from_an_event_that_was_not_taken() {
    let error = PortError::AskLater { port: "ledger", cause: "the disk is full".into() };
    let (health, event) = (Refusal::unhealthy(&error), Refusal::unavailable(&error));
    assert!(health.message.ends_with(": what comes in cannot be kept now"), "{}", health.message);
    assert!(event.message.ends_with(": publish the same event again"), "{}", event.message);
    for refusal in [health, event] {
        assert_eq!(refusal.code, Code::Unavailable);
        assert!(!refusal.message.contains("disk"), "{}", refusal.message);
        assert!(refusal.cause.is_some_and(|cause| cause.contains("the disk is full")));
    }
}
