//! What a report never holds, whatever the recipient does: secrets, signatures, paths, queries.

use waybill_domain::outcome::{Applied, FailureClass};
use waybill_domain::signature::SigningKey;
use waybill_testkit::server::{Answer, Received, Script, ScriptedServer};

use crate::setting::*;

/// An answer with every header of the request in its body and in a field or two.
fn echo(request: &Received, write: fn(&str) -> String) -> Answer {
    let mut body = String::from("you sent:\n");
    for (name, value) in &request.headers {
        body.push_str(&format!("{name}: {}\n", write(value)));
    }
    body.push_str(&format!("and your secret is {K1}, or {}", write(K1)));
    let signature = request.header("webhook-signature").unwrap_or_default().to_owned();
    Answer::with_body(
        500,
        &[("location", &signature), ("retry-after", &signature), ("retry-after", K1)],
        body,
    )
}

#[tokio::test]
async fn c117_secrets_and_signatures_that_a_recipient_echoes_are_not_kept() {
    let as_it_is: fn(&str) -> String = str::to_owned;
    let as_json: fn(&str) -> String = |text| text.replace('/', "\\/");
    let as_url: fn(&str) -> String = |text| text.replace('/', "%2F").replace('+', "%2b").replace('=', "%3D");
    let as_html: fn(&str) -> String =
        |text| text.replace('/', "&#x2F;").replace('+', "&#43;").replace('=', "&#x3D;");
    for write in [as_it_is, as_json, as_url, as_html] {
        let server =
            ScriptedServer::start(Script::decided_by(move |request| echo(request, write))).await.unwrap();
        let report = attempt(&server.url("/path-7f3a?query=SENTINEL-7f3a"), PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::ServerError, Applied::Unknown));
        let request = &server.requests()[0];
        assert!(request.is_signed_by(&SigningKey::parse("secret", K1).unwrap()));
        let signature = request.header("webhook-signature").unwrap().trim_start_matches("v1,");
        let excerpt = String::from_utf8(report.excerpt.clone().unwrap().bytes).unwrap();
        let kept = format!("{excerpt}\n{:?}\n{}", report.retry_after, report.note);
        for secret in [signature, K1, K1.trim_start_matches("whsec_")] {
            for spelling in [as_it_is, as_json, as_url, as_html] {
                assert!(!kept.contains(&spelling(secret)), "{kept}");
            }
        }
        assert!(excerpt.contains("[redacted]") && excerpt.contains("lease.payment_recorded"), "{excerpt}");
        assert!(!report.note.contains("7f3a"), "{}", report.note);
    }
}

#[tokio::test]
async fn c117_no_note_holds_a_path_a_query_or_what_the_recipient_wrote() {
    let raw = "HTTP/1.1 503 SENTINEL-7f3a\r\nx: SENTINEL-7f3a\r\nContent-Length: 0\r\n\r\n";
    for answer in [
        Answer::raw(raw),
        Answer::raw("SENTINEL-7f3a\r\n\r\n"),
        Answer::raw("HTTP/1.1 SENTINEL-7f3a\r\n\r\n"),
        Answer::reset(),
        Answer::hang(),
    ] {
        let server = ScriptedServer::start(Script::always(answer)).await.unwrap();
        let report = attempt(&server.url("/SENTINEL-7f3a?SENTINEL-7f3a"), SHORT).await;
        assert!(!format!("{report:?}").contains("SENTINEL"), "{report:?}");
    }
    let port = deserted_port().await;
    let report = attempt(&format!("http://127.0.0.1:{port}/SENTINEL-7f3a"), PLENTY).await;
    assert!(!report.note.contains("SENTINEL"), "{}", report.note);
}
