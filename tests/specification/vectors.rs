//! The independent right answers in `tests/vectors/`: every row of every file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::identity::{AttemptNumber, DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::outcome::{Applied, Outcome, Seen, Verdict, classify};
use waybill_domain::policy::Backoff;
use waybill_domain::retry_after;
use waybill_domain::signature::{SigningKey, header};
use waybill_domain::time::{DurationMs, TimeMs};

fn rows(file: &str, list: &str) -> Vec<Value> {
    let text = match file {
        "addresses" => include_str!("../vectors/addresses.json"),
        "backoff" => include_str!("../vectors/backoff.json"),
        "identity" => include_str!("../vectors/identity.json"),
        "outcomes" => include_str!("../vectors/outcomes.json"),
        "retry_after" => include_str!("../vectors/retry_after.json"),
        "signatures" => include_str!("../vectors/signatures.json"),
        other => panic!("no vectors {other}"),
    };
    let document: Value = serde_json::from_str(text).unwrap();
    let rows = document[list].as_array().unwrap().clone();
    assert!(!rows.is_empty(), "{file} has no {list}");
    rows
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("{field} of {row}"))
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field} of {row}"))
}

#[test]
fn a_delivery_id_is_derived_from_tenant_event_and_destination() {
    for row in rows("identity", "rows") {
        let id = DeliveryId::derive(
            &TenantId::parse(text(&row, "tenant")).unwrap(),
            &EventId::parse(text(&row, "event_id")).unwrap(),
            &DestinationName::parse(text(&row, "destination")).unwrap(),
        );
        assert_eq!(id.as_str(), text(&row, "delivery_id"), "{row}");
        assert_eq!(DeliveryId::parse(id.as_str()).unwrap(), id);
    }
}

#[test]
fn backoff_is_capped_exponential_with_full_jitter() {
    for row in rows("backoff", "rows") {
        let backoff = Backoff {
            base: DurationMs::from_ms(number(&row, "base_ms")),
            factor: row["factor"].as_f64().unwrap(),
            max: DurationMs::from_ms(number(&row, "max_ms")),
        };
        let attempt = AttemptNumber::after(u32::try_from(number(&row, "attempt") - 1).unwrap());
        let delay = backoff.delay(attempt, row["unit"].as_f64().unwrap());
        assert_eq!(delay.as_ms(), number(&row, "delay_ms"), "{row}");
    }
}

#[test]
fn retry_after_is_read_or_ignored_and_never_panics() {
    let now = TimeMs::parse("now", "2026-11-30T10:00:00Z").unwrap();
    for row in rows("retry_after", "rows") {
        let wait = retry_after::parse(text(&row, "field"), now).map(DurationMs::whole_secs_up);
        assert_eq!(wait, row["seconds"].as_u64(), "{row}");
    }
    for row in rows("retry_after", "several") {
        let fields: Vec<&str> =
            row["fields"].as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect();
        let wait = retry_after::parse_fields(fields, now).map(DurationMs::whole_secs_up);
        assert_eq!(wait, row["seconds"].as_u64(), "{row}");
    }
}

fn check_outcome(seen: Seen, row: &Value) {
    let (outcome, class, applied) = match classify(seen, &Default::default()) {
        Outcome::Delivered => ("delivered", None, "yes"),
        Outcome::Failed(failure) => (
            match failure.verdict {
                Verdict::Retryable => "retryable",
                Verdict::Permanent => "permanent",
            },
            Some(failure.class.as_str()),
            match failure.applied {
                Applied::No => "no",
                Applied::Unknown => "unknown",
            },
        ),
    };
    assert_eq!(
        (outcome, class, applied),
        (text(row, "outcome"), row["class"].as_str(), text(row, "applied")),
        "{row}"
    );
}

#[test]
fn c51_every_status_has_its_written_meaning() {
    for row in rows("outcomes", "statuses") {
        check_outcome(Seen::Status(u16::try_from(number(&row, "status")).unwrap()), &row);
    }
}

#[test]
fn every_fault_of_the_transport_has_its_written_meaning() {
    for row in rows("outcomes", "transport") {
        let seen = match text(&row, "event") {
            "dns_temporary" | "dns_no_such_name" => Seen::NameNotResolved,
            "connect_refused" | "connect_timeout" => Seen::NotConnected,
            "tls_handshake" => Seen::TlsFailed,
            "reset_before_request_written" => Seen::LostBeforeRequest,
            "reset_after_request_written" => Seen::LostAfterRequest,
            "response_timeout" => Seen::AnswerTimedOut,
            "malformed_response" => Seen::AnswerMalformed,
            "address_forbidden" => Seen::AddressForbidden,
            "payload_missing" => Seen::PayloadMissing,
            // Once a 2xx was seen, nothing that its body does matters.
            "body_stalled_after_2xx" | "body_too_long_after_2xx" | "body_reset_after_2xx" => {
                Seen::Status(200)
            }
            other => panic!("unknown event {other}"),
        };
        check_outcome(seen, &row);
    }
}

fn check_signature(secret: &str, id: &str, timestamp_s: i64, body: &[u8], expected: &str) {
    let key = SigningKey::parse("secret", secret).unwrap();
    assert_eq!(key.sign(id, timestamp_s, body), expected, "{id}");
}

#[test]
fn signatures_are_standard_webhooks_v1() {
    for row in rows("signatures", "rows") {
        let body = STANDARD.decode(text(&row, "body_base64")).unwrap();
        let timestamp_s = row["timestamp"].as_i64().unwrap();
        check_signature(text(&row, "secret"), text(&row, "id"), timestamp_s, &body, text(&row, "signature"));
    }
}

const K1: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

#[test]
fn c79_the_signature_is_over_the_very_bytes_with_escapes_and_emoji() {
    let body = "{\"note\":\"✨🎉\",\"x\":\"\\u001B\"}";
    assert_eq!(body.len(), 31);
    let expected = "v1,Uih58demTRKjiVP50ipwa9bqL4SR0URzV5whmWqZDVA=";
    check_signature(K1, "dlv_001", 1_767_225_600, body.as_bytes(), expected);
}

#[test]
fn c81_bytes_that_are_not_utf_8_are_signed_as_they_are() {
    let body = b"{\"a\":\"\xff\xfe\"}";
    let expected = "v1,XBSAxWaxtnFUstwtPO+RWi/6Q116AeZek+aUlUbPo7Y=";
    check_signature(K1, "dlv_001", 1_767_225_600, body, expected);
}

#[test]
fn c83_the_key_is_the_decoded_secret_with_or_without_padding() {
    let padded = "whsec_a2tra2tra2tra2tra2tra2tra2tra2traw==";
    let k25 = "v1,hgDZj7KUZAGeQlg7fLYfivZJjoObGA/CkpAFAyhD0O4=";
    let rows = [
        (K1, "v1,mBxUHrZGLrldbIF4h3/D7iK02XN8UAqeo+4D0OqLQa8="),
        (padded, k25),
        (padded.trim_end_matches('='), k25),
    ];
    for (secret, expected) in rows {
        check_signature(secret, "dlv_001", 1_767_225_600, b"{}", expected);
    }
}

#[test]
fn while_secrets_rotate_each_signs_and_the_header_carries_both() {
    let key = |text| SigningKey::parse("secret", text).unwrap();
    let (old, new) = (key(K1), key("whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="));
    let signed = |key: &SigningKey| key.sign("dlv_001", 1_767_225_600, b"{}");
    let (one, both) = (signed(&old), format!("{} {}", signed(&old), signed(&new)));
    let keys = [old, new];
    assert_eq!(header(&keys, "dlv_001", 1_767_225_600, b"{}"), both);
    assert_eq!(header(&keys[..1], "dlv_001", 1_767_225_600, b"{}"), one);
}

#[test]
fn c83_c87_secrets_that_are_no_keys_are_refused_and_not_echoed() {
    let short = format!("whsec_{}", STANDARD.encode([7; 23]));
    let long = format!("whsec_{}", STANDARD.encode([7; 65]));
    for secret in ["", "whsec_", "whsec_AAA=", "whsec_!", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0", &short, &long] {
        let refusal = SigningKey::parse("secrets[0]", secret).unwrap_err().to_string();
        assert!(refusal.starts_with("secrets[0]: "), "{refusal}");
        assert!(secret.len() < 8 || !refusal.contains(&secret[6..]), "echoes {secret}");
    }
    assert_eq!(format!("{:?}", SigningKey::parse("s", K1).unwrap()), "SigningKey(…)");
}

#[test]
fn recipient_urls_are_public_https_or_refused() {
    for row in rows("addresses", "rows") {
        let judged = RecipientUrl::parse("url", text(&row, "url"), Locality::PublicOnly);
        // A name is taken now and judged by what it resolves to at every attempt.
        assert_eq!(judged.is_ok(), text(&row, "verdict") != "refuse", "{row}: {judged:?}");
    }
}

#[test]
fn c69_c71_addresses_that_hide_a_private_one_are_refused() {
    let rows = [
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[::]",
        "[fe80::1]",
        "[fec0::1]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:7f00:1::]",
    ];
    for host in rows {
        let url = format!("https://{host}/");
        for locality in [Locality::PublicOnly, Locality::AllowLocal] {
            let is_loopback = host.contains("7f00:1]") || host.contains("127.0.0.1");
            let allowed = RecipientUrl::parse("url", &url, locality).is_ok();
            assert_eq!(allowed, is_loopback && locality == Locality::AllowLocal, "{url} {locality:?}");
        }
    }
}

#[test]
fn c75_c77_urls_with_credentials_or_odd_text_are_refused_without_echo() {
    let rows = [
        ("https://user:p%40ss@hook.example.test/x", "credentials"),
        ("https://h.test:0/", "port 0"),
        ("https://h.test/\t", "control character"),
        ("https://h.te\nst/", "control character"),
        ("https://h.test/\r", "control character"),
        ("https://h.test/#x", "fragment"),
        ("https://./", "no host"),
    ];
    for (url, fault) in rows {
        let refusal = RecipientUrl::parse("url", url, Locality::PublicOnly).unwrap_err().to_string();
        assert!(refusal.contains(fault), "{url:?}: {refusal}");
        assert!(!refusal.contains("p%40ss") && !refusal.contains("p@ss"), "{refusal}");
    }
}

#[test]
fn c77_spellings_of_one_url_become_one() {
    for spelling in ["https://h.test./", "https://h.test:443/", "https://H.test/", "HTTPS://h.test"] {
        let url = RecipientUrl::parse("url", spelling, Locality::PublicOnly).unwrap();
        assert_eq!(url.to_string(), "https://h.test/", "{spelling}");
    }
    let odd = RecipientUrl::parse("url", "https://h.test\\@127.0.0.1/", Locality::PublicOnly).unwrap();
    assert_eq!(odd.as_url().host_str(), Some("h.test"));
}
