//! `docs/openapi.json` against the code that it describes. That the running service does what it says
//! is checked from outside, by `tests/end_to_end/test_openapi.py`.

use std::collections::BTreeSet;

use serde_json::Value;
use waybill_service::event::{Event, MAX_PAYLOAD_BYTES};
use waybill_service::ingest::answer::DESCRIPTION;
use waybill_service::ingest::{Inlet, Route};
use waybill_service::refusal::Code;

fn document() -> Value {
    serde_json::from_str(DESCRIPTION).unwrap()
}

fn texts(list: &Value) -> BTreeSet<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn every_refusal_is_described_under_its_status_and_no_other_is() {
    let document = document();
    let all: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let schema = &document["components"]["schemas"]["Refusal"]["properties"]["error"]["properties"]["code"];
    assert_eq!(texts(&schema["enum"]), all);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (status, response) in
            operations.as_object().unwrap().values().flat_map(|one| one["responses"].as_object().unwrap())
        {
            let Some(name) =
                response["$ref"].as_str().and_then(|at| at.strip_prefix("#/components/responses/"))
            else {
                continue;
            };
            let response = &document["components"]["responses"][name];
            assert!(!response.is_null(), "{path} {status}: {name} is nowhere");
            let allowed = &response["content"]["application/json"]["schema"]["allOf"][1];
            let allowed = &allowed["properties"]["error"]["properties"]["code"]["enum"];
            if allowed.is_null() {
                assert_eq!(status, "202");
                continue;
            }
            let of_status = Code::ALL.iter().filter(|code| code.status().to_string() == *status);
            assert_eq!(texts(allowed), of_status.map(|code| code.as_str()).collect(), "{path} {status}");
        }
    }
}

#[test]
fn every_path_is_one_that_there_is() {
    let document = document();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = path.replace("{source}", "game-billing");
        for method in operations.as_object().unwrap().keys() {
            assert!(Route::of(&method.to_ascii_uppercase(), &path).is_ok(), "{method} {path}");
        }
    }
    assert_eq!(Route::of("POST", "/v1/sources/a.b"), Ok(Route::In(Inlet::Source("a.b"))));
    assert_eq!(document["paths"].as_object().unwrap().len(), 4);
}

#[test]
fn every_example_of_an_event_is_one_and_has_only_described_fields() {
    let document = document();
    let fields = &document["components"]["schemas"]["Event"]["properties"];
    let media = &document["paths"]["/v1/events"]["post"]["requestBody"]["content"]["application/json"];
    let examples = media["examples"].as_object().unwrap();
    assert!(examples.len() >= 5);
    for (name, example) in examples {
        let value = &example["value"];
        Event::parse(value.to_string().as_bytes()).unwrap_or_else(|invalid| panic!("{name}: {invalid}"));
        assert!(value.as_object().unwrap().keys().all(|field| !fields[field].is_null()), "{name}");
    }
    assert_eq!(MAX_PAYLOAD_BYTES, 4 << 20, "the document says 4 MiB");
}
