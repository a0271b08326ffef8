//! A destination's schema: refused at publish, or recorded as a dead letter where nobody is there to hear.

use waybill_domain::delivery::State;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::time::DurationMs;
use waybill_service::event::Event;
use waybill_service::payload_schema::PayloadSchema;
use waybill_service::publish::{PublishError, Published, Publisher};
use waybill_service::refusal::Refusal;

use crate::world::{World, id_of, with};

const SCHEMA: &str = r##"{
    "type": "object",
    "required": ["currency", "amount"],
    "additionalProperties": false,
    "properties": {
        "currency": { "enum": ["EUR", "USD"] },
        "amount": { "type": "integer", "minimum": 1 },
        "iban": { "type": "string", "pattern": "^[A-Z]{2}[0-9]+$" },
        "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } }
    },
    "$defs": { "line": { "type": "object", "required": ["sku"] } }
}"##;

fn schema() -> PayloadSchema {
    PayloadSchema::parse("payment.json", SCHEMA).unwrap()
}

/// A world whose accounting system takes only what the schema says.
fn world() -> World {
    let mut world = World::new();
    let name = waybill_domain::identity::DestinationName::parse("accounting").unwrap();
    world.config.schemas.insert(name, schema().into());
    world
}

fn event(payload: &str) -> String {
    with("e", "").replace("{\"n\":1.0}", payload)
}

const GOOD: &str = r#"{"currency":"EUR","amount":5}"#;
const BAD: &str = r#"{"currency":"SECRET-GBP","amount":5}"#;

fn unattended(world: &World, payload: &str) -> Vec<Published> {
    let ports = &world.ports;
    let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &world.clock };
    let event = Event::parse(event(payload).as_bytes()).unwrap();
    world.block(publisher.publish_unattended(&world.config, event)).unwrap()
}

#[test]
fn a_schema_is_another_where_its_file_or_its_text_is() {
    let other_file = PayloadSchema::parse("other.json", SCHEMA).unwrap();
    let other_text = PayloadSchema::parse("payment.json", &format!("{SCHEMA} ")).unwrap();
    assert_eq!(schema(), schema());
    assert!(schema() != other_file && schema() != other_text);
    assert!(format!("{:?}", schema()).contains("payment.json"));
}

#[test]
fn a_fault_names_the_place_and_the_rule_and_never_the_value() {
    for (payload, said) in [
        (BAD, "/currency breaks enum [\"EUR\",\"USD\"] (payment.json#/properties/currency/enum)"),
        (
            r#"{"currency":"EUR"}"#,
            "the whole breaks required [\"currency\",\"amount\"] (payment.json#/required)",
        ),
        (
            r#"{"currency":"EUR","amount":"SECRET"}"#,
            "/amount breaks type \"integer\" (payment.json#/properties/amount/type)",
        ),
        (
            r#"{"currency":"EUR","amount":0}"#,
            "/amount breaks minimum 1 (payment.json#/properties/amount/minimum)",
        ),
        (
            r#"{"currency":"EUR","amount":1,"SECRET":2}"#,
            "the whole breaks additionalProperties false (payment.json#/additionalProperties)",
        ),
        (
            r#"{"currency":"EUR","amount":1,"iban":"SECRET"}"#,
            "/iban breaks pattern \"^[A-Z]{2}[0-9]+$\" (payment.json#/properties/iban/pattern)",
        ),
        (
            r#"{"currency":"EUR","amount":1,"lines":[{"sku":1},{}]}"#,
            "/lines/1 breaks required [\"sku\"] (payment.json#/$defs/line/required)",
        ),
        ("[\"SECRET\"]", "the whole breaks type \"object\" (payment.json#/type)"),
    ] {
        let fault = schema().check(payload.as_bytes()).unwrap_err().to_string();
        assert_eq!(fault, said, "{payload}");
        assert!(!fault.contains("SECRET"), "{fault}");
    }
    assert!(schema().check(GOOD.as_bytes()).is_ok());
}

#[test]
fn what_is_not_json_is_refused_without_being_shown() {
    for bytes in [&b"SECRET"[..], b"\xff\xfe", b"", b"{\"currency\":1e999}"] {
        let fault = schema().check(bytes).unwrap_err().to_string();
        assert_eq!(fault, "is no JSON that payment.json can judge");
    }
    // C105: as deep as it may be, and no deeper; the process goes on.
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let anything = PayloadSchema::parse("any.json", "{}").unwrap();
    assert!(anything.check(nested(127).as_bytes()).is_ok());
    for depth in [128, 31_000] {
        assert!(anything.check(nested(depth).as_bytes()).is_err(), "{depth}");
    }
}

#[test]
fn only_the_first_faults_are_named_and_the_rest_are_counted() {
    let lines = vec!["{}"; 40].join(",");
    let payload = format!(r#"{{"currency":"EUR","amount":1,"lines":[{lines}]}}"#);
    let fault = schema().check(payload.as_bytes()).unwrap_err().to_string();
    assert!(fault.ends_with("; 37 more"), "{fault}");
    let long = format!(r#"{{"{}":1}}"#, "x".repeat(5_000));
    let names = PayloadSchema::parse("n.json", r#"{"additionalProperties":{"type":"string"}}"#).unwrap();
    assert!(names.check(long.as_bytes()).unwrap_err().to_string().len() < 400);
}

#[test]
fn a_producer_is_told_and_nothing_is_recorded() {
    let world = world();
    let refused = world.publish(&event(BAD)).unwrap_err();
    assert!(matches!(refused, PublishError::PayloadInvalid { .. }), "{refused}");
    let refusal = Refusal::of_publish(refused);
    assert_eq!((refusal.code.status(), refusal.code.as_str()), (422, "payload_invalid"));
    assert_eq!(
        refusal.message,
        "payload: /currency breaks enum [\"EUR\",\"USD\"] (payment.json#/properties/currency/enum); it cannot go \
         to accounting"
    );
    assert_eq!(refusal.facts()["field"], "payload");
    assert_eq!(world.ports.ledger.peek(&crate::world::key("acme", &id_of("e", "accounting"))), None);
    assert!(world.ports.queue.messages().is_empty());
    assert_eq!(world.published(&event(GOOD), []), id_of("e", "accounting"));
}

#[test]
fn of_several_destinations_one_that_refuses_keeps_the_event_from_all() {
    let world = world();
    let everywhere = event(BAD).replace(r#""destination":"accounting","#, "");
    assert!(matches!(world.publish(&everywhere), Err(PublishError::PayloadInvalid { .. })));
    for destination in ["accounting", "crm"] {
        let key = crate::world::key("acme", &id_of("e", destination));
        assert_eq!(world.ports.ledger.peek(&key), None, "{destination}");
    }
}

#[test]
fn what_was_accepted_before_the_schema_is_answered_as_accepted_after_it() {
    let mut world = World::new();
    let id = world.published(&event(BAD), []);
    world.config.schemas = self::world().config.schemas;
    let repeated = world.publish(&event(BAD)).unwrap();
    assert_eq!((repeated[0].delivery_id.clone(), repeated[0].repeated), (id, true));
}

#[test]
fn with_nobody_to_be_answered_it_is_a_dead_letter_without_an_attempt() {
    let world = world();
    let id = unattended(&world, BAD)[0].delivery_id.clone();
    let record = world.record(&id);
    assert_eq!(record.dead_letter_reason(), Some(DeadLetterReason::PayloadInvalid));
    assert_eq!((record.attempts_made, record.dlq_told, record.look_at), (0, true, None));
    let letters = world.ports.queue.dead_letters();
    assert_eq!(letters.len(), 1);
    assert!(letters[0].body.contains("payload_invalid") && letters[0].body.contains(id.as_str()));
    // Again, as the next tick would: the same answer, and no second letter.
    let again = unattended(&world, BAD);
    assert_eq!((again[0].state, again[0].repeated), (State::DeadLettered, true));
    world.run_for(DurationMs::from_secs(3600));
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
    assert!(world.ports.recipient.requests().is_empty());
    assert!(world.ports.queue.messages().is_empty());
    // And what the schema takes goes as ever.
    let good = Event::parse(with("e2", "").replace("{\"n\":1.0}", GOOD).as_bytes()).unwrap();
    let ports = &world.ports;
    let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &world.clock };
    let published = world.block(publisher.publish_unattended(&world.config, good)).unwrap();
    world.work_until_quiet();
    assert_eq!(world.record(&published[0].delivery_id).state, State::Succeeded);
}

#[test]
fn a_publisher_that_died_before_the_dlq_was_told_is_repaired_by_the_reconciler() {
    let world = world();
    let look = world.config.look_rules(DurationMs::from_secs(900));
    let pending = {
        let other = World::new();
        let id = other.published(&event(BAD), []);
        other.record(&id)
    };
    let refused = waybill_domain::delivery::Record::refused(
        pending.delivery.clone(),
        &Default::default(),
        world.config.revision.clone(),
        &look,
    );
    let payload = BAD.into();
    let create = waybill_service::ports::Ledger::create(&world.ports.ledger, &refused, &payload);
    world.block(create).unwrap();
    world.run_for(DurationMs::from_secs(600));
    assert_eq!(world.ports.queue.dead_letters().len(), 1);
    assert!(world.record(&pending.delivery.id).dlq_told);
}
