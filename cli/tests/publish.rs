//! `waybill publish`: one answer line each, a bad line costs only itself, bytes stay as they are.

mod support;

use serde_json::Value;
use support::{Home, text};

const GOOD: &str = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{"a":1}}"#;

fn publish(home: &Home, lines: &str) -> (i32, Vec<Value>) {
    let ran = home.run_with(&["publish", "--output", "json"], lines.as_bytes());
    (ran.code, ran.json())
}

#[test]
fn every_line_gets_one_answer_and_bad_ones_do_not_stop_the_others() {
    let home = Home::new();
    let lines = format!("{GOOD}\n\nnot json\n{}\n", GOOD.replace("e1", "e2"));
    let (code, answers) = publish(&home, &lines);
    assert_eq!(code, 2);
    let numbers: Vec<u64> = answers.iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4]);
    assert_eq!(text(&answers[1]["error"], "code"), "invalid_json");
    assert_eq!(text(&answers[0]["deliveries"][0], "state"), "pending");
    assert_eq!(home.deliveries().len(), 2);
}

#[test]
fn for_people_a_bad_line_is_a_sentence_with_its_number_on_standard_error() {
    let home = Home::new();
    let file = home.write("events.jsonl", format!("{GOOD}\n{}", GOOD.replace("acme", "ac/me")));
    let ran = home.run(&["publish", file.to_str().unwrap()]);
    assert_eq!(ran.code, 2);
    assert!(ran.out.starts_with("line 1: whd_") && ran.out.contains(" to d (pending)"), "{}", ran.out);
    let fault = "tenant: has '/' at byte 2 (1 to 64 of A-Z a-z 0-9 . _ -)";
    assert_eq!(ran.err, format!("{}: line 2: {fault}\n", file.display()));
    home.write("no.jsonl", r#"{"event_id":}"#);
    let ran = home.run(&["publish", "no.jsonl"]);
    assert!(ran.err.starts_with("no.jsonl: line 1, column 13: event: is not a JSON object: "), "{}", ran.err);
    let ran = home.run_with(&["publish", "--output", "json"], br#"{"event_id":}"#);
    assert_eq!(ran.json()[0]["column"], 13);
}

#[test]
fn each_fault_of_an_event_names_its_field_and_leaves_nothing_behind() {
    let rows = [
        ("[]", "invalid_json", "event"),
        ("{\"tenant\"", "invalid_json", "event"),
        (r#"{}"#, "invalid_field", "event_id"),
        (r#"{"event_id":"e","tenant":"acme","type":"lease.x"}"#, "invalid_field", "payload"),
        (r#"{"event_id":"e","payload":1}"#, "invalid_field", "tenant"),
        (r#"{"event_id":"e","tenant":"acme","payload":1}"#, "invalid_field", "type"),
        (r#"{"event_id":"","tenant":"acme","type":"lease.x","payload":1}"#, "invalid_field", "event_id"),
        (r#"{"event_id":"e","tenant":"a/b","type":"lease.x","payload":1}"#, "invalid_field", "tenant"),
        (r#"{"event_id":7,"tenant":"acme","type":"lease.x","payload":1}"#, "invalid_field", "event_id"),
        (
            r#"{"event_id":"e","tenant":"acme","tenant":"b","type":"lease.x","payload":1}"#,
            "invalid_field",
            "tenant",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"dead_line":"x"}"#,
            "invalid_field",
            "dead_line",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"deadline":"2099-01-01T00:00:00"}"#,
            "invalid_field",
            "deadline",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"deadline":"soon"}"#,
            "invalid_field",
            "deadline",
        ),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"deadline":"2020-01-01T00:00:00Z"}"#,
            "invalid_field",
            "deadline",
        ),
        (r#"{"event_id":"e","tenant":"acme","type":"renewal.x","payload":1}"#, "invalid_field", "deadline"),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload":1,"destination":"nowhere"}"#,
            "unknown_destination",
            "destination",
        ),
        (
            r#"{"event_id":"e","tenant":"other","type":"lease.x","payload":1,"destination":"d"}"#,
            "unknown_destination",
            "destination",
        ),
        (r#"{"event_id":"e","tenant":"acme","type":"other.x","payload":1}"#, "no_subscriber", "type"),
        (
            r#"{"event_id":"e","tenant":"acme","type":"lease.x","payload_base64":"e30="}"#,
            "invalid_field",
            "content_type",
        ),
    ];
    let home = Home::new();
    let lines: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let (code, answers) = publish(&home, &lines.join("\n"));
    assert_eq!(code, 2);
    for ((line, code, field), answer) in rows.iter().zip(&answers) {
        let error = &answer["error"];
        assert_eq!((text(error, "code"), text(error, "field")), (*code, *field), "{line}");
        assert!(text(error, "message").starts_with(&format!("{field}: ")), "{line}: {error}");
    }
    assert_eq!(answers.len(), rows.len());
    assert!(home.deliveries().is_empty());
}

#[test]
fn a_payload_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let home = Home::new();
    let event = |id: &str, length: usize| {
        let payload = "x".repeat(length - 2);
        format!(r#"{{"event_id":"{id}","tenant":"acme","type":"lease.x","payload":"{payload}"}}"#)
    };
    let most = 4 * 1024 * 1024;
    let (code, answers) = publish(&home, &format!("{}\n{}\n", event("over", most + 1), event("at", most)));
    assert_eq!(code, 2);
    assert_eq!(text(&answers[0]["error"], "code"), "payload_too_large");
    assert_eq!(text(&answers[0]["error"], "field"), "payload");
    assert_eq!(home.deliveries()[0]["payload"]["length"], most);
}

#[test]
fn the_same_event_again_is_the_same_answer_and_other_bytes_are_a_conflict_with_both_digests() {
    let home = Home::new();
    let others = [GOOD.replace("1}", "1.0}"), GOOD.replace(":1}", ": 1}")];
    let (code, answers) = publish(&home, &format!("{GOOD}\n{GOOD}\n{}\n{}\n", others[0], others[1]));
    assert_eq!(code, 3);
    assert_eq!(answers[0]["deliveries"][0]["repeated"], false);
    assert_eq!(answers[1]["deliveries"][0]["repeated"], true);
    assert_eq!(answers[0]["deliveries"][0]["delivery_id"], answers[1]["deliveries"][0]["delivery_id"]);
    let stored = &home.deliveries()[0];
    for conflict in &answers[2..] {
        let error = &conflict["error"];
        assert_eq!((text(error, "code"), text(error, "field")), ("conflict", "event_id"));
        assert_eq!(error["stored_sha256"], stored["payload"]["sha256"]);
        assert_ne!(error["stored_sha256"], error["given_sha256"]);
    }
    assert_eq!(home.deliveries().len(), 1);
}

#[test]
fn wrong_input_outweighs_a_conflict_in_the_exit_code() {
    let home = Home::new();
    assert_eq!(publish(&home, GOOD).0, 0);
    let conflict = GOOD.replace("1}", "2}");
    assert_eq!(publish(&home, &conflict).0, 3);
    assert_eq!(publish(&home, &format!("{conflict}\nnot json\n")).0, 2);
    assert_eq!(publish(&home, &format!("not json\n{conflict}\n")).0, 2);
}

#[test]
fn an_empty_input_is_said_to_be_empty() {
    let home = Home::new();
    let ran = home.run_with(&["publish"], b"\n \n");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", "no events\n"));
}

#[test]
fn lines_are_bytes_and_a_line_that_is_no_text_is_refused_alone() {
    let home = Home::new();
    let mut lines = br#"{"event_id":"bad","tenant":"acme","type":"lease.x","payload":""#.to_vec();
    lines.extend(b"\xff\xfe\"}\r\n");
    lines.extend(GOOD.as_bytes());
    lines.extend(b"\r\n");
    let ran = home.run_with(&["publish", "-", "--output", "json"], &lines);
    assert_eq!(ran.code, 2);
    assert_eq!(text(&ran.json()[0]["error"], "code"), "invalid_json");
    assert_eq!(home.deliveries()[0]["payload"]["length"], 7);
}

#[test]
fn a_file_or_a_configuration_that_is_not_there_is_wrong_input() {
    let home = Home::new();
    let ran = home.run(&["publish", "nothing.jsonl"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert_eq!(ran.err, "nothing.jsonl: no such file or directory\n");
    let ran = home.run(&["publish", "--config", "nothing.toml"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.err, "nothing.toml: there is no such configuration file; --config names it\n");
    assert!(!home.path("waybill.db").exists());
}

#[test]
fn a_data_file_that_is_not_waybills_stops_it_with_one() {
    let home = Home::new();
    home.write("waybill.db", "this is no database at all, and long enough to be looked at as one".repeat(40));
    let ran = home.run_with(&["publish"], GOOD.as_bytes());
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err, "waybill.db: the file cannot be opened as a database: file is not a database\n");
}

#[test]
fn a_store_that_refuses_ends_it_with_one_and_the_lines_that_must_be_published_again() {
    let home = Home::new();
    assert_eq!(publish(&home, GOOD).0, 0);
    // A lock would stop it earlier, when it opens the file.
    let other = rusqlite::Connection::open(home.path("waybill.db")).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON delivery BEGIN SELECT RAISE(ABORT, 'full'); END";
    other.execute_batch(refuse).unwrap();
    let ran = home.run_with(&["publish"], GOOD.replace("e1", "e2").as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.starts_with("line 1: the ledger ") && ran.err.contains("full"), "{}", ran.err);
    assert!(ran.err.ends_with("; publish it and every line without an answer again\n"), "{}", ran.err);
    assert_eq!(home.deliveries().len(), 1);
}
