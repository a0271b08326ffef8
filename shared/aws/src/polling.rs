//! A queue, polled by hand: for rehearsals and tests. In production the event source mapping
//! receives and deletes.

use aws_sdk_sqs::types::MessageSystemAttributeName;
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{PortResult, Receipt, Received};

use crate::fault::{Fault, QUEUE, of_sdk};
use crate::queue::SqsQueue;

/// The most messages that one poll answers.
const MOST: i32 = 10;
/// How long one poll waits for the first message, in seconds.
const WAIT_S: i32 = 1;

/// Which of the two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The wake-ups.
    Work,
    /// The dead letters.
    Dead,
}

impl SqsQueue {
    /// One poll: up to ten messages, each hidden for `visibility` (whole seconds, rounded up); none
    /// after a second without any. SQS may keep some back that are there: poll again.
    pub async fn poll(&self, end: End, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let receiving = self.client.receive_message().queue_url(self.url_of(end));
        let receiving = receiving
            .max_number_of_messages(MOST)
            .wait_time_seconds(WAIT_S)
            .visibility_timeout(i32::try_from(visibility.whole_secs_up()).unwrap_or(i32::MAX))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let answer = receiving.send().await.map_err(|error| of_sdk(QUEUE, error))?;
        answer.messages.unwrap_or_default().into_iter().map(received).collect()
    }

    /// Deletes a message that a poll answered.
    pub async fn delete(&self, end: End, receipt: &Receipt) -> PortResult<()> {
        let deleting = self.client.delete_message().queue_url(self.url_of(end)).receipt_handle(&receipt.0);
        deleting.send().await.map(drop).map_err(|error| of_sdk(QUEUE, error))
    }

    fn url_of(&self, end: End) -> &str {
        match end {
            End::Work => &self.url,
            End::Dead => &self.dlq_url,
        }
    }
}

fn received(message: aws_sdk_sqs::types::Message) -> PortResult<Received> {
    let odd = |what: &str| Fault::Refused(format!("SQS answered a message without {what}")).at(QUEUE);
    let count = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount));
    Ok(Received {
        message_id: message
            .message_id
            .and_then(|id| MessageId::parse(id).ok())
            .ok_or_else(|| odd("a name that can be read"))?,
        receipt: Receipt(message.receipt_handle.ok_or_else(|| odd("a receipt handle"))?),
        body: message.body.unwrap_or_default(),
        receive_count: count.and_then(|count| count.parse().ok()).unwrap_or(1),
    })
}
