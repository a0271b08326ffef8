//! The queue: wake-ups with a delay, and the way into the dead-letter queue.
//!
//! Delays are whole seconds, rounded up; what is over the queue's window is refused here, whatever
//! the service would make of it. A message's group is a short hash of tenant and destination, so
//! that fair queues keep a noisy one from delaying the rest.

use std::error::Error as StdError;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::MessageAttributeValue;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use sha2::{Digest, Sha256};
use waybill_domain::envelope::{Decoded, Facts, decode};
use waybill_domain::identity::MessageId;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Burial, Outgoing, PortError, PortResult, Queue, Receipt, Received};
use waybill_service::sweep::DeadLetterBox;

use crate::batch;
use crate::fault::{Fault, QUEUE, of_sdk};

/// The longest delay of a message.
pub const WINDOW: DurationMs = DurationMs::from_secs(900);

/// A queue and its dead-letter queue.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    pub(crate) client: Client,
    pub(crate) url: String,
    pub(crate) dlq_url: String,
}

impl SqsQueue {
    /// The queues under these addresses.
    pub fn new(client: Client, url: impl Into<String>, dlq_url: impl Into<String>) -> Self {
        Self { client, url: url.into(), dlq_url: dlq_url.into() }
    }
}

impl Queue for SqsQueue {
    fn window(&self) -> DurationMs {
        WINDOW
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        let delay_s = delay_s(&message)?;
        let sending = self
            .client
            .send_message()
            .queue_url(&self.url)
            .delay_seconds(delay_s)
            .set_message_group_id(group(&message.body))
            .message_body(message.body);
        let sent = sending.send().await.map_err(|error| of_sdk(QUEUE, error))?;
        message_id(sent.message_id)
    }

    async fn send_all(&self, messages: Vec<Outgoing>) -> Vec<PortResult<MessageId>> {
        batch::send_all(self, messages).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        let mut burying = self
            .client
            .send_message()
            .queue_url(&self.dlq_url)
            .set_message_group_id(group(&burial.body))
            .message_body(burial.body);
        for (name, value) in burial.attributes.into_iter().filter(|(_, value)| !value.is_empty()) {
            burying = burying.message_attributes(name, attribute(value)?);
        }
        let buried = burying.send().await.map_err(|error| of_sdk(QUEUE, error))?;
        message_id(buried.message_id)
    }
}

impl DeadLetterBox for SqsQueue {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let seconds = |span: u64| i32::try_from(span).unwrap_or(i32::MAX);
        let receiving = self
            .client
            .receive_message()
            .queue_url(&self.dlq_url)
            .max_number_of_messages(i32::try_from(most.clamp(1, 10)).unwrap_or(10))
            .visibility_timeout(seconds(visibility.whole_secs_up()))
            // Without waiting SQS asks only some of its servers, and finds nothing where there is something.
            .wait_time_seconds(1);
        let received = receiving.send().await.map_err(|error| of_sdk(QUEUE, error))?;
        let messages = received.messages.unwrap_or_default().into_iter();
        let read = messages.map(|message| {
            Ok(Received {
                message_id: message_id(message.message_id)?,
                receipt: Receipt(message.receipt_handle.unwrap_or_default()),
                body: message.body.unwrap_or_default(),
                receive_count: 1,
            })
        });
        read.collect()
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        let removing = self.client.delete_message().queue_url(&self.dlq_url).receipt_handle(&receipt.0);
        unless_stale(removing.send().await.map(|_| ()))
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        let showing = self.client.change_message_visibility().queue_url(&self.dlq_url);
        let showing = showing.receipt_handle(&receipt.0).visibility_timeout(0);
        unless_stale(showing.send().await.map(|_| ()))
    }
}

/// A receipt that is stale is no error: whoever received the message since has the say about it.
fn unless_stale<E>(done: Result<(), SdkError<E, HttpResponse>>) -> PortResult<()>
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    let is_stale =
        |code: &str| code.contains("ReceiptHandleIsInvalid") || code.contains("MessageNotInflight");
    match done {
        Err(error) if error.code().is_some_and(is_stale) => Ok(()),
        done => done.map_err(|error| of_sdk(QUEUE, error)),
    }
}

/// A message's delay as SQS takes it: whole seconds, rounded up, within the window.
pub(crate) fn delay_s(message: &Outgoing) -> PortResult<i32> {
    let delay = DurationMs::from_secs(message.delay.whole_secs_up());
    i32::try_from(delay.whole_secs_up()).ok().filter(|_| delay <= WINDOW).ok_or_else(|| {
        let fault = format!("a message cannot be delayed by {}: at most {WINDOW}", message.delay);
        Fault::Refused(fault).at(QUEUE)
    })
}

/// The group of a message: 16 hexadecimal digits, where the body says whose it is.
pub(crate) fn group(body: &str) -> Option<String> {
    let facts = match decode(body) {
        Decoded::WakeUp(wakeup) => wakeup.facts,
        Decoded::DeadLetter(letter) => letter.facts,
        Decoded::Newer(_) | Decoded::Undecodable(_) => return None,
    };
    let Facts { tenant, destination, .. } = facts;
    let digest = Sha256::digest(format!("{tenant}#{destination}"));
    Some(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

fn attribute(value: String) -> PortResult<MessageAttributeValue> {
    MessageAttributeValue::builder()
        .data_type("String")
        .string_value(value)
        .build()
        .map_err(|error| PortError::NeedsPerson { port: QUEUE, cause: Box::new(error) })
}

pub(crate) fn message_id(told: Option<String>) -> PortResult<MessageId> {
    // The message is stored; without its name nobody could tell, so it may be sent once more.
    let told = told.ok_or_else(|| Fault::Passing("SQS named no message".to_owned()).at(QUEUE))?;
    MessageId::parse(told).map_err(|fault| Fault::Refused(format!("SQS named a message: {fault}")).at(QUEUE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_says_nothing_of_its_delivery_has_no_group() {
        for body in ["", "not json", "{}", r#"{"waybill":2}"#] {
            assert_eq!(group(body), None, "{body:?}");
        }
    }
}
