//! The status look-up on the wire: a signed GET under the same guards, that takes half the time.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::{NotSent, Phase, SendReport};
use waybill_domain::look_up::Finding;
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_domain::signature::SigningKey;
use waybill_domain::time::DurationMs;
use waybill_service::ports::Recipient as _;
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

async fn look_up(url: &str, timeout: DurationMs) -> Finding {
    let at = RecipientUrl::parse("status_url", url, Locality::AllowLocal).unwrap();
    recipient().look_up(request_to("https://hooks.example.com/in"), at, window(timeout)).await
}

async fn settled(url: &str, timeout: DurationMs) -> SendReport {
    match look_up(url, timeout).await {
        Finding::Settles(report) => report,
        other => panic!("settles nothing: {other:?}"),
    }
}

#[tokio::test]
async fn it_is_a_get_with_the_headers_of_a_request_signed_over_no_bytes() {
    let script = Script::always(Answer::with_body(200, &[], r#"{"reference":"r-1"}"#));
    let server = ScriptedServer::start(script).await.unwrap();
    let report = settled(&server.url("/status/evt_1?x=1"), PLENTY).await;
    assert_eq!((report.outcome, report.phase, report.status), (Outcome::Delivered, Phase::LookUp, Some(200)));
    assert_eq!(report.note, "status look-up: answered 200 OK; an earlier request was applied");
    assert_eq!(report.excerpt.unwrap().bytes, br#"{"reference":"r-1"}"#);
    let received = &server.requests()[0];
    assert_eq!(received.request_line, "GET /status/evt_1?x=1 HTTP/1.1");
    assert!(received.body.is_empty());
    assert!(received.is_signed_by(&SigningKey::parse("secret", K1).unwrap()));
    let mut names: Vec<&str> = received.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "accept-encoding",
        "connection",
        "host",
        "idempotency-key",
        "user-agent",
        "waybill-attempt",
        "waybill-event-id",
        "waybill-event-type",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    ];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn not_found_lets_the_request_go_and_anything_else_leaves_the_doubt() {
    let unknown = |class| retryable(class, Applied::Unknown);
    for (answer, outcome) in [
        (Answer::status(404), None),
        (Answer::status(500), Some(unknown(FailureClass::ServerError))),
        (Answer::status(401), Some(unknown(FailureClass::AuthenticationRejected))),
        (Answer::with_body(302, &[("location", "/elsewhere")], ""), Some(unknown(FailureClass::Redirect))),
        (Answer::raw("").then_close(), Some(unknown(FailureClass::ConnectionLost))),
    ] {
        let server = ScriptedServer::start(Script::always(answer.clone())).await.unwrap();
        let finding = look_up(&server.url("/status"), PLENTY).await;
        match (finding, outcome) {
            (Finding::NotApplied, None) => {}
            (Finding::Settles(report), Some(outcome)) => {
                assert_eq!((report.outcome, report.phase), (outcome, Phase::LookUp), "{answer:?}");
                assert!(report.note.starts_with("status look-up: "), "{}", report.note);
            }
            (finding, _) => panic!("{answer:?}: {finding:?}"),
        }
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_wait_that_the_recipient_asks_for_is_told() {
    let script = Script::always(Answer::with_body(429, &[("retry-after", "60")], ""));
    let server = ScriptedServer::start(script).await.unwrap();
    let report = settled(&server.url("/status"), PLENTY).await;
    assert_eq!(report.retry_after.unwrap().wait, Some(DurationMs::from_secs(60)));
}

#[tokio::test]
async fn no_answer_leaves_half_of_the_attempt_s_time_for_the_request() {
    let server = ScriptedServer::start(Script::always(Answer::hang())).await.unwrap();
    let report = settled(&server.url("/status"), SHORT).await;
    assert_eq!(report.outcome, retryable(FailureClass::Timeout, Applied::Unknown));
}

#[tokio::test]
async fn an_address_that_is_not_public_is_not_asked() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let at = RecipientUrl::parse("status_url", "https://status.example.com/1", Locality::PublicOnly).unwrap();
    let recipient = recipient_at(TestClock::at(T0), Locality::PublicOnly);
    let finding = recipient.look_up(request_to("https://hooks.example.com/in"), at, window(PLENTY)).await;
    let Finding::Settles(report) = finding else { panic!("{finding:?}") };
    assert_eq!(report.outcome, retryable(FailureClass::ForbiddenAddress, Applied::Unknown));
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn without_the_right_to_send_nobody_is_asked() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let mut over = window(PLENTY);
    over.limit_at = T0;
    let at = RecipientUrl::parse("status_url", &server.url("/status"), Locality::AllowLocal).unwrap();
    let finding = recipient().look_up(request_to(&server.url("/")), at, over).await;
    assert_eq!(finding, Finding::NotAsked(NotSent::DeadlinePassed));
    assert!(server.requests().is_empty());
}
