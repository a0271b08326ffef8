//! The rows that the ingest function answers, too (`functions/ingest/src/handler/tests/doors.rs`): the same
//! answer to the same request.

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{Home, http, text};

const ROWS: &str = include_str!("../../tests/vectors/doors.json");
const CONFIG: &str = include_str!("../../tests/vectors/doors.toml");

/// What a gateway answers beside the content: the header fields of which a row may have one.
const FIELDS: [&str; 3] = ["www-authenticate", "allow", "retry-after"];

fn sent(row: &Value) -> Vec<u8> {
    let body = match row["body"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(text(row, "body_base64")).expect("a row in base64"),
    };
    let (method, path) = (text(row, "method"), text(row, "path"));
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    let headers = row["headers"].as_object().expect("a row with headers");
    for name in headers.keys() {
        head.push_str(&format!("{name}: {}\r\n", text(&row["headers"], name)));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    [head.into_bytes(), body].concat()
}

#[test]
fn c127_every_row_is_answered_as_the_function_answers_it() {
    let rows: Value = serde_json::from_str(ROWS).unwrap();
    let home = Home::new();
    home.write("waybill.toml", CONFIG);
    let serving = home.serve(&[]);
    let mut faults: Vec<String> = Vec::new();
    for row in rows["rows"].as_array().unwrap() {
        let answer = http::raw(&serving.address, &sent(row));
        let body = &answer.body;
        let seen = json!({
            "status": answer.status, "code": body["error"]["code"], "field": body["error"]["field"],
            "deliveries": body["deliveries"].as_array().map(Vec::len),
            "repeated": body["deliveries"][0]["repeated"],
            "header": FIELDS.into_iter().find(|name| answer.head.contains(&format!("\r\n{name}: "))),
        });
        let facts = seen.as_object().unwrap().iter().filter(|(fact, seen)| **seen != row[fact.as_str()]);
        faults.extend(facts.map(|(fact, seen)| format!("{}: {fact} is {seen}", row["name"])));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
