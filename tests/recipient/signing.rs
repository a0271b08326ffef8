//! What is sent: the headers, the signature and the frozen bytes.

use bytes::Bytes;
use waybill_domain::address::Locality;
use waybill_domain::attempt::Phase;
use waybill_domain::destination::SecretRef;
use waybill_domain::identity::{AttemptNumber, EventId};
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_domain::signature::SigningKey;
use waybill_domain::time::DurationMs;
use waybill_testkit::server::{Answer, Received, Script, ScriptedServer};

use crate::setting::*;

fn key(text: &str) -> SigningKey {
    SigningKey::parse("secret", text).unwrap()
}

async fn listening() -> ScriptedServer {
    ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap()
}

fn secrets(names: &[&str]) -> Vec<SecretRef> {
    names.iter().map(|name| SecretRef::Env((*name).to_owned())).collect()
}

#[tokio::test]
async fn the_request_has_the_written_headers_and_no_others() {
    let server = listening().await;
    let request = request_to(&server.url("/hooks?tenant=acme"));
    let id = request.delivery_id.to_string();
    attempt_by(&recipient(), request, PLENTY).await;
    let received = &server.requests()[0];
    assert_eq!(received.request_line, "POST /hooks?tenant=acme HTTP/1.1");
    let signature = key(K1).sign(&id, 1_767_225_600, &received.body);
    let mut headers = received.headers.clone();
    headers.sort();
    let host = server.address().to_string();
    let agent = format!("waybill/{}", env!("CARGO_PKG_VERSION"));
    let expected = [
        ("accept-encoding", "identity"),
        ("connection", "close"),
        ("content-length", "23"),
        ("content-type", "application/json"),
        ("host", &host),
        ("idempotency-key", &id),
        ("user-agent", &agent),
        ("waybill-attempt", "1"),
        ("waybill-event-id", "evt_1"),
        ("waybill-event-type", "lease.payment_recorded"),
        ("webhook-id", &id),
        ("webhook-signature", &signature),
        ("webhook-timestamp", "1767225600"),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn c79_the_signature_is_over_the_bytes_and_they_are_sent_as_they_are() {
    let escapes = Bytes::from("{\"note\":\"✨🎉\",\"x\":\"\\u001B\"}");
    assert_eq!(escapes.len(), 31);
    let written = "v1,Uih58demTRKjiVP50ipwa9bqL4SR0URzV5whmWqZDVA=";
    assert_eq!(key(K1).sign("dlv_001", 1_767_225_600, &escapes), written);
    for body in [
        escapes,
        Bytes::new(),
        Bytes::from("\u{2028}\u{FFFF}\u{0}\u{7F}"),
        Bytes::from_static(b"{\"a\":\"\xFF\xFE\"}"),
        Bytes::from_static(b"{\"a\":1.0,\"b\":-0,\"c\":1E2,\"d\":1234567890123456789012345678901234567890}"),
        Bytes::from((0..=255).cycle().take(4 << 20).collect::<Vec<u8>>()),
    ] {
        let server = listening().await;
        let mut request = request_to(&server.url("/"));
        request.body = body.clone();
        assert_eq!(attempt_by(&recipient(), request, PLENTY).await.outcome, Outcome::Delivered);
        let received = &server.requests()[0];
        assert!(received.body == body, "{} bytes", body.len());
        assert!(received.is_signed_by(&key(K1)) && !received.is_signed_by(&key(K2)));
    }
}

#[tokio::test]
async fn c83_secrets_are_decoded_and_two_make_two_signatures() {
    const UNPADDED: &str = "whsec_a2tra2tra2tra2tra2tra2tra2tra2traw";
    for (names, signed_by) in [
        (&["K1"][..], &[K1][..]),
        (&["K2", "K1"], &[K2, K1]),
        (&["UNPADDED"], &["whsec_a2tra2tra2tra2tra2tra2tra2tra2traw=="]),
    ] {
        let server = listening().await;
        let request = with_destination(request_to(&server.url("/")), |d| d.secrets = secrets(names));
        let recipient =
            recipient().with_secrets(TestSecrets::of(&[("K1", K1), ("K2", K2), ("UNPADDED", UNPADDED)]));
        attempt_by(&recipient, request, PLENTY).await;
        let received = &server.requests()[0];
        let signatures = received.header("webhook-signature").unwrap().split(' ').count();
        assert_eq!(signatures, signed_by.len());
        assert!(signed_by.iter().all(|text| received.is_signed_by(&key(text))));
    }
}

#[tokio::test]
async fn c83_without_every_secret_nothing_is_sent() {
    let server = listening().await;
    let store =
        [("K1", K1), ("EMPTY", "whsec_"), ("SHORT", "whsec_AAA="), ("BAD", "whsec_!"), ("BARE", "MDEyMzQ1")];
    for (names, note) in [
        (&[][..], "the destination has no signing secret, and nothing is sent unsigned"),
        (&["GONE"], "the secret env:GONE is missing: there is no such secret"),
        (&["K1", "GONE"], "the secret env:GONE is missing: there is no such secret"),
        (
            &["EMPTY"],
            "the secret env:EMPTY cannot sign: it has 0 bytes (whsec_ and 24 to 64 bytes in base64)",
        ),
        (
            &["SHORT"],
            "the secret env:SHORT cannot sign: it has 2 bytes (whsec_ and 24 to 64 bytes in base64)",
        ),
        (&["BAD"], "the secret env:BAD cannot sign: it is not base64 (whsec_ and 24 to 64 bytes in base64)"),
        (
            &["BARE"],
            "the secret env:BARE cannot sign: it does not begin with whsec_ (whsec_ and 24 to 64 bytes in base64)",
        ),
    ] {
        let request = with_destination(request_to(&server.url("/")), |d| d.secrets = secrets(names));
        let report = attempt_by(&recipient().with_secrets(TestSecrets::of(&store)), request, PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::SecretUnavailable, Applied::No));
        assert_eq!((report.phase, report.note.as_str()), (Phase::Prepare, note));
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn secrets_come_from_the_environment_unless_it_is_said_otherwise() {
    use waybill_http::{EnvSecrets, SecretError, Secrets as _};
    // Cargo sets this one for every test.
    let found = EnvSecrets.resolve(&SecretRef::Env("CARGO_PKG_NAME".to_owned())).await;
    assert_eq!(found.unwrap(), "waybill-tests");
    let missing = EnvSecrets.resolve(&SecretRef::Env("WAYBILL_TEST_NO_SUCH_VARIABLE".to_owned())).await;
    assert!(matches!(missing, Err(SecretError::Missing)));
}

#[tokio::test]
async fn c85_every_attempt_has_a_fresh_timestamp_and_signature_and_the_same_id_and_body() {
    let script = Script::in_turn([Answer::status(500), Answer::status(200)]);
    let server = ScriptedServer::start(script).await.unwrap();
    for (number, later_s) in [(0, 0), (1, 600)] {
        let now = T0.plus(DurationMs::from_secs(later_s));
        let mut request = request_to(&server.url("/"));
        request.attempt = AttemptNumber::after(number);
        let mut window = window(PLENTY);
        (window.started_at, window.lease_until) = (now, now.plus(DurationMs::from_secs(60)));
        let recipient = recipient_at(TestClock::at(now), Locality::AllowLocal);
        waybill_service::ports::Recipient::send(&recipient, request, window).await;
    }
    let requests = server.requests();
    let of = |name: &str| requests.iter().map(|r| r.header(name).unwrap()).collect::<Vec<_>>();
    assert_eq!(of("webhook-timestamp"), ["1767225600", "1767226200"]);
    assert_eq!(of("waybill-attempt"), ["1", "2"]);
    assert_eq!(of("webhook-id")[0], of("webhook-id")[1]);
    assert_eq!(of("idempotency-key"), of("webhook-id"));
    assert_ne!(of("webhook-signature")[0], of("webhook-signature")[1]);
    assert_eq!(requests[0].body, requests[1].body);
    assert!(requests.iter().all(|request: &Received| request.is_signed_by(&key(K1))));
}

#[tokio::test]
async fn an_event_id_of_any_text_arrives_as_a_legal_header() {
    let server = listening().await;
    let mut request = request_to(&server.url("/"));
    request.event_id = EventId::parse("Zahlung №7 100%").unwrap();
    attempt_by(&recipient(), request, PLENTY).await;
    assert_eq!(server.requests()[0].header("waybill-event-id"), Some("Zahlung%20%E2%84%967%20100%25"));
}

#[tokio::test]
async fn a_content_type_that_no_header_can_hold_is_not_replaced_and_nothing_is_sent() {
    let server = listening().await;
    for content_type in ["text/plain\r\nx-injected: 1", "text/\0", "text/plain\n"] {
        let mut request = request_to(&server.url("/"));
        request.content_type = content_type.to_owned();
        let report = attempt_by(&recipient(), request, PLENTY).await;
        assert_eq!(report.outcome, permanent(FailureClass::PayloadRejected, Applied::No));
        assert_eq!((report.phase, report.status), (Phase::Prepare, None));
        assert_eq!(report.note, "the content-type of this delivery has a character that no header may have");
    }
    assert_eq!(server.connections(), 0);
}
