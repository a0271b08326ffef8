//! What goes wrong on the way, each fault produced on a real socket.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use waybill_domain::address::Locality;
use waybill_domain::attempt::{Phase, SendReport};
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_http::{ResolveError, Tls};
use waybill_testkit::server::tls::{Authority, Validity};
use waybill_testkit::server::{Answer, DeduplicatingRecipient, Reading, Script, ScriptedServer, Setting};

use crate::setting::*;

type Attempting = Pin<Box<dyn Future<Output = SendReport>>>;

/// How each row of the vectors is brought about; nothing where that is not the adapter's to see.
fn bring_about(event: &str) -> Option<Attempting> {
    Some(match event {
        "dns_temporary" => Box::pin(failing_resolver("try again later")),
        "dns_no_such_name" => Box::pin(failing_resolver("no such name")),
        "connect_refused" => Box::pin(connect_refused()),
        "connect_timeout" => Box::pin(connect_timeout()),
        "tls_handshake" => Box::pin(tls_handshake()),
        "reset_before_request_written" => Box::pin(reset_before_request_written()),
        "reset_after_request_written" => Box::pin(answered(Answer::reset(), PLENTY)),
        "response_timeout" => Box::pin(answered(Answer::hang(), SHORT)),
        "malformed_response" => Box::pin(answered(Answer::raw("GARBAGE\r\n\r\n"), PLENTY)),
        "address_forbidden" => Box::pin(address_forbidden()),
        "body_stalled_after_2xx" => Box::pin(answered(half_a_body().then_hang(), SHORT)),
        "body_too_long_after_2xx" => {
            Box::pin(answered(Answer::endless(200, "x".repeat(4096), Duration::ZERO), PLENTY))
        }
        "body_reset_after_2xx" => {
            Box::pin(answered(half_a_body().then_wait(Duration::from_millis(50)).then_reset(), PLENTY))
        }
        // Seen by the service, which reads the payload before it calls the adapter.
        "payload_missing" => return None,
        other => panic!("nothing brings {other} about"),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c63_every_fault_of_the_transport_has_its_written_meaning() {
    let rows = outcome_vectors().transport;
    let mut brought_about = 0;
    for row in &rows {
        let Some(attempting) = bring_about(&row.event) else { continue };
        let report = attempting.await;
        assert_eq!(in_words(report.outcome), row.in_words(), "{}: {}", row.event, report.note);
        assert!(!report.note.is_empty());
        brought_about += 1;
    }
    assert_eq!(brought_about, rows.len() - 1);
}

fn half_a_body() -> Answer {
    Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf").applied()
}

async fn answered(answer: Answer, timeout: waybill_domain::time::DurationMs) -> SendReport {
    let server = ScriptedServer::start(Script::always(answer)).await.unwrap();
    attempt(&server.url("/"), timeout).await
}

async fn failing_resolver(why: &'static str) -> SendReport {
    let resolver = TestResolver::saying(move |_, _| Err(ResolveError(why.to_owned())));
    attempt_by(&recipient().with_resolver(resolver), request_to("https://hook.example.test/"), PLENTY).await
}

async fn address_forbidden() -> SendReport {
    let resolver = TestResolver::always(vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5))]);
    attempt_by(&recipient().with_resolver(resolver), request_to("https://hook.example.test/"), PLENTY).await
}

async fn connect_refused() -> SendReport {
    attempt(&format!("http://127.0.0.1:{}/", deserted_port().await), PLENTY).await
}

/// A listener whose queue is full: the system drops what comes after, as a dead host would.
struct Deaf {
    address: SocketAddr,
    _listener: tokio::net::TcpListener,
    _queued: Vec<tokio::task::JoinHandle<std::io::Result<TcpStream>>>,
}

async fn deaf_at(address: &str) -> Deaf {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address.parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    loop {
        let mut connecting = tokio::spawn(TcpStream::connect(address));
        let waited = tokio::time::timeout(Duration::from_millis(200), &mut connecting).await;
        match waited {
            Ok(stream) => queued.push(tokio::spawn(async move { stream.unwrap() })),
            Err(_) => return Deaf { address, _listener: listener, _queued: queued },
        }
    }
}

async fn connect_timeout() -> SendReport {
    let deaf = deaf_at("127.0.0.1:0").await;
    attempt(&format!("http://{}/", deaf.address), SHORT).await
}

async fn tls_handshake() -> SendReport {
    let script = Script::always(Answer::status(400)).on_reading(Reading::Bytes(1));
    let server = ScriptedServer::start(script).await.unwrap();
    attempt(&format!("https://{}/", server.address()), PLENTY).await
}

/// The recipient ends the connection after the TLS handshake and before the request: the last look
/// at the clock, which comes right before the first byte, waits until that has happened.
async fn reset_before_request_written() -> SendReport {
    let authority = Authority::new();
    let identity = authority.identity("hook.example.test", Validity::Current);
    let script = Script::always(Answer::reset()).on_reading(Reading::Nothing);
    let server = Arc::new(Setting::new(script).with_tls(&identity).start().await.unwrap());
    let resolved = Arc::new(AtomicBool::new(false));
    let resolver = {
        let resolved = Arc::clone(&resolved);
        TestResolver::saying(move |_, _| {
            resolved.store(true, Ordering::SeqCst);
            Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
        })
    };
    let clock = {
        let server = Arc::clone(&server);
        TestClock::reading(move || {
            while resolved.load(Ordering::SeqCst) && server.closed() == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            T0
        })
    };
    let recipient = recipient_at(clock, Locality::AllowLocal)
        .with_resolver(resolver)
        .with_tls(Tls::trusting(authority.roots()));
    let url = format!("https://hook.example.test:{}/", server.address().port());
    let report = attempt_by(&recipient, request_to(&url), PLENTY).await;
    assert_eq!(report.phase, Phase::Tls);
    assert_eq!(server.bytes_received(), 0);
    report
}

#[tokio::test]
async fn c63a_an_answer_that_comes_too_late_leaves_a_doubt() {
    let script = Script::in_turn([Answer::hang().applied(), Answer::status(200)]);
    let books = DeduplicatingRecipient::start(script).await.unwrap();
    let request = request_to(&books.server.url("/"));
    let report = attempt_by(&recipient(), request.clone(), SHORT).await;
    assert_eq!(report.outcome, retryable(FailureClass::Timeout, Applied::Unknown));
    assert_eq!((report.phase, report.status), (Phase::Request, None));
    assert_eq!(report.note, "no answer within 300ms; the recipient may have applied the request");
    assert_eq!(attempt_by(&recipient(), request.clone(), PLENTY).await.outcome, Outcome::Delivered);
    let tally = books.tally(request.delivery_id.as_str());
    assert_eq!((tally.requests, tally.applied, tally.effects), (2, 2, 1));
}

#[tokio::test]
async fn c63b_a_refused_connection_leaves_none() {
    let port = deserted_port().await;
    let report = attempt(&format!("http://127.0.0.1:{port}/"), PLENTY).await;
    assert_eq!(report.outcome, retryable(FailureClass::Connect, Applied::No));
    assert_eq!(report.phase, Phase::Connect);
    assert_eq!(report.note, format!("connection refused by 127.0.0.1:{port}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c63c_a_reset_between_tls_and_the_first_byte_leaves_none() {
    let report = reset_before_request_written().await;
    assert_eq!(report.outcome, retryable(FailureClass::Connect, Applied::No), "{}", report.note);
}

#[tokio::test]
async fn c63d_a_reset_in_the_middle_of_the_request_leaves_a_doubt() {
    for body_length in [40, 4 << 20] {
        let script = Script::always(Answer::reset()).on_reading(Reading::Bytes(body_length / 2));
        let server = ScriptedServer::start(script).await.unwrap();
        let mut request = request_to(&server.url("/"));
        request.body = vec![b'x'; body_length].into();
        let report = attempt_by(&recipient(), request, PLENTY).await;
        assert_eq!(
            report.outcome,
            retryable(FailureClass::ConnectionLost, Applied::Unknown),
            "{body_length}"
        );
        assert!(!server.requests()[0].complete);
    }
}

#[tokio::test]
async fn an_orderly_end_without_an_answer_leaves_a_doubt_too() {
    for answer in [Answer::close(), Answer::raw("HTTP/1.1 20").then_close()] {
        let report = answered(answer, PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::ConnectionLost, Applied::Unknown));
    }
}

#[tokio::test]
async fn a_recipient_that_takes_in_nothing_runs_out_of_time() {
    let script =
        Script::always(Answer::silence().then_wait(Duration::from_secs(600))).on_reading(Reading::Nothing);
    let server = ScriptedServer::start(script).await.unwrap();
    let mut request = request_to(&server.url("/"));
    request.body = vec![b'x'; 16 << 20].into();
    let report = attempt_by(&recipient(), request, SHORT).await;
    assert_eq!(report.outcome, retryable(FailureClass::Timeout, Applied::Unknown));
}

#[tokio::test]
async fn c61_no_connection_is_used_twice() {
    for end in [Answer::status(200), Answer::status(200).then_close(), Answer::status(200).then_reset()] {
        let server = ScriptedServer::start(Script::always(end)).await.unwrap();
        let recipient = recipient();
        for _ in 0..20 {
            let report = attempt_by(&recipient, request_to(&server.url("/")), PLENTY).await;
            assert_eq!(report.outcome, Outcome::Delivered);
        }
        assert_eq!((server.connections(), server.requests().len()), (20, 20));
        assert!(server.requests().iter().all(|request| request.header("connection") == Some("close")));
    }
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_cannot_be_connected_to() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    // Nobody listens on ::1, or there is no IPv6 at all.
    let resolver = TestResolver::always(vec![IpAddr::V6(Ipv6Addr::LOCALHOST), here, here]);
    let url = format!("http://hook.example.test:{}/", server.address().port());
    let recipient = recipient().with_resolver(resolver);
    assert_eq!(attempt_by(&recipient, request_to(&url), PLENTY).await.outcome, Outcome::Delivered);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_address_that_swallows_everything_leaves_time_for_the_next() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let port = server.address().port();
    let deaf = deaf_at(&format!("127.0.0.2:{port}")).await;
    let resolver = TestResolver::always(vec![deaf.address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    let recipient = recipient().with_resolver(resolver);
    let request = request_to(&format!("http://hook.example.test:{port}/"));
    let timeout = waybill_domain::time::DurationMs::from_secs(2);
    assert_eq!(attempt_by(&recipient, request, timeout).await.outcome, Outcome::Delivered);
}
