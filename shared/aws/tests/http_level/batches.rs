//! Several wake-ups in one request: each is answered for itself, whatever SQS makes of the others.

use serde_json::{Value, json};
use waybill_aws::SqsQueue;
use waybill_aws::clients::Limits;
use waybill_domain::envelope::WakeUp;
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Outgoing, PortError, PortResult, Queue as _};
use waybill_testkit::conformance::fixture::{delivery, pending};

use crate::stub::{Asked, Reply, Stub, refusal};

async fn queue(reply: impl FnMut(&Asked) -> Reply + Send + 'static) -> (Stub, SqsQueue) {
    let stub = Stub::start(reply).await;
    let limits = Limits { attempts: 1, ..Limits::default() };
    let queue = SqsQueue::new(stub.clients(limits).await.sqs, "http://q/work", "http://q/dead");
    (stub, queue)
}

fn outgoing(body: impl Into<String>) -> Outgoing {
    Outgoing { body: body.into(), delay: DurationMs::ZERO }
}

fn wakeup(event_id: &str) -> Outgoing {
    outgoing(WakeUp::for_next_attempt(&pending(delivery("acme", event_id, "books"))).encode())
}

fn entries(asked: &Asked) -> Vec<Value> {
    assert_eq!(asked.operation, "SendMessageBatch");
    asked.body["Entries"].as_array().unwrap().clone()
}

/// SQS, which names a message after its body, and fails those that `fails` says.
fn answer(asked: &Asked, fails: impl Fn(&str) -> Option<(&'static str, bool)>) -> Reply {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in entries(asked) {
        let (id, body) = (&entry["Id"], entry["MessageBody"].as_str().unwrap());
        match fails(body) {
            None => successful.push(json!({
                "Id": id, "MessageId": format!("m-of-{}", body.len()), "MD5OfMessageBody": "unread",
            })),
            Some((code, sender_fault)) => failed.push(json!({
                "Id": id, "Code": code, "Message": "so it is", "SenderFault": sender_fault,
            })),
        }
    }
    // In another order than they were sent in.
    successful.reverse();
    Reply::Answer(200, json!({ "Successful": successful, "Failed": failed }))
}

/// What SQS takes: <https://www.w3.org/TR/REC-xml/#charsets>.
fn has_only_what_sqs_takes(body: &str) -> bool {
    body.chars().all(|c| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
    })
}

fn named(answer: &PortResult<MessageId>) -> Option<&str> {
    answer.as_ref().ok().map(MessageId::as_str)
}

fn is_ask_later(answer: &PortResult<MessageId>) -> bool {
    matches!(answer, Err(PortError::AskLater { .. }))
}

fn needs_person(answer: &PortResult<MessageId>) -> bool {
    matches!(answer, Err(PortError::NeedsPerson { .. }))
}

#[tokio::test]
async fn c23_ten_wakeups_of_odd_events_go_in_one_request_and_all_land() {
    let refuses = |body: &str| (!has_only_what_sqs_takes(body)).then_some(("InvalidMessageContents", true));
    let (stub, queue) = queue(move |asked| answer(asked, refuses)).await;
    let mut events: Vec<String> = (0..9).map(|n| format!("e{n}")).collect();
    events.insert(4, "e\u{ffff}\u{fffe}🎉".to_owned());
    let answers = queue.send_all(events.iter().map(|id| wakeup(id)).collect()).await;
    assert_eq!(stub.asked().len(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10, "{answers:?}");
}

#[tokio::test]
async fn c23_one_that_sqs_refuses_keeps_no_neighbour_back() {
    let refuses = |body: &str| (!has_only_what_sqs_takes(body)).then_some(("InvalidMessageContents", true));
    let (stub, queue) = queue(move |asked| answer(asked, refuses)).await;
    let mut messages: Vec<Outgoing> = (0..10).map(|n| outgoing("x".repeat(n + 1))).collect();
    messages[6] = outgoing("odd: \u{ffff}");
    let answers = queue.send_all(messages).await;
    assert_eq!(stub.asked().len(), 1);
    for (place, answer) in answers.iter().enumerate() {
        match place {
            6 => assert!(needs_person(answer), "asking again does not help: {answer:?}"),
            _ => assert_eq!(named(answer), Some(&*format!("m-of-{}", place + 1)), "{place}"),
        }
    }
}

#[tokio::test]
async fn two_of_ten_that_are_refused_are_told_to_their_own_callers() {
    let refuses = |body: &str| match body.len() {
        3 => Some(("InternalError", false)),
        8 => Some(("RequestThrottled", true)),
        _ => None,
    };
    let (_stub, queue) = queue(move |asked| answer(asked, refuses)).await;
    let answers = queue.send_all((1..=10).map(|n| outgoing("x".repeat(n))).collect()).await;
    for (length, answer) in (1..=10).zip(&answers) {
        match length {
            3 | 8 => assert!(is_ask_later(answer), "{length}: {answer:?}"),
            _ => assert_eq!(named(answer), Some(&*format!("m-of-{length}"))),
        }
    }
    let PortError::AskLater { cause, .. } = answers[2].as_ref().unwrap_err() else { panic!("{answers:?}") };
    assert_eq!(cause.to_string(), "SQS refused the message: InternalError: so it is");
}

#[tokio::test]
async fn what_sqs_does_not_mention_is_asked_for_again_and_what_it_invents_is_nobodys() {
    let (_stub, queue) = queue(|_| {
        let sent = |id: &str| json!({"Id": id, "MessageId": format!("m{id}"), "MD5OfMessageBody": "unread"});
        Reply::Answer(200, json!({ "Successful": [sent("1"), sent("7"), sent("x"), sent("")] }))
    })
    .await;
    let answers = queue.send_all(vec![outgoing("a"), outgoing("b"), outgoing("c")]).await;
    assert!(is_ask_later(&answers[0]) && is_ask_later(&answers[2]), "{answers:?}");
    assert_eq!(named(&answers[1]), Some("m1"));
}

#[tokio::test]
async fn requests_hold_up_to_ten_messages_and_one_mebibyte() {
    const KIB: usize = 1024;
    let rows: [(&str, Vec<usize>, &[usize]); 5] = [
        ("eleven small ones", vec![900; 11], &[10, 1]),
        ("exactly the limit", vec![256 * KIB; 4], &[4]),
        ("a byte over it", vec![256 * KIB, 256 * KIB, 256 * KIB, 256 * KIB, 1], &[4, 1]),
        ("one over the limit, alone", vec![1, 1024 * KIB + 1, 1], &[1, 1, 1]),
        ("none", vec![], &[]),
    ];
    for (name, sizes, expected) in rows {
        let (stub, queue) = queue(|asked| answer(asked, |_| None)).await;
        let answers = queue.send_all(sizes.iter().map(|size| outgoing("x".repeat(*size))).collect()).await;
        let named: Vec<_> = answers.iter().map(|answer| named(answer).unwrap().to_owned()).collect();
        assert_eq!(named, sizes.iter().map(|size| format!("m-of-{size}")).collect::<Vec<_>>(), "{name}");
        let requests: Vec<usize> = stub.asked().iter().map(|asked| entries(asked).len()).collect();
        assert_eq!(requests, expected, "{name}");
    }
}

#[tokio::test]
async fn a_request_that_fails_as_a_whole_fails_its_own_messages_and_no_others() {
    for (code, status, passes) in [("InternalError", 500, true), ("AccessDenied", 403, false)] {
        let mut requests = 0;
        let (_stub, queue) = queue(move |asked| {
            requests += 1;
            if requests == 1 { refusal(status, code) } else { answer(asked, |_| None) }
        })
        .await;
        let answers = queue.send_all((1..=12).map(|n| outgoing("x".repeat(n))).collect()).await;
        for answer in &answers[..10] {
            assert!(if passes { is_ask_later(answer) } else { needs_person(answer) }, "{code}: {answer:?}");
        }
        assert!(answers[10].is_ok() && answers[11].is_ok(), "{code}: {answers:?}");
    }
}

#[tokio::test]
async fn c19_c21_a_batch_holds_whole_seconds_within_the_window_and_groups() {
    let (stub, queue) = queue(|asked| answer(asked, |_| None)).await;
    let delayed = |delay_ms| Outgoing { delay: DurationMs::from_ms(delay_ms), ..wakeup("e") };
    let answers = queue.send_all([0, 1, 900_001, 1001, 900_000].map(delayed).into()).await;
    assert!(needs_person(&answers[2]), "what is over the window is not even asked for: {answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 4);
    let entries = entries(&stub.asked()[0]);
    let delays: Vec<u64> = entries.iter().map(|entry| entry["DelaySeconds"].as_u64().unwrap()).collect();
    assert_eq!(delays, [0, 1, 2, 900]);
    assert!(entries.iter().all(|entry| entry["MessageGroupId"].as_str().unwrap().len() == 16), "{entries:?}");
}
