//! TLS with the host's own name, over a connection to a judged address.

use std::net::{IpAddr, Ipv4Addr};

use waybill_domain::address::Locality;
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_http::{HttpRecipient, Tls};
use waybill_testkit::server::tls::{Authority, Validity};
use waybill_testkit::server::{Answer, Reading, Script, ScriptedServer, Setting};

use crate::setting::*;

async fn server_for(authority: &Authority, name: &str, validity: Validity) -> ScriptedServer {
    let setting = Setting::new(Script::always(Answer::with_body(200, &[], "ok")));
    setting.with_tls(&authority.identity(name, validity)).start().await.unwrap()
}

fn trusting(authority: &Authority) -> HttpRecipient<TestClock, TestResolver, TestSecrets> {
    recipient().with_tls(Tls::trusting(authority.roots()))
}

#[tokio::test]
async fn c67_the_address_is_pinned_and_the_name_goes_into_sni_certificate_and_host() {
    let authority = Authority::new();
    let server = server_for(&authority, "hook.example.test", Validity::Current).await;
    let port = server.address().port();
    for url in
        [format!("https://hook.example.test:{port}/in"), format!("https://Hook.Example.Test.:{port}/in")]
    {
        let report = attempt_by(&trusting(&authority), request_to(&url), PLENTY).await;
        assert_eq!(report.outcome, Outcome::Delivered, "{}", report.note);
        let request = server.requests().pop().unwrap();
        assert_eq!(request.server_name.as_deref(), Some("hook.example.test"));
        assert_eq!(request.header("host"), Some(format!("hook.example.test:{port}").as_str()));
    }
}

#[tokio::test]
async fn c67_a_certificate_may_be_for_an_address() {
    let authority = Authority::new();
    let server = server_for(&authority, "127.0.0.1", Validity::Current).await;
    let url = format!("https://{}/", server.address());
    let report = attempt_by(&trusting(&authority), request_to(&url), PLENTY).await;
    assert_eq!(report.outcome, Outcome::Delivered, "{}", report.note);
    assert_eq!(server.requests()[0].server_name, None);
}

#[tokio::test]
async fn a_certificate_that_will_not_do_is_told_apart_and_nothing_is_sent() {
    let authority = Authority::new();
    for (name, validity, note) in [
        ("hook.example.test", Validity::Past, "the recipient's certificate has expired"),
        (
            "hook.example.test",
            Validity::Future,
            "the recipient's certificate is not valid yet; if it should be, this machine's clock is slow",
        ),
        (
            "other.example.test",
            Validity::Current,
            "the recipient's certificate is for another name than the destination's",
        ),
    ] {
        let server = server_for(&authority, name, validity).await;
        let url = format!("https://hook.example.test:{}/", server.address().port());
        let report = attempt_by(&trusting(&authority), request_to(&url), PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::Tls, Applied::No));
        assert_eq!((report.phase, report.note.as_str()), (Phase::Tls, note));
        assert_eq!(server.bytes_received(), 0);
    }
}

#[tokio::test]
async fn an_issuer_that_is_not_trusted_is_refused_with_the_public_roots_too() {
    let authority = Authority::new();
    let server = server_for(&authority, "hook.example.test", Validity::Current).await;
    let url = format!("https://hook.example.test:{}/", server.address().port());
    for recipient in [recipient(), trusting(&Authority::new())] {
        let report = attempt_by(&recipient, request_to(&url), PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::Tls, Applied::No));
        assert!(report.note.contains("issuer that is not trusted"), "{}", report.note);
    }
    assert_eq!(server.bytes_received(), 0);
}

#[tokio::test]
async fn what_does_not_speak_tls_or_stops_half_way_is_told_apart() {
    for (answer, note) in [
        (Answer::raw("HTTP/1.1 400 Bad Request\r\n\r\n"), "what answers there does not speak TLS"),
        (Answer::close(), "the recipient closed the connection during the TLS handshake"),
        (Answer::reset(), "the recipient reset the connection during the TLS handshake"),
        (Answer::hang(), "the TLS handshake was not done within 300ms"),
    ] {
        let script = Script::always(answer.then_hang()).on_reading(Reading::Bytes(1));
        let server = ScriptedServer::start(script).await.unwrap();
        let report = attempt(&format!("https://{}/", server.address()), SHORT).await;
        assert_eq!(report.outcome, retryable(FailureClass::Tls, Applied::No));
        assert_eq!((report.phase, report.note.as_str()), (Phase::Tls, note));
    }
}

#[tokio::test]
async fn c75_credentials_in_a_url_never_get_as_far_as_a_request() {
    for locality in [Locality::PublicOnly, Locality::AllowLocal] {
        let url = "https://user:p%40ss@hook.example.test/x";
        let refused = waybill_domain::address::RecipientUrl::parse("url", url, locality).unwrap_err();
        assert!(!refused.to_string().contains("p%40ss"));
    }
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    attempt(&server.url("/"), PLENTY).await;
    assert_eq!(server.requests()[0].header("authorization"), None);
    assert_eq!(server.address().ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
}
