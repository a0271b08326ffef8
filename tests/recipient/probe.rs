//! What test events find out about a recipient: one that is right, and those that have something to mend.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use waybill_domain::address::Locality;
use waybill_domain::identity::TenantId;
use waybill_domain::outcome::StatusOverride;
use waybill_domain::probe::{Heard, Opinion, Trial, judge};
use waybill_domain::signature::SigningKey;
use waybill_domain::time::DurationMs;
use waybill_http::Resolver;
use waybill_testkit::server::{Answer, Received, Script, ScriptedServer};

use crate::setting::*;

const NOW_S: i64 = 1_767_225_600;

/// Whether a recipient that follows the specification takes this request.
fn is_right(request: &Received) -> bool {
    let timestamp_s: i64 = request.header("webhook-timestamp").unwrap().parse().unwrap();
    let is_fresh = (timestamp_s - NOW_S).abs() <= 300;
    is_fresh && request.is_signed_by(&SigningKey::parse("secret", K1).unwrap())
}

fn right() -> Script {
    Script::decided_by(|request| Answer::status(if is_right(request) { 204 } else { 401 }))
}

async fn probe(server: &ScriptedServer, timeout: DurationMs) -> Vec<Heard> {
    let request = with_destination(request_to(&server.url("/hooks")), |d| d.timeout = timeout);
    let tenant = TenantId::parse("acme").unwrap();
    recipient().probe(&request.destination, &tenant, "n1").await.unwrap()
}

/// Good, bad or unclear, check by check.
fn opinions(heard: &[Heard], timeout: DurationMs) -> [&'static str; 5] {
    judge(heard, timeout).map(|finding| finding.opinion.as_str())
}

#[tokio::test]
async fn each_kind_of_recipient_is_found_out() {
    let answer = |status| move |_: &Received| Answer::status(status);
    // takes a good event, answers in time, takes a repeated ID, refuses a wrong signature, an old event
    let rows: Vec<(&str, Script, [&str; 5])> = vec![
        ("right", right(), ["good"; 5]),
        ("verifies nothing", Script::always(Answer::status(200)), ["good", "good", "good", "bad", "bad"]),
        (
            "looks at the signature alone",
            Script::decided_by(|request| {
                let key = SigningKey::parse("secret", K1).unwrap();
                Answer::status(if request.is_signed_by(&key) { 200 } else { 400 })
            }),
            ["good", "good", "good", "good", "bad"],
        ),
        (
            "looks at the time alone",
            Script::decided_by(|request| {
                let at = request.header("webhook-timestamp").unwrap() == NOW_S.to_string();
                Answer::status(if at { 200 } else { 403 })
            }),
            ["good", "good", "good", "bad", "good"],
        ),
        (
            "knows no repeats",
            {
                let seen = AtomicU64::new(0);
                Script::decided_by(move |request| match is_right(request) {
                    true if seen.fetch_add(1, Ordering::Relaxed) == 0 => Answer::status(201),
                    true => Answer::status(409),
                    false => Answer::status(401),
                })
            },
            ["good", "good", "bad", "good", "good"],
        ),
        (
            "fails over what it should refuse",
            Script::decided_by(|request| Answer::status(if is_right(request) { 200 } else { 500 })),
            ["good", "good", "good", "unclear", "unclear"],
        ),
        (
            "is too busy to judge",
            Script::decided_by(|request| Answer::status(if is_right(request) { 200 } else { 429 })),
            ["good", "good", "good", "unclear", "unclear"],
        ),
        (
            "refuses everything",
            Script::decided_by(answer(401)),
            ["bad", "good", "unclear", "unclear", "unclear"],
        ),
        ("is broken", Script::decided_by(answer(503)), ["bad", "good", "unclear", "unclear", "unclear"]),
        ("hangs up", Script::always(Answer::close()), ["bad", "unclear", "unclear", "unclear", "unclear"]),
    ];
    for (name, script, expected) in rows {
        let server = ScriptedServer::start(script).await.unwrap();
        let heard = probe(&server, PLENTY).await;
        assert_eq!(opinions(&heard, PLENTY), expected, "{name}: {heard:?}");
        let sent = if expected[0] == "good" { 4 } else { 1 };
        assert_eq!((server.requests().len(), heard.len()), (sent, sent), "{name}");
        for finding in judge(&heard, PLENTY) {
            assert!(finding.opinion != Opinion::Bad || finding.mend.is_some(), "{name}: {finding:?}");
        }
    }
}

#[tokio::test]
async fn the_events_are_what_they_are_called_and_only_the_repeat_has_an_id_again() {
    let server = ScriptedServer::start(right()).await.unwrap();
    probe(&server, PLENTY).await;
    let requests = server.requests();
    let key = SigningKey::parse("secret", K1).unwrap();
    let of = |name: &str| requests.iter().map(|r| r.header(name).unwrap().to_owned()).collect::<Vec<_>>();
    let signed: Vec<bool> = requests.iter().map(|request| request.is_signed_by(&key)).collect();
    assert_eq!(signed, [true, true, false, true], "the old event is refused for its age alone");
    assert_eq!(of("webhook-timestamp"), ["1767225600", "1767225600", "1767225600", "1767222000"]);
    let ids = of("webhook-id");
    assert_eq!(ids, of("idempotency-key"));
    assert_eq!(ids[0], ids[1]);
    assert!(ids[0] != ids[2] && ids[0] != ids[3] && ids[2] != ids[3]);
    assert_eq!(of("waybill-event-type"), ["waybill.probe"; 4]);
    assert_eq!(of("waybill-attempt"), ["1", "2", "1", "1"]);
    assert!(requests.iter().all(|request| request.request_line == "POST /hooks HTTP/1.1"));
}

#[tokio::test]
async fn an_answer_after_more_than_half_of_the_timeout_is_too_slow() {
    // Every look at the clock is two seconds after the one before.
    let reads = Arc::new(AtomicU64::new(0));
    let clock =
        TestClock::reading(move || T0.plus(DurationMs::from_secs(2 * reads.fetch_add(1, Ordering::Relaxed))));
    let slow = recipient_at(clock, Locality::AllowLocal);
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let timeout = DurationMs::from_secs(12);
    let request = with_destination(request_to(&server.url("/")), |d| d.timeout = timeout);
    let tenant = TenantId::parse("acme").unwrap();
    let heard = slow.probe(&request.destination, &tenant, "n1").await.unwrap();
    let [_, in_time, ..] = judge(&heard, timeout);
    assert_eq!(in_time.opinion, Opinion::Bad, "{heard:?}");
    assert_eq!(in_time.found, "the slowest answer took 8s of 12s");
    assert_eq!(in_time.mend, Some("keep the event, answer 202, and do the work afterwards"));
}

#[test]
fn half_of_the_timeout_is_still_in_time() {
    for (took_ms, expected) in [(0, "good"), (5000, "good"), (5001, "bad"), (10_000, "bad")] {
        let heard = Heard {
            trial: Trial::Good,
            delivered: true,
            status: Some(200),
            class: None,
            took: DurationMs::from_ms(took_ms),
            note: String::new(),
        };
        assert_eq!(opinions(&[heard], DurationMs::from_secs(10))[1], expected, "{took_ms}");
    }
}

#[tokio::test]
async fn no_answer_in_time_ends_the_probe() {
    let server = ScriptedServer::start(Script::always(Answer::hang())).await.unwrap();
    let heard = probe(&server, SHORT).await;
    assert_eq!(opinions(&heard, SHORT), ["bad", "unclear", "unclear", "unclear", "unclear"]);
    assert!(heard[0].note.starts_with("no answer "), "{}", heard[0].note);
}

#[tokio::test]
async fn a_status_that_the_destination_reads_as_delivered_takes_the_event() {
    let server = ScriptedServer::start(Script::always(Answer::status(409))).await.unwrap();
    let request = with_destination(request_to(&server.url("/")), |d| {
        d.statuses.insert(409, StatusOverride::Delivered);
    });
    let tenant = TenantId::parse("acme").unwrap();
    let heard = recipient().probe(&request.destination, &tenant, "n1").await.unwrap();
    assert_eq!(opinions(&heard, PLENTY), ["good"; 5]);
}

#[tokio::test]
async fn a_probe_passes_the_guards_of_a_delivery() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let port = server.address().port();
    let (public, here) = (Locality::PublicOnly, TestResolver::here());
    assert!(here.resolve("hooks.example.com", port).await.is_ok());
    let request = request_to(&format!("https://hooks.example.com:{port}/"));
    let tenant = TenantId::parse("acme").unwrap();
    let heard =
        recipient_at(TestClock::at(T0), public).probe(&request.destination, &tenant, "n1").await.unwrap();
    assert!(heard[0].note.contains("loopback"), "{}", heard[0].note);
    let gone = with_destination(request_to(&server.url("/")), |d| {
        d.secrets = vec![waybill_domain::destination::SecretRef::Env("GONE".to_owned())];
    });
    let heard = recipient().probe(&gone.destination, &tenant, "n1").await.unwrap();
    assert_eq!(heard[0].note, "the secret env:GONE is missing: there is no such secret");
    assert_eq!(server.connections(), 0);
}
