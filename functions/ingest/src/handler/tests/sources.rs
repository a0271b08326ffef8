//! Webhooks of sources and signed events, by signatures that Python's hmac made.

use waybill_domain::time::{DurationMs, TimeMs};

use super::*;

const T0: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);
const SAMPLE: &str = "{\"note\":\"✨🎉\",\"x\":\"\\u001B\"}";

/// Signatures of dlv_001 at T0 under the secret of `game`.
const OF_SAMPLE: &str = "v1,Uih58demTRKjiVP50ipwa9bqL4SR0URzV5whmWqZDVA=";
const OF_NOTHING: &str = "v1,yxuAd7BVz8nbfNLhzu7vaX3GZSPEFqfFKMjQ5uQmukM=";
const OF_LITERAL: &str = "v1,sVLDsj2Xr+4n+HIuqm05KBtyGkGr9FUZ3dupcfXFzek=";
const OF_NOT_UTF_8: &str = "v1,XBSAxWaxtnFUstwtPO+RWi/6Q116AeZek+aUlUbPo7Y=";

fn door() -> Door {
    let door = Door::new();
    door.clock.set(T0);
    door
}

fn to(source: &str, headers: &[(&str, &str)], body: Value, is_base64_encoded: bool) -> Value {
    let mut request = request(body, is_base64_encoded);
    request["rawPath"] = format!("/v1/sources/{source}").into();
    request["requestContext"]["http"]["path"] = request["rawPath"].clone();
    request["headers"] =
        headers.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    request
}

fn game(signature: &str, body: Value, is_base64_encoded: bool) -> Value {
    let headers =
        [("webhook-id", "dlv_001"), ("webhook-timestamp", "1767225600"), ("webhook-signature", signature)];
    to("game", &headers, body, is_base64_encoded)
}

fn code_host(signature: &str, body: &str) -> Value {
    let signature = format!("sha256={signature}");
    to("code", &[("X-Hub-Signature-256", &signature), ("X-GitHub-Event", "push")], body.into(), false)
}

#[tokio::test]
async fn c127_the_bytes_that_were_sent_are_verified_and_forwarded() {
    let rows: [(&str, Value, &[u8]); 4] = [
        ("in base64", game(OF_SAMPLE, STANDARD.encode(SAMPLE).into(), true), SAMPLE.as_bytes()),
        ("as text", game(OF_SAMPLE, SAMPLE.into(), false), SAMPLE.as_bytes()),
        ("text that looks like base64", game(OF_LITERAL, "e30=".into(), false), b"e30="),
        ("no body", game(OF_NOTHING, Value::Null, false), b""),
    ];
    for (name, request, sent) in rows {
        let door = door();
        let response = door.answer(&request).await;
        assert_eq!(response.status_code, 202, "{name}: {}", response.body);
        let record = door.ledger.records().remove(0);
        assert_eq!(record.delivery.event_id.as_str(), "dlv_001");
        assert_eq!(record.delivery.payload.content_type, "application/octet-stream");
        let payload = door.ledger.payload(&record.delivery.key()).await.unwrap().unwrap();
        assert_eq!(payload, sent, "{name}");
    }
    let refused = [
        (
            "base64 that is not marked",
            game(OF_SAMPLE, STANDARD.encode(SAMPLE).into(), false),
            401,
            "invalid_signature",
        ),
        ("marked, and no base64", game(OF_SAMPLE, "{}".into(), true), 400, "invalid_json"),
        (
            "verified, and no JSON",
            code_host("361facd77a61780d5a541335fad460ec2fc8e2d412ba2945a5a769e88f707d26", "e30="),
            400,
            "invalid_json",
        ),
    ];
    for (name, request, status, expected) in refused {
        let door = door();
        let response = door.answer(&request).await;
        assert_eq!((response.status_code, code(&response).as_str()), (status, expected), "{name}");
        assert!(door.ledger.records().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn c81_bytes_that_are_not_utf_8_are_verified_first_and_forwarded_where_nobody_reads_them() {
    let body = STANDARD.encode(b"{\"a\":\"\xFF\xFE\"}");
    let door = door();
    let wrong = door.answer(&game(OF_SAMPLE, body.clone().into(), true)).await;
    assert_eq!((wrong.status_code, code(&wrong).as_str()), (401, "invalid_signature"));
    assert!(door.ledger.records().is_empty());
    assert_eq!(door.answer(&game(OF_NOT_UTF_8, body.into(), true)).await.status_code, 202);
}

#[tokio::test]
async fn c129_odd_headers_do_no_harm_and_several_lines_of_a_signature_are_none() {
    let door = door();
    let mut odd = game(OF_SAMPLE, SAMPLE.into(), false);
    odd["headers"]["user-agent"] = "Beno\u{ee}t".into();
    odd["headers"]["x-null"] = Value::Null;
    assert_eq!(door.answer(&odd).await.status_code, 202);
    let mut joined = game(&format!("{OF_SAMPLE},{OF_SAMPLE}"), SAMPLE.into(), false);
    assert_eq!(door.answer(&joined).await.status_code, 401);
    joined["multiValueHeaders"] = json!({"webhook-signature": [OF_SAMPLE]});
    assert_eq!(door.answer(&joined).await.status_code, 202);
    joined["multiValueHeaders"] = json!({"webhook-signature": [OF_SAMPLE, OF_SAMPLE]});
    assert_eq!(door.answer(&joined).await.status_code, 401);
    let mut bare = game(OF_SAMPLE, SAMPLE.into(), false);
    bare.as_object_mut().unwrap().remove("headers");
    assert_eq!(door.answer(&bare).await.status_code, 401);
}

#[tokio::test]
async fn c87_without_a_usable_secret_nothing_is_accepted_and_the_sender_may_come_again() {
    const RIGHT: &str = "9e4ed1a4d6d5cf11683667d412d45d8be06aa24899642a59feb9d08845804963";
    let door = door();
    // One of its two secrets is there: what that one signed is good, of anything else nobody knows.
    assert_eq!(door.answer(&code_host(RIGHT, r#"{"id":"e1"}"#)).await.status_code, 202);
    let mut bare = code_host(RIGHT, r#"{"id":"e1"}"#);
    for path in ["/v1/sources/code", "/v1/sources/bare"] {
        bare["rawPath"] = path.into();
        bare["body"] = r#"{"id":"e9"}"#.into();
        let response = door.answer(&bare).await;
        assert_eq!((response.status_code, code(&response).as_str()), (503, "unavailable"), "{path}");
        assert_eq!(response.headers["retry-after"], "1");
    }
    assert_eq!(door.ledger.records().len(), 1);
}

#[tokio::test]
async fn the_order_is_size_signature_timestamp_media_type_body() {
    let door = door();
    let with = |name: &str, value: &str| {
        let mut request = game(OF_SAMPLE, SAMPLE.into(), false);
        request["headers"][name] = value.into();
        request
    };
    let rows = [
        ("nobody's", to("nobody", &[], "{}".into(), false), 404, "not_found"),
        (
            "too large, unsigned",
            to("game", &[], "x".repeat(4_194_305).into(), false),
            413,
            "payload_too_large",
        ),
        (
            "unsigned, compressed",
            to("game", &[("content-encoding", "gzip")], "{}".into(), false),
            401,
            "invalid_signature",
        ),
        ("signed, compressed", with("content-encoding", "gzip"), 415, "unsupported_media_type"),
        ("signed, of no type", with("content-type", "json"), 415, "unsupported_media_type"),
        (
            "signed, in time",
            code_host(
                "3cab2db63a451172b42b147c7deeae5cd9357c1ad394bf447f800dcac24ad0d7",
                r#"{"id":"e2","until":"2026-01-01T00:00:01Z"}"#,
            ),
            202,
            "",
        ),
    ];
    for (name, request, status, expected) in rows {
        let response = door.answer(&request).await;
        assert_eq!(
            (response.status_code, code(&response).as_str()),
            (status, expected),
            "{name}: {}",
            response.body
        );
        let challenge = response.headers.get("www-authenticate").copied();
        assert_eq!(challenge, (status == 401).then_some("Signature"), "{name}");
    }
    door.clock.advance(DurationMs::from_secs(301));
    let stale = door.answer(&game(OF_SAMPLE, SAMPLE.into(), false)).await;
    assert_eq!((stale.status_code, code(&stale).as_str()), (401, "stale_signature"));
    assert!(stale.body.contains("\"field\":\"webhook-timestamp\""), "{}", stale.body);
}

#[tokio::test]
async fn c91_the_same_id_with_other_bytes_is_a_conflict_and_nothing_is_changed() {
    let door = door();
    let first =
        code_host("9e4ed1a4d6d5cf11683667d412d45d8be06aa24899642a59feb9d08845804963", r#"{"id":"e1"}"#);
    let other =
        code_host("bbc4cca6975c5bf27b266696f8c947b9583e3cd399e224ce2fdf74655e34c5c7", r#"{"id":"e1" }"#);
    assert_eq!(door.answer(&first).await.status_code, 202);
    let again = door.answer(&first).await;
    assert!(again.status_code == 202 && again.body.contains("\"repeated\":true"), "{}", again.body);
    let conflict = door.answer(&other).await;
    assert_eq!((conflict.status_code, code(&conflict).as_str()), (409, "conflict"));
    assert!(conflict.body.contains("stored_sha256") && conflict.body.contains("given_sha256"));
    assert_eq!(door.ledger.records().len(), 1);
}
