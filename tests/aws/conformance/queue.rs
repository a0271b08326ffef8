//! The SQS queue sits the exam, but for what SQS does not do: messages keep no order, and nobody is
//! told when the next one becomes visible.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{MessageSystemAttributeName, QueueAttributeName};
use waybill_aws::{Clients, SqsQueue};
use waybill_domain::identity::MessageId;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::{Burial, Inbox, Outgoing, PortError, PortResult, Queue, Receipt, Received};
use waybill_service::sweep::DeadLetterBox;
use waybill_testkit::conformance::{Buried, QueueCandidate};
use waybill_testkit::{dead_letter_box_exam, message_exam};

use waybill_tests_aws::place::{clients, name};

message_exam!(crate::queue::queue);
dead_letter_box_exam!(crate::queue::dead_letter_box);

const MAX_RECEIVES: u32 = 3;

/// What a call to the emulator may take while everything else runs beside it.
const GRAIN: DurationMs = DurationMs::from_ms(600);

/// A look waits for a moment for what may come, and two of them do between one look and the next.
const LOOK_GRAIN: DurationMs = DurationMs::from_ms(4_000);

async fn dead_letter_box() -> Sqs {
    Sqs { grain: LOOK_GRAIN, ..queue().await }
}

async fn queue() -> Sqs {
    let clients = clients().await;
    let dlq = make(&clients, "dead", None).await;
    let arn = clients
        .sqs
        .get_queue_attributes()
        .queue_url(&dlq)
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .unwrap();
    let arn = arn.attributes.unwrap().remove(&QueueAttributeName::QueueArn).unwrap();
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"{MAX_RECEIVES}"}}"#);
    let url = make(&clients, "work", Some(policy)).await;
    let queue = SqsQueue::new(clients.sqs.clone(), &url, &dlq);
    Sqs { polled: Polled { queue, clients, url }, dlq, grain: GRAIN }
}

async fn make(clients: &Clients, of: &str, redrive_policy: Option<String>) -> String {
    let mut making = clients.sqs.create_queue().queue_name(name(of));
    if let Some(policy) = redrive_policy {
        making = making.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    making.send().await.unwrap().queue_url.unwrap()
}

struct Sqs {
    polled: Polled,
    dlq: String,
    grain: DurationMs,
}

/// The queue, polled by the test: in production the event source mapping receives and deletes.
struct Polled {
    queue: SqsQueue,
    clients: Clients,
    url: String,
}

impl QueueCandidate for Sqs {
    type Queue = Polled;

    fn queue(&self) -> &Polled {
        &self.polled
    }

    async fn browse_dlq(&self) -> Vec<Buried> {
        let receiving = self.polled.clients.sqs.receive_message().queue_url(&self.dlq);
        let receiving =
            receiving.max_number_of_messages(10).visibility_timeout(0).message_attribute_names("All");
        let found = receiving.send().await.unwrap().messages.unwrap_or_default();
        let buried = found.into_iter().map(|message| Buried {
            body: message.body.unwrap(),
            attributes: message
                .message_attributes
                .unwrap_or_default()
                .into_iter()
                .map(|(name, value)| (name, value.string_value.unwrap()))
                .collect::<BTreeMap<_, _>>(),
        });
        buried.collect()
    }

    fn max_receives(&self) -> u32 {
        MAX_RECEIVES
    }

    fn now(&self) -> TimeMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        TimeMs::from_unix_ms(since.as_millis().try_into().unwrap())
    }

    async fn pass(&self, span: DurationMs) {
        tokio::time::sleep(Duration::from_millis(span.as_ms())).await;
    }

    fn grain(&self) -> DurationMs {
        self.grain
    }
}

impl Queue for Polled {
    fn window(&self) -> DurationMs {
        self.queue.window()
    }

    async fn send(&self, message: Outgoing) -> PortResult<MessageId> {
        self.queue.send(message).await
    }

    async fn send_all(&self, messages: Vec<Outgoing>) -> Vec<PortResult<MessageId>> {
        self.queue.send_all(messages).await
    }

    async fn bury(&self, burial: Burial) -> PortResult<MessageId> {
        self.queue.bury(burial).await
    }
}

impl Inbox for Polled {
    async fn receive(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        let mut received = Vec::new();
        while received.len() < most {
            let wanted = (most - received.len()).min(10);
            let receiving = self.clients.sqs.receive_message().queue_url(&self.url);
            let receiving = receiving
                .max_number_of_messages(wanted as i32)
                .visibility_timeout(visibility.whole_secs_up() as i32)
                .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
            let messages = receiving.send().await.unwrap().messages.unwrap_or_default();
            if messages.is_empty() {
                break;
            }
            for message in messages {
                let attributes = message.attributes.unwrap();
                let count = &attributes[&MessageSystemAttributeName::ApproximateReceiveCount];
                received.push(Received {
                    message_id: MessageId::parse(message.message_id.unwrap()).unwrap(),
                    receipt: Receipt(message.receipt_handle.unwrap()),
                    body: message.body.unwrap(),
                    receive_count: count.parse().unwrap(),
                });
            }
        }
        Ok(received)
    }

    async fn acknowledge(&self, receipt: &Receipt) -> PortResult<()> {
        let deleting = self.clients.sqs.delete_message().queue_url(&self.url).receipt_handle(&receipt.0);
        stale_is_no_error(deleting.send().await.map(drop).map_err(|error| error.code().map(str::to_owned)))
    }

    async fn hide_until(&self, receipt: &Receipt, until: TimeMs) -> PortResult<()> {
        let now = TimeMs::from_unix_ms(
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap(),
        );
        let hiding = self.clients.sqs.change_message_visibility().queue_url(&self.url);
        let hiding =
            hiding.receipt_handle(&receipt.0).visibility_timeout(until.since(now).whole_secs_up() as i32);
        stale_is_no_error(hiding.send().await.map(drop).map_err(|error| error.code().map(str::to_owned)))
    }

    async fn next_visible_at(&self) -> PortResult<Option<TimeMs>> {
        Err(PortError::NeedsPerson { port: "queue", cause: "SQS tells nobody".into() })
    }
}

impl DeadLetterBox for Polled {
    async fn take(&self, most: usize, visibility: DurationMs) -> PortResult<Vec<Received>> {
        self.queue.take(most, visibility).await
    }

    async fn remove(&self, receipt: &Receipt) -> PortResult<()> {
        self.queue.remove(receipt).await
    }

    async fn show(&self, receipt: &Receipt) -> PortResult<()> {
        self.queue.show(receipt).await
    }
}

/// A stale receipt is an error of SQS's at times, and never one of ours.
fn stale_is_no_error(done: Result<(), Option<String>>) -> PortResult<()> {
    match done {
        Ok(()) => Ok(()),
        Err(Some(code))
            if code.contains("ReceiptHandle") || code.contains("InFlight") || code.contains("Inflight") =>
        {
            Ok(())
        }
        Err(code) => panic!("SQS answered {code:?}"),
    }
}
