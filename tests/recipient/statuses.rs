//! Every final status, as it comes over the wire.

use waybill_domain::attempt::Phase;
use waybill_domain::outcome::{Applied, FailureClass, Outcome, StatusOverride};
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

#[tokio::test]
async fn c51_every_status_has_its_written_meaning() {
    let rows = outcome_vectors().statuses;
    let script = Script::in_turn(rows.iter().map(|row| Answer::status(row.status)));
    let server = ScriptedServer::start(script).await.unwrap();
    for row in &rows {
        let report = attempt(&server.url("/"), PLENTY).await;
        assert_eq!(in_words(report.outcome), row.in_words(), "{}", row.status);
        assert_eq!((report.status, report.phase), (Some(row.status), Phase::Answer));
        assert!(report.note.starts_with(&format!("answered {}", row.status)), "{}", report.note);
    }
    assert_eq!(server.requests().len(), rows.len(), "one POST for each");
    assert!(server.requests().iter().all(|r| r.complete && r.request_line == "POST / HTTP/1.1"));
}

#[tokio::test]
async fn c51_what_is_not_an_http_answer_is_ambiguous() {
    for answer in [
        "HTTP/1.1 099 x\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n",
        "\0\u{1}\u{2}\r\n\r\n",
    ] {
        let script = Script::always(Answer::raw(answer).then_close());
        let server = ScriptedServer::start(script).await.unwrap();
        let report = attempt(&server.url("/"), PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::Protocol, Applied::Unknown), "{answer:?}");
        assert_eq!((report.status, report.phase), (None, Phase::Request));
        assert!(server.requests()[0].complete);
    }
}

#[tokio::test]
async fn a_destination_may_read_single_statuses_in_its_own_way() {
    let server = ScriptedServer::start(Script::always(Answer::status(404))).await.unwrap();
    for (meaning, outcome) in [
        (StatusOverride::Delivered, Outcome::Delivered),
        (StatusOverride::Retryable, retryable(FailureClass::EndpointMissing, Applied::No)),
    ] {
        let request = with_destination(request_to(&server.url("/")), |d| {
            d.statuses.insert(404, meaning);
        });
        assert_eq!(attempt_by(&recipient(), request, PLENTY).await.outcome, outcome);
    }
}

#[tokio::test]
async fn redirects_are_never_followed() {
    let elsewhere = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url("/elsewhere");
        let script = Script::always(Answer::with_body(status, &[("location", &location)], ""));
        let server = ScriptedServer::start(script).await.unwrap();
        let report = attempt(&server.url("/"), PLENTY).await;
        assert_eq!(report.outcome, permanent(FailureClass::Redirect, Applied::No), "{status}");
        assert_eq!(server.connections(), 1);
    }
    assert_eq!(elsewhere.connections(), 0);
}
