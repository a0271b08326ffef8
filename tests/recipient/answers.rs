//! Bodies and informational answers: what of an answer is waited for, kept and believed.

use std::time::Duration;

use waybill_domain::attempt::Excerpt;
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_testkit::server::{Answer, Reading, Script, ScriptedServer};

use crate::setting::*;

const A_WHILE: Duration = Duration::from_millis(50);

async fn answered(
    answer: Answer,
    timeout: waybill_domain::time::DurationMs,
) -> waybill_domain::attempt::SendReport {
    let server = ScriptedServer::start(Script::always(answer)).await.unwrap();
    let report = attempt(&server.url("/"), timeout).await;
    assert_eq!(server.requests().len(), 1, "one POST");
    report
}

#[tokio::test]
async fn c53_any_2xx_is_delivered_whatever_its_body_is() {
    for answer in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nnot json",
        "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nbroken off",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX Y: a header that is none\r\nfolded: one\r\n two\r\n\r\n",
    ] {
        let report = answered(Answer::raw(answer).then_close(), PLENTY).await;
        assert_eq!(report.outcome, Outcome::Delivered, "{answer:?}");
    }
    let report = answered(Answer::with_body(200, &[], [0xFF, 0xFE]), PLENTY).await;
    assert_eq!(report.outcome, Outcome::Delivered);
}

#[tokio::test]
async fn c53_an_answer_too_many_does_not_reach_the_next_delivery() {
    let script = Script::in_turn([
        Answer::raw("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n"),
        Answer::status(500),
    ]);
    let server = ScriptedServer::start(script).await.unwrap();
    assert_eq!(attempt(&server.url("/"), PLENTY).await.status, Some(204));
    assert_eq!(attempt(&server.url("/"), PLENTY).await.status, Some(500));
}

#[tokio::test]
async fn c55_informational_answers_are_skipped() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    for (before, after, status) in [
        (hints.to_owned(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200),
        (go_on.repeat(50), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200),
        (hints.to_owned(), "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", 500),
    ] {
        let together = Answer::raw(format!("{before}{after}"));
        let apart = Answer::raw(before).then_wait(A_WHILE).then_raw(after);
        for answer in [together, apart] {
            let report = answered(answer, PLENTY).await;
            assert_eq!(report.status, Some(status));
            assert_eq!(report.excerpt.map(|excerpt| excerpt.bytes.len()), Some(2));
        }
    }
}

#[tokio::test]
async fn c55_a_switch_of_protocols_is_a_failure() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let report = answered(Answer::raw(switch).then_hang(), PLENTY).await;
    assert_eq!(report.status, Some(101));
    assert_eq!(report.outcome, permanent(FailureClass::Protocol, Applied::Unknown));
}

#[tokio::test]
async fn c55_informational_answers_without_end_are_no_answer() {
    let flood = Answer::silence().then_repeat("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), Duration::ZERO);
    let report = answered(flood, PLENTY).await;
    assert_eq!(report.outcome, retryable(FailureClass::Protocol, Applied::Unknown));
}

#[tokio::test]
async fn c57_a_chunk_size_without_end_is_read_no_further_and_the_status_stands() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = Answer::raw(head).applied().then_repeat("0".repeat(10_000), Duration::ZERO);
    assert_eq!(answered(endless, PLENTY).await.outcome, Outcome::Delivered);
}

#[tokio::test]
async fn c57_a_body_that_drips_for_ever_neither_hangs_the_attempt_nor_undoes_the_status() {
    let drip = Script::decided_by(|request| match request.header("waybill-attempt") {
        Some("1") => Answer::endless(200, "x", A_WHILE),
        _ => Answer::status(200),
    });
    let server = ScriptedServer::start(drip).await.unwrap();
    let mut batch = tokio::task::JoinSet::new();
    for attempts_before in 0..10 {
        let mut request = request_to(&server.url("/"));
        request.attempt = waybill_domain::identity::AttemptNumber::after(attempts_before);
        let timeout = if attempts_before == 0 { SHORT } else { PLENTY };
        batch.spawn(async move { attempt_by(&recipient(), request, timeout).await });
    }
    let reports = batch.join_all().await;
    assert!(reports.iter().all(|report| report.outcome == Outcome::Delivered));
    let cut = reports.iter().filter_map(|report| report.excerpt.as_ref()).next().unwrap();
    assert!(!cut.complete && cut.bytes.starts_with(b"x"), "{cut:?}");
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn c57_a_head_that_drips_for_ever_runs_out_of_time() {
    let report = answered(Answer::status(200).dripping(1, A_WHILE), SHORT).await;
    assert_eq!(report.outcome, retryable(FailureClass::Timeout, Applied::Unknown));
}

#[tokio::test]
async fn c57_what_was_read_of_a_refusal_is_kept_where_the_rest_does_not_come() {
    let stalled = "HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\nunknown currency";
    for answer in [
        Answer::raw(stalled).then_hang(),
        Answer::raw(stalled).then_close(),
        // Not at once, or the RST might overtake what it follows.
        Answer::raw(stalled).then_wait(A_WHILE).then_reset(),
    ] {
        let report = answered(answer, SHORT).await;
        assert_eq!(report.outcome, permanent(FailureClass::PayloadRejected, Applied::No));
        let excerpt = Excerpt { bytes: b"unknown currency".to_vec(), full_length: 100, complete: false };
        assert_eq!(report.excerpt, Some(excerpt));
    }
}

#[tokio::test]
async fn of_an_answer_two_kibibytes_are_kept_and_its_length_is_told() {
    for (length, kept, complete) in [
        (0, None, true),
        (5, Some(5), true),
        (2048, Some(2048), true),
        (2049, Some(2048), true),
        (4096, Some(2048), true),
        (100_000, Some(2048), false),
    ] {
        let report = answered(Answer::with_body(400, &[], "x".repeat(length)), PLENTY).await;
        let excerpt =
            kept.map(|kept| Excerpt { bytes: vec![b'x'; kept], full_length: length as u64, complete });
        assert_eq!(report.excerpt, excerpt, "{length}");
    }
}

#[tokio::test]
async fn c59_compression_is_not_asked_for_and_not_undone() {
    // The beginning of a gzip stream, and then nothing that could be unpacked.
    let bomb = [b"\x1f\x8b\x08\x00\x00\x00\x00\x00".as_slice(), &[0xAB; 130_000]].concat();
    let script = Script::always(Answer::with_body(200, &[("content-encoding", "gzip")], &bomb));
    let server = ScriptedServer::start(script).await.unwrap();
    let report = attempt(&server.url("/"), PLENTY).await;
    assert_eq!(report.outcome, Outcome::Delivered);
    assert_eq!(report.excerpt.unwrap().bytes, bomb[..Excerpt::MOST]);
    assert_eq!(server.requests()[0].header("accept-encoding"), Some("identity"));
}

/// Resident memory of this process, in KiB. Under `cargo nextest` the test has it for itself.
pub(crate) fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn c59_heads_and_bodies_without_end_do_not_fill_the_memory() {
    let before = resident_kib();
    let long_head = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(1 << 20));
    let many_fields = "field: value\r\n".repeat(10_000);
    for (answer, outcome) in [
        (Answer::raw(&long_head), retryable(FailureClass::Protocol, Applied::Unknown)),
        (
            Answer::raw("HTTP/1.1 200 OK\r\nx: ").then_repeat("a".repeat(65_536), Duration::ZERO),
            retryable(FailureClass::Protocol, Applied::Unknown),
        ),
        (
            Answer::raw("HTTP/1.1 200 OK\r\n").then_repeat(&many_fields, Duration::ZERO),
            retryable(FailureClass::Protocol, Applied::Unknown),
        ),
        (Answer::endless(200, "b".repeat(65_536), Duration::ZERO), Outcome::Delivered),
        (
            Answer::endless(500, "b".repeat(65_536), Duration::ZERO),
            retryable(FailureClass::ServerError, Applied::Unknown),
        ),
    ] {
        let report = answered(answer, PLENTY).await;
        assert_eq!(report.outcome, outcome);
        assert!(report.excerpt.is_none_or(|excerpt| excerpt.bytes.len() <= Excerpt::MOST));
    }
    let grown = resident_kib() - before;
    assert!(grown < 32 * 1024, "grown by {grown} KiB");
}

#[tokio::test]
async fn c59_a_head_longer_than_64_kib_is_refused_and_a_shorter_one_is_read() {
    for (length, outcome) in
        [(60_000, Outcome::Delivered), (70_000, retryable(FailureClass::Protocol, Applied::Unknown))]
    {
        let long = "a".repeat(length);
        let report = answered(Answer::with_body(200, &[("x", &long)], "ok"), PLENTY).await;
        assert_eq!(report.outcome, outcome, "{length}");
    }
}

#[tokio::test]
async fn a_refusal_that_comes_before_the_whole_request_was_read_counts() {
    let refusal = Answer::with_body(413, &[("connection", "close")], "too large");
    let script = Script::always(refusal).on_reading(Reading::Head);
    let server = ScriptedServer::start(script).await.unwrap();
    let mut request = request_to(&server.url("/"));
    request.body = vec![b'x'; 4 << 20].into();
    let report = attempt_by(&recipient(), request, PLENTY).await;
    assert_eq!(report.status, Some(413));
    assert_eq!(report.excerpt.unwrap().bytes, b"too large");
}

#[tokio::test]
async fn no_answer_makes_the_adapter_panic() {
    // A small generator of its own, so that every run answers the same.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let pieces: [&[u8]; 16] = [
        b"HTTP/1.1 ",
        b"HTTP/1.0 ",
        b"200 OK",
        b"\r\n",
        b"\r\n\r\n",
        b"Content-Length: ",
        b"18446744073709551616",
        b"-1",
        b"Transfer-Encoding: chunked",
        b"ffffffffffffffff\r\n",
        b"0\r\n",
        b"Retry-After: ",
        b"1e300",
        b"\xFF\xFE\x00",
        b"103 ",
        b": ",
    ];
    let answers: Vec<Answer> = (0..300)
        .map(|_| {
            let mut answer = Vec::new();
            if next() % 2 == 0 {
                answer.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            }
            for _ in 0..next() % 12 {
                answer.extend_from_slice(pieces[(next() % 16) as usize]);
            }
            Answer::raw(answer).then_close()
        })
        .collect();
    let server = ScriptedServer::start(Script::in_turn(answers)).await.unwrap();
    for _ in 0..300 {
        let report = attempt(&server.url("/"), PLENTY).await;
        let certain = matches!(in_words(report.outcome).rsplit_once(' '), Some((_, "no")));
        assert!(report.status.is_some() || !certain, "{report:?}");
    }
    assert_eq!(server.requests().len(), 300);
}
