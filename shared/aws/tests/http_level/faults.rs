//! Faults are named by what the caller does next.

use std::time::{Duration, Instant};

use waybill_aws::clients::Limits;
use waybill_aws::{DynamoLedger, S3Payloads, SqsQueue};
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Ledger as _, Outgoing, PortError, Queue as _};
use waybill_testkit::conformance::fixture::pending_event;

use crate::stub::{Reply, Stub, refusal};

/// Short enough for a test that waits for it.
const LIMITS: Limits = Limits {
    connect: Duration::from_millis(500),
    attempt: Duration::from_millis(300),
    total: Duration::from_millis(3000),
    attempts: 2,
};

async fn loading(reply: impl FnMut() -> Reply + Send + 'static) -> (Stub, PortError) {
    let mut reply = reply;
    let stub = Stub::start(move |_| reply()).await;
    let clients = stub.clients(LIMITS).await;
    let ledger = DynamoLedger::new(clients.dynamo, "ledger", S3Payloads::new(clients.s3, "bucket"));
    let error = ledger.load(&pending_event("evt").delivery.key()).await.unwrap_err();
    (stub, error)
}

#[tokio::test]
async fn what_passes_by_itself_is_asked_again_later() {
    for (status, code) in [
        (400, "ProvisionedThroughputExceededException"),
        (400, "ThrottlingException"),
        (400, "RequestLimitExceeded"),
        (400, "ExpiredTokenException"),
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
    ] {
        let (_, error) = loading(move || refusal(status, code)).await;
        assert!(matches!(error, PortError::AskLater { port: "ledger", .. }), "{code}: {}", error.in_full());
    }
}

#[tokio::test]
async fn a_throttled_call_is_tried_as_often_as_the_limits_say() {
    let (stub, _) = loading(|| refusal(400, "ProvisionedThroughputExceededException")).await;
    assert_eq!(stub.count("GetItem"), 2);
}

#[tokio::test]
async fn what_a_person_must_mend_is_told_at_once_and_with_its_reason() {
    for (code, said) in [
        ("AccessDeniedException", "AWS does not allow it"),
        ("ValidationException", "ValidationException"),
        ("ResourceNotFoundException", "ResourceNotFoundException"),
    ] {
        let (stub, error) = loading(move || refusal(400, code)).await;
        assert!(matches!(error, PortError::NeedsPerson { port: "ledger", .. }), "{code}");
        assert!(error.in_full().contains(said), "{}", error.in_full());
        assert_eq!(stub.count("GetItem"), 1, "{code}");
    }
}

#[tokio::test]
async fn silence_and_cut_connections_end_within_the_limits_and_are_asked_again_later() {
    for (name, reply) in [("silence", (|| Reply::Silence) as fn() -> Reply), ("cut", || Reply::Cut)] {
        let began = Instant::now();
        let (stub, error) = loading(reply).await;
        assert!(matches!(error, PortError::AskLater { .. }), "{name}: {}", error.in_full());
        assert!(began.elapsed() < LIMITS.total + Duration::from_millis(500), "{name}: {:?}", began.elapsed());
        assert!(stub.count("GetItem") >= 2, "{name}");
    }
}

#[tokio::test]
async fn what_is_stored_and_cannot_be_read_is_for_a_person() {
    let item = serde_json::json!({"Item": {
        "pk": {"S": "T#acme#D#whd_00000000000000000000000000"}, "sk": {"S": "RECORD"},
        "record": {"S": "{}"}, "state": {"S": "pending"}, "revision": {"N": "0"},
    }});
    let (_, error) = loading(move || Reply::Answer(200, item.clone())).await;
    assert!(matches!(error, PortError::NeedsPerson { .. }));
    assert!(error.in_full().contains("T#acme#D#whd_00000000000000000000000000"), "{}", error.in_full());
}

#[tokio::test]
async fn a_queue_that_refuses_is_named() {
    for (status, code, passes) in
        [(400, "RequestThrottled", true), (403, "OverLimit", true), (403, "AccessDenied", false)]
    {
        let stub = Stub::start(move |_| refusal(status, code)).await;
        let queue = SqsQueue::new(stub.clients(LIMITS).await.sqs, "http://q/work", "http://q/dead");
        let outgoing = Outgoing { body: "{}".to_owned(), delay: DurationMs::ZERO };
        let error = queue.send(outgoing).await.unwrap_err();
        assert_eq!(matches!(error, PortError::AskLater { port: "queue", .. }), passes, "{code}");
    }
}
