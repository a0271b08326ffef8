//! Several wake-ups in one request, each answered for itself.
//!
//! SQS takes at most ten messages and 1 MiB in one request, and may refuse some of them while it
//! takes the others. An entry's ID is its position, so that every answer finds its caller whatever
//! the messages are.

use std::ops::Range;

use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry};
use waybill_domain::identity::MessageId;
use waybill_service::ports::{Outgoing, PortError, PortResult, in_full};

use crate::fault::{Fault, QUEUE, is_passing, of_sdk};
use crate::queue::{SqsQueue, delay_s, group, message_id};

/// The most messages in one request.
pub const MOST_ENTRIES: usize = 10;
/// The most bytes of all messages of a request together: SQS's own limit.
pub const MOST_BYTES: usize = 1024 * 1024;

/// A message that can be sent, and where its answer belongs.
struct Entry {
    place: usize,
    delay_s: i32,
    body: String,
}

/// Sends all of them in as few requests as they fit into; one answer each, in their order.
pub(crate) async fn send_all(queue: &SqsQueue, messages: Vec<Outgoing>) -> Vec<PortResult<MessageId>> {
    let mut answers: Vec<Option<PortResult<MessageId>>> = Vec::new();
    let mut entries = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        let delay = delay_s(&message);
        answers.push(match delay {
            Ok(delay_s) => {
                entries.push(Entry { place, delay_s, body: message.body });
                None
            }
            Err(refused) => Some(Err(refused)),
        });
    }
    let sizes: Vec<usize> = entries.iter().map(|entry| entry.body.len()).collect();
    for flush in flushes(&sizes) {
        let flush = entries.drain(..flush.len());
        let (places, flush): (Vec<usize>, Vec<Entry>) = flush.map(|entry| (entry.place, entry)).unzip();
        for (place, answer) in places.into_iter().zip(send(queue, flush).await) {
            if let Some(slot) = answers.get_mut(place) {
                *slot = Some(answer);
            }
        }
    }
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(unmentioned()))).collect()
}

/// Which messages go together, in their order. One that is larger than a request may be goes alone,
/// for SQS to refuse.
fn flushes(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut flushes: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0_usize;
    for (at, size) in sizes.iter().enumerate() {
        match flushes.last_mut() {
            Some(last) if last.len() < MOST_ENTRIES && bytes.saturating_add(*size) <= MOST_BYTES => {
                last.end = at + 1;
                bytes += size;
            }
            _ => {
                flushes.push(at..at + 1);
                bytes = *size;
            }
        }
    }
    flushes
}

/// One request. An answer for each entry, whatever SQS says or leaves unsaid.
async fn send(queue: &SqsQueue, flush: Vec<Entry>) -> Vec<PortResult<MessageId>> {
    let count = flush.len();
    let entries: Result<Vec<_>, _> = flush
        .into_iter()
        .enumerate()
        .map(|(position, Entry { delay_s, body, .. })| {
            SendMessageBatchRequestEntry::builder()
                .id(position.to_string())
                .delay_seconds(delay_s)
                .set_message_group_id(group(&body))
                .message_body(body)
                .build()
        })
        .collect();
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return for_each(count, || Fault::Refused(error.to_string()).at(QUEUE)),
    };
    let sending = queue.client.send_message_batch().queue_url(&queue.url).set_entries(Some(entries));
    match sending.send().await {
        Ok(told) => read(told, count),
        Err(error) => {
            let error = of_sdk(QUEUE, error);
            for_each(count, || shared(&error))
        }
    }
}

/// What became of each of `count` entries.
fn read(told: SendMessageBatchOutput, count: usize) -> Vec<PortResult<MessageId>> {
    let mut answers: Vec<Option<PortResult<MessageId>>> = (0..count).map(|_| None).collect();
    let mut answer = |id: &str, answer| {
        if let Some(slot) = id.parse().ok().and_then(|position: usize| answers.get_mut(position)) {
            *slot = Some(answer);
        }
    };
    for sent in told.successful {
        answer(&sent.id, message_id(Some(sent.message_id)));
    }
    for failed in told.failed {
        answer(&failed.id, Err(refusal(&failed)));
    }
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(unmentioned()))).collect()
}

/// What SQS says of one message. Its own fault, or too much at once, passes; the message's does not.
fn refusal(failed: &BatchResultErrorEntry) -> PortError {
    let message = failed.message.as_deref().unwrap_or("without a word");
    let text = format!("SQS refused the message: {}: {message}", failed.code);
    match failed.sender_fault && !is_passing(&failed.code) {
        true => Fault::Refused(text).at(QUEUE),
        false => Fault::Passing(text).at(QUEUE),
    }
}

fn unmentioned() -> PortError {
    // It may be stored: sent once more, it is a duplicate that the ledger suppresses.
    Fault::Passing("SQS says nothing of the message".to_owned()).at(QUEUE)
}

fn for_each(count: usize, error: impl Fn() -> PortError) -> Vec<PortResult<MessageId>> {
    (0..count).map(|_| Err(error())).collect()
}

/// The same error for one more caller.
fn shared(error: &PortError) -> PortError {
    match error {
        PortError::AskLater { cause, .. } => Fault::Passing(in_full(cause.as_ref())).at(QUEUE),
        PortError::NeedsPerson { cause, .. } => Fault::Refused(in_full(cause.as_ref())).at(QUEUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_together_up_to_ten_and_one_mebibyte() {
        const KIB: usize = 1024;
        let rows: [(&str, Vec<usize>, &[Range<usize>]); 8] = [
            ("nothing", vec![], &[]),
            ("one", vec![500], &[0..1]),
            ("ten small ones", vec![900; 10], &[0..10]),
            ("eleven", vec![900; 11], &[0..10, 10..11]),
            ("exactly the limit", vec![256 * KIB; 4], &[0..4]),
            ("a byte over it", vec![256 * KIB, 256 * KIB, 256 * KIB, 256 * KIB + 1], &[0..3, 3..4]),
            ("one over the limit goes alone", vec![1, MOST_BYTES + 1, 1], &[0..1, 1..2, 2..3]),
            ("one of the whole limit goes alone", vec![1, MOST_BYTES, 0], &[0..1, 1..3]),
        ];
        for (name, sizes, expected) in rows {
            assert_eq!(flushes(&sizes), expected, "{name}");
        }
    }
}
