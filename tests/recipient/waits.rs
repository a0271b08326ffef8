//! `Retry-After` as it comes over the wire.

use waybill_domain::outcome::{Applied, FailureClass};
use waybill_domain::time::DurationMs;
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

/// What is understood of these fields, and what is kept of them, at T0.
async fn asked(fields: &[&str]) -> Option<(Option<u64>, String)> {
    let headers: Vec<(&str, &str)> = fields.iter().map(|field| ("retry-after", *field)).collect();
    let server = ScriptedServer::start(Script::always(Answer::with_body(503, &headers, ""))).await.unwrap();
    let report = attempt(&server.url("/"), PLENTY).await;
    assert_eq!(report.outcome, retryable(FailureClass::Unavailable, Applied::No));
    report.retry_after.map(|asked| (asked.wait.map(|wait| wait.as_ms() / 1000), asked.received))
}

#[tokio::test]
async fn c47_all_three_forms_of_a_date_are_understood_and_others_are_not() {
    for (field, seconds) in [
        ("Thu, 01 Jan 2026 00:02:00 GMT", Some(120)),
        ("Thursday, 01-Jan-26 00:02:00 GMT", Some(120)),
        ("Thu Jan  1 00:02:00 2026", Some(120)),
        ("Wed, 31 Dec 2025 00:00:00 GMT", Some(0)),
        ("Fri, 01 Jan 2026 00:02:00 GMT", None),
        ("Thu, 01 Jan 2026 00:02:00 +0000", None),
    ] {
        assert_eq!(asked(&[field]).await, Some((seconds, field.to_owned())), "{field}");
    }
}

#[tokio::test]
async fn of_several_fields_the_longest_counts_and_all_are_shown() {
    assert_eq!(asked(&[]).await, None);
    assert_eq!(asked(&["7"]).await, Some((Some(7), "7".to_owned())));
    assert_eq!(asked(&["7", "soon", "30"]).await, Some((Some(30), "7, soon, 30".to_owned())));
    assert_eq!(asked(&["1e300"]).await, Some((None, "1e300".to_owned())));
    let long = "9".repeat(100);
    assert_eq!(asked(&[&long]).await, Some((Some(366 * 86_400), "9".repeat(64))));
    assert_eq!(asked(&["so\tso"]).await, Some((None, "so\u{FFFD}so".to_owned())));
    assert_eq!(asked(&["später"]).await, Some((None, "später".to_owned())));
}

#[tokio::test]
async fn c49_what_a_busy_recipient_asks_for_is_reported_in_full() {
    let answer = Answer::with_body(429, &[("Retry-After", "300")], "slow down");
    let server = ScriptedServer::start(Script::always(answer)).await.unwrap();
    let report = attempt(&server.url("/"), PLENTY).await;
    assert_eq!(report.outcome, retryable(FailureClass::RateLimited, Applied::No));
    assert_eq!(report.retry_after.unwrap().wait, Some(DurationMs::from_secs(300)));
}
