//! The recipient of `docs/RECIPIENTS.md` in Rust: takes what is genuine, once, and nothing forged.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use rusqlite::Connection;
use serde::Deserialize;

// It is a program of its own to whoever copies it.
#[allow(unreachable_pub)]
#[path = "../../examples/recipient/receive.rs"]
mod receive;

#[derive(Deserialize)]
struct Vectors {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    secret: String,
    id: String,
    timestamp: u64,
    body_base64: String,
    signature: String,
}

type Headers = BTreeMap<&'static str, String>;

const OTHER: &str = "b3RoZXIgc2VjcmV0IG9mIDI0IGJ5dGVz";

/// Whether it takes the row, changed so, at `now_s`.
fn is_taken(row: &Row, change: impl Fn(&mut Headers, &mut Vec<u8>), now_s: u64) -> bool {
    let mut headers = BTreeMap::from([
        ("webhook-id", row.id.clone()),
        ("webhook-timestamp", row.timestamp.to_string()),
        ("webhook-signature", row.signature.clone()),
    ]);
    let mut body = BASE64_STANDARD.decode(&row.body_base64).unwrap();
    change(&mut headers, &mut body);
    let secrets = [OTHER, row.secret.strip_prefix("whsec_").unwrap()];
    receive::is_genuine(&secrets, |name| headers.get(name).cloned().unwrap_or_default(), &body, now_s)
}

#[test]
fn it_takes_what_is_genuine_and_nothing_else() {
    let vectors: Vectors = serde_json::from_str(include_str!("../vectors/signatures.json")).unwrap();
    assert!(!vectors.rows.is_empty());
    for row in &vectors.rows {
        let at = row.timestamp;
        let check = |name: &str, expected, change: &dyn Fn(&mut Headers, &mut Vec<u8>), now_s| {
            assert_eq!(is_taken(row, change, now_s), expected, "{}: {name}", row.id);
        };
        check("as it is", true, &|_, _| {}, at);
        check("300 s later", true, &|_, _| {}, at + 300);
        check("301 s later", false, &|_, _| {}, at + 301);
        check("301 s earlier", false, &|_, _| {}, at - 301);
        check("a byte more", false, &|_, body| body.push(b' '), at);
        check("another ID", false, &|headers, _| drop(headers.insert("webhook-id", "whd_x".to_owned())), at);
        check("no ID", false, &|headers, _| drop(headers.remove("webhook-id")), at);
        check("no time", false, &|headers, _| drop(headers.remove("webhook-timestamp")), at);
        check("no signature", false, &|headers, _| drop(headers.remove("webhook-signature")), at);
        let second = |headers: &mut Headers, _: &mut Vec<u8>| {
            let signature = format!("v1,AAAA {}", headers["webhook-signature"]);
            headers.insert("webhook-signature", signature);
        };
        check("the second of two", true, &second, at);
    }
}

#[test]
fn it_applies_each_delivery_once() {
    let mut database = Connection::open_in_memory().unwrap();
    let tables = "CREATE TABLE seen (delivery TEXT PRIMARY KEY); CREATE TABLE effects (body BLOB);";
    database.execute_batch(tables).unwrap();
    for delivery in ["whd_1", "whd_2", "whd_1"] {
        receive::receive(&mut database, delivery, b"{}").unwrap();
    }
    let effects: i64 = database.query_row("SELECT count(*) FROM effects", [], |row| row.get(0)).unwrap();
    assert_eq!(effects, 2);
}
