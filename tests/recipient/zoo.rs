//! A zoo of recipients, each in a batch with nine deliveries to a good one: it has its exact outcome and one
//! attempt, it fills no memory, and the nine arrive.

use std::time::Duration;

use waybill_domain::address::Locality;
use waybill_domain::delivery::{Record, State};
use waybill_domain::time::DurationMs;
use waybill_http::{HttpRecipient, Tls};
use waybill_service::config_file;
use waybill_service::consume::{Consumer, Incoming, Verdict};
use waybill_service::desk::Desk;
use waybill_service::event::Event;
use waybill_service::ports::{Inbox as _, Ports};
use waybill_service::publish::Publisher;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_testkit::memory::{MemoryLedger, MemoryQueue, QueueRules};
use waybill_testkit::server::tls::{Authority, Validity};
use waybill_testkit::server::{Answer, Script, ScriptedServer, Setting};

use crate::answers::resident_kib;
use crate::setting::*;

const MINUTE: DurationMs = DurationMs::from_secs(60);

/// What an animal does to its one delivery: the state, and of a failure class and doubt.
const DELIVERED: &str = "succeeded";
const NO_ANSWER: &str = "retryable: timeout, unknown";
const NO_HTTP: &str = "retryable: protocol, unknown";
const LOST: &str = "retryable: connection_lost, unknown";
const NO_TLS: &str = "retryable: tls, no";

fn animals() -> Vec<(&'static str, Answer, &'static str)> {
    let (every, chunk) = (Duration::from_millis(20), "b".repeat(65_536));
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    let gzip = [("content-encoding", "gzip")];
    // What inflates to a gibibyte of nothing begins so, and goes on with blocks of zeros.
    let bomb = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff".as_slice(), &[0; 60_000]].concat();
    vec![
        (
            "a head that drips",
            Answer::with_body(200, &[("x", &"a".repeat(4_000))], "ok").dripping(1, every),
            NO_ANSWER,
        ),
        ("a body that drips", Answer::raw(head("content-length: 100000")).then_repeat("x", every), DELIVERED),
        ("a body without end", Answer::endless(200, &chunk, Duration::ZERO), DELIVERED),
        (
            "a body of 10 GB",
            Answer::raw(head("content-length: 10000000000")).then_repeat(&chunk, Duration::ZERO),
            DELIVERED,
        ),
        ("a gzip bomb", Answer::with_body(200, &gzip, &bomb), DELIVERED),
        ("damaged gzip", Answer::with_body(200, &gzip, b"\x1f\x8b\x08\xff and no more"), DELIVERED),
        (
            "interim answers without end",
            Answer::silence().then_repeat("HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000), Duration::ZERO),
            NO_HTTP,
        ),
        ("a 204 with a body", Answer::raw("HTTP/1.1 204 No Content\r\n\r\nand yet"), DELIVERED),
        ("a reset after the request", Answer::reset(), LOST),
        ("an end without an answer", Answer::close(), LOST),
        ("no answer", Answer::hang(), NO_ANSWER),
        ("a head of 1 MiB", Answer::raw(head(&format!("x: {}", "a".repeat(1 << 20)))), NO_HTTP),
        (
            "a head that is no UTF-8",
            Answer::raw(b"HTTP/1.1 200 OK\r\nx: \xff\xfe\r\ncontent-length: 0\r\n\r\n"),
            DELIVERED,
        ),
        ("no HTTP", Answer::raw("220 mail.example.test ESMTP\r\n"), NO_HTTP),
    ]
}

fn came_to(record: &Record) -> String {
    match (&record.last_failure, record.state) {
        (Some(failed), State::Retryable) => {
            let failure = failed.failure;
            format!("retryable: {}, {}", failure.class, failure.applied.as_str())
        }
        (_, state) => state.to_string(),
    }
}

/// A batch of ten, worked for at once: one delivery to `url`, which comes to this, and nine to a good recipient.
async fn check(name: &str, url: &str, tls: Tls, expected: &str) {
    let good = ScriptedServer::start(Script::always(Answer::with_body(200, &[], "ok"))).await.unwrap();
    let text = format!(
        "[destinations.good]\ntenants = [\"acme\"]\nurl = \"{}\"\nsecrets = [\"env:K1\"]\ntimeout = \"20s\"\n\
         [destinations.animal]\ntenants = [\"acme\"]\nurl = \"{url}\"\nsecrets = [\"env:K1\"]\ntimeout = \"3s\"\n",
        good.url("/"),
    );
    let config = config_file::parse(&text, Locality::AllowLocal).unwrap();
    let clock = VirtualClock::at(T0);
    let recipient = HttpRecipient::new(clock.clone(), Locality::AllowLocal)
        .with_resolver(TestResolver::here())
        .with_secrets(TestSecrets::of(&[("K1", K1)]))
        .with_tls(tls);
    let ports = Ports {
        ledger: MemoryLedger::default(),
        queue: MemoryQueue::new(&clock, QueueRules::default()),
        recipient,
        clock: clock.clone(),
        dice: SeededDice::new("zoo", 1),
        desk: Desk::default(),
    };
    let publisher = Publisher { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock };
    for n in 0..10 {
        // Not the first of its batch, nor the last.
        let to = if n == 4 { "animal" } else { "good" };
        let event = format!(
            r#"{{"event_id":"e{n}","tenant":"acme","type":"lease.signed","destination":"{to}","payload":{n}}}"#
        );
        publisher.publish(&config, Event::parse(event.as_bytes()).unwrap()).await.unwrap();
    }
    let batch = ports.queue.receive(10, MINUTE).await.unwrap();
    assert_eq!(batch.len(), 10, "{name}");
    let consumer = Consumer { ports: &ports };
    let working = batch.iter().map(|message| {
        let incoming = Incoming { message_id: &message.message_id, body: &message.body };
        consumer.consume(&config, incoming, MINUTE)
    });
    let verdicts = futures::future::join_all(working).await;
    assert_eq!(verdicts, [Verdict::Acknowledge; 10], "{name}");

    let (animal, others): (Vec<Record>, Vec<Record>) = ports
        .ledger
        .records()
        .into_iter()
        .partition(|record| record.delivery.destination.as_str() == "animal");
    assert_eq!((came_to(&animal[0]).as_str(), animal[0].attempts_made), (expected, 1), "{name}");
    for other in &others {
        assert_eq!((other.state, other.attempts_made), (State::Succeeded, 1), "beside {name}");
    }
    assert_eq!((others.len(), good.requests().len()), (9, 9), "beside {name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_animal_has_its_outcome_and_the_other_nine_of_its_batch_arrive() {
    let before = resident_kib();
    for (name, answer, expected) in animals() {
        let server = ScriptedServer::start(Script::always(answer)).await.unwrap();
        check(name, &server.url("/"), Tls::trusting(Authority::new().roots()), expected).await;
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "grown by {grown} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_has_each_that_fails_at_the_handshake() {
    let (trusted, unknown) = (Authority::new(), Authority::new());
    let rows = [
        ("an expired certificate", &trusted, "hook.example.test", Validity::Past, NO_TLS),
        ("a certificate for another name", &trusted, "other.example.test", Validity::Current, NO_TLS),
        ("an issuer that nobody trusts", &unknown, "hook.example.test", Validity::Current, NO_TLS),
        ("a good certificate", &trusted, "hook.example.test", Validity::Current, DELIVERED),
    ];
    let ok = || Script::always(Answer::with_body(200, &[], "ok"));
    let url = |server: &ScriptedServer| format!("https://hook.example.test:{}/", server.address().port());
    for (name, authority, of, validity, expected) in rows {
        let setting = Setting::new(ok()).with_tls(&authority.identity(of, validity));
        let server = setting.start().await.unwrap();
        check(name, &url(&server), Tls::trusting(trusted.roots()), expected).await;
    }
    let plain = ScriptedServer::start(ok()).await.unwrap();
    check("plain HTTP where TLS is expected", &url(&plain), Tls::trusting(trusted.roots()), NO_TLS).await;
}
