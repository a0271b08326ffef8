//! The handler on the memory backend: events of the gateway in, answers out.

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_http::SecretError;
use waybill_service::config_file;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::memory::{MemoryLedger, MemoryQueue, QueueRules};

use super::*;

mod doors;
mod seeds;
mod sources;
mod traces;

const CONFIG: &str = "
[producers.billing]
tenants = [\"acme\"]
tokens = [\"env:TOKEN\"]
[destinations.books]
tenants = [\"acme\", \"other\"]
url = \"https://books.example.com/hooks\"
secrets = [\"env:S\"]
event_types = [\"*\"]
[sources.game]
tenant = \"acme\"
scheme = \"standard-webhooks\"
secrets = [\"env:GAME\"]
event_id = \"header:webhook-id\"
event_type = \"note.taken\"
[sources.code]
tenant = \"acme\"
scheme = \"github\"
secrets = [\"env:GONE\", \"env:CODE\"]
event_id = \"/id\"
event_type = \"header:x-github-event\"
deadline = \"/until\"
[sources.bare]
tenant = \"acme\"
scheme = \"github\"
secrets = [\"env:GONE\", \"env:SHORT\"]
event_id = \"/id\"
event_type = \"a.b\"
";

const EVENT: &str = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{"note":"✨🎉"}}"#;

struct Door {
    ledger: MemoryLedger,
    queue: MemoryQueue,
    clock: VirtualClock,
}

struct Known;

impl Secrets for Known {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        match reference.to_string().as_str() {
            "env:TOKEN" => Ok("right".to_owned()),
            "env:GAME" => Ok("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=".to_owned()),
            "env:CODE" => Ok("It's a Secret to Everybody".to_owned()),
            "env:SHORT" => Ok("too-short-for-a-secret".to_owned()),
            _ => Err(SecretError::Missing),
        }
    }
}

impl Door {
    fn new() -> Self {
        let clock = VirtualClock::default();
        let queue = MemoryQueue::new(&clock, QueueRules::default());
        Self { ledger: MemoryLedger::default(), queue, clock }
    }

    async fn answer(&self, event: &Value) -> Response {
        self.answer_under(Ok(config()), event).await
    }

    async fn answer_under(&self, config: Result<Arc<Config>, ConfigError>, event: &Value) -> Response {
        let publisher = Publisher { ledger: &self.ledger, queue: &self.queue, clock: &self.clock };
        let event = RawValue::from_string(event.to_string()).unwrap();
        handle(&publisher, config, &Known, &event).await.unwrap()
    }
}

fn config() -> Arc<Config> {
    Arc::new(config_file::parse(CONFIG, Locality::PublicOnly).unwrap())
}

/// A request as an HTTP API sends it.
fn request(body: Value, is_base64_encoded: bool) -> Value {
    json!({
        "version": "2.0", "routeKey": "POST /v1/events", "rawPath": "/v1/events", "rawQueryString": "",
        "headers": {"content-type": "application/json", "authorization": "Bearer right", "host": "x"},
        "requestContext": {
            "accountId": "123456789012", "apiId": "api", "domainName": "x", "stage": "$default",
            "http": {"method": "POST", "path": "/v1/events", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
        },
        "body": body, "isBase64Encoded": is_base64_encoded,
    })
}

fn code(response: &Response) -> String {
    let body: Value = serde_json::from_str(&response.body).unwrap();
    body["error"]["code"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn c127_is_base64_encoded_is_followed_exactly() {
    let door = Door::new();
    let plain = door.answer(&request(EVENT.into(), false)).await;
    assert_eq!(plain.status_code, 202, "{}", plain.body);
    let encoded = door.answer(&request(STANDARD.encode(EVENT).into(), true)).await;
    assert_eq!(encoded.status_code, 202, "{}", encoded.body);
    let (first, second): (Value, Value) =
        (serde_json::from_str(&plain.body).unwrap(), serde_json::from_str(&encoded.body).unwrap());
    assert_eq!(first["deliveries"][0]["delivery_id"], second["deliveries"][0]["delivery_id"]);
    assert_eq!(second["deliveries"][0]["repeated"], true, "the same bytes, whichever way they came");
    assert_eq!(door.ledger.records().len(), 1);

    let rows = [
        ("base64 that is not marked", request("e30=".into(), false), 400, "invalid_json"),
        ("marked, and no base64", request("{}".into(), true), 400, "invalid_json"),
        ("marked, and broken off", request("e30".into(), true), 400, "invalid_json"),
        ("no body", request(Value::Null, false), 400, "invalid_json"),
        ("an empty one", request("".into(), true), 400, "invalid_json"),
    ];
    for (name, request, status, expected) in rows {
        let response = door.answer(&request).await;
        assert_eq!((response.status_code, code(&response).as_str()), (status, expected), "{name}");
    }
    let mut absent = request(Value::Null, false);
    absent.as_object_mut().unwrap().remove("body");
    assert_eq!(door.answer(&absent).await.status_code, 400);
}

#[tokio::test]
async fn c129_no_header_that_is_not_looked_at_does_harm() {
    let door = Door::new();
    let mut odd = request(EVENT.into(), false);
    odd["headers"]["user-agent"] = "Beno\u{ee}t".into();
    odd["headers"]["x-several"] = "a,b".into();
    odd["headers"]["x-null"] = Value::Null;
    odd["multiValueHeaders"] = json!({"x-several": ["a", "b"]});
    odd["cookies"] = json!(["a=b"]);
    assert_eq!(door.answer(&odd).await.status_code, 202);
}

#[tokio::test]
async fn the_head_is_judged_as_serve_judges_it() {
    let door = Door::new();
    let with = |name: &str, value: Value| {
        let mut request = request(EVENT.into(), false);
        request["headers"].as_object_mut().unwrap().insert(name.to_owned(), value);
        request
    };
    let without = |name: &str| {
        let mut request = request(EVENT.into(), false);
        request["headers"].as_object_mut().unwrap().remove(name);
        request
    };
    let rows = [
        (without("authorization"), 401, "unauthorized"),
        (with("authorization", "Bearer wrong".into()), 401, "unauthorized"),
        (with("authorization", "Bearer right,Bearer right".into()), 401, "unauthorized"),
        (without("content-type"), 415, "unsupported_media_type"),
        (with("content-type", "text/plain".into()), 415, "unsupported_media_type"),
        (request(EVENT.replace("acme", "other").into(), false), 403, "forbidden"),
        (request("x".repeat(6_000_000).into(), false), 413, "payload_too_large"),
    ];
    for (request, status, expected) in rows {
        let response = door.answer(&request).await;
        assert_eq!((response.status_code, code(&response).as_str()), (status, expected));
        let challenges = response.headers.contains_key("www-authenticate");
        assert_eq!(challenges, status == 401);
    }
    assert_eq!(door.ledger.records().len(), 0);
    let mut upper = without("authorization");
    upper["headers"]["Authorization"] = "bearer right".into();
    assert_eq!(door.answer(&upper).await.status_code, 202);
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_in_json() {
    let door = Door::new();
    let at = |path: &str, method: &str| {
        let mut request = request(Value::Null, false);
        request["rawPath"] = path.into();
        request["requestContext"]["http"]["method"] = method.into();
        request
    };
    for (path, method, status) in [
        ("/healthz", "GET", 200),
        ("/healthz", "POST", 405),
        ("/v1/events", "GET", 405),
        ("/", "GET", 404),
        ("/v1/sources/x", "POST", 404),
        ("/v1/sources/", "POST", 404),
        ("/v1/sources/game/x", "POST", 404),
        ("/v1/sources/game", "GET", 405),
        ("/v1/openapi.json", "GET", 200),
        ("/v1/openapi.json", "POST", 405),
    ] {
        let response = door.answer(&at(path, method)).await;
        assert_eq!(response.status_code, status, "{method} {path}");
        assert_eq!(response.headers["content-type"], "application/json");
        assert_eq!(response.headers.contains_key("allow"), status == 405);
    }
}

#[tokio::test]
async fn without_a_configuration_nothing_is_accepted_and_the_caller_may_come_again() {
    let door = Door::new();
    let response = door.answer_under(Err(ConfigError::None), &request(EVENT.into(), false)).await;
    assert_eq!((response.status_code, code(&response).as_str()), (503, "unavailable"));
    assert_eq!(response.headers["retry-after"], "1");
}
