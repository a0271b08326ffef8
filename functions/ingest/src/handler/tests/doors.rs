//! The rows that `waybill serve` answers, too (`cli/tests/doors.rs`): the same answer to the same request,
//! whether its body comes as text or in base64.

use waybill_domain::time::TimeMs;

use super::*;

const ROWS: &str = include_str!("../../../../../tests/vectors/doors.json");
const CONFIG: &str = include_str!("../../../../../tests/vectors/doors.toml");

struct OfRows;

impl Secrets for OfRows {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        match reference.to_string().as_str() {
            "env:BILLING_TOKEN" => Ok("a-token-that-nobody-guesses".to_owned()),
            "env:SIGNING_SECRET" => Ok("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".to_owned()),
            "env:CODE_SECRET" => Ok("It's a Secret to Everybody".to_owned()),
            "env:SHORT_SECRET" => Ok("too-short-for-a-secret".to_owned()),
            _ => Err(SecretError::Missing),
        }
    }
}

/// A row as an HTTP API sends it; it marks what is no text as base64 itself.
fn sent(row: &Value, in_base64: bool) -> Value {
    let text = row["body"].as_str();
    let (body, is_base64_encoded) = match text {
        Some(text) if in_base64 => (STANDARD.encode(text), true),
        Some(text) => (text.to_owned(), false),
        None => (row["body_base64"].as_str().unwrap().to_owned(), true),
    };
    let mut request = request(body.into(), is_base64_encoded);
    request["rawPath"] = row["path"].clone();
    request["requestContext"]["http"]["path"] = row["path"].clone();
    request["requestContext"]["http"]["method"] = row["method"].clone();
    request["headers"] = row["headers"].clone();
    request
}

#[tokio::test]
async fn c127_every_row_is_answered_as_serve_answers_it() {
    let rows: Value = serde_json::from_str(ROWS).unwrap();
    let config = Arc::new(config_file::parse(CONFIG, Locality::PublicOnly).unwrap());
    let mut faults: Vec<String> = Vec::new();
    for in_base64 in [false, true] {
        let door = Door::new();
        door.clock.set(TimeMs::from_unix_ms(1_767_225_600_000));
        let publisher = Publisher { ledger: &door.ledger, queue: &door.queue, clock: &door.clock };
        for row in rows["rows"].as_array().unwrap() {
            let event = RawValue::from_string(sent(row, in_base64).to_string()).unwrap();
            let response = handle(&publisher, Ok(config.clone()), &OfRows, &event).await.unwrap();
            let body: Value = serde_json::from_str(&response.body).unwrap();
            let seen = json!({
                "status": response.status_code, "code": body["error"]["code"], "field": body["error"]["field"],
                "deliveries": body["deliveries"].as_array().map(Vec::len),
                "repeated": body["deliveries"][0]["repeated"],
                "header": response.headers.keys().find(|name| **name != "content-type"),
            });
            faults.extend(unlike(row, &seen));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// What was seen otherwise than the row says.
fn unlike(row: &Value, seen: &Value) -> Vec<String> {
    let facts = seen.as_object().unwrap().iter().filter(|(fact, seen)| **seen != row[fact.as_str()]);
    facts.map(|(fact, seen)| format!("{}: {fact} is {seen}", row["name"])).collect()
}
