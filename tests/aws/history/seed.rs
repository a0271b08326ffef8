//! A table with much history: the items of two deliveries, cloned.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use futures::stream::{self, StreamExt as _};
use waybill_aws::{Clients, DynamoLedger, S3Payloads};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::memory::{MemoryQueue, QueueRules};
use waybill_testkit::originals::{self, DONE, DUE, LOST, Named};

/// What DynamoDB takes in one request.
const TOGETHER: usize = 25;
/// Requests under way at a time.
const AT_ONCE: usize = 4;

type Item = HashMap<String, AttributeValue>;

/// The items of a delivery to clone.
struct Template {
    named: Named,
    items: Vec<Item>,
}

/// Makes `finished` deliveries that succeeded, and [`DUE`] that are due, evenly among them.
pub(crate) async fn seed(clients: &Clients, table: &str, clock: &VirtualClock, finished: usize) {
    let payloads = S3Payloads::new(clients.s3.clone(), "unused");
    let ledger = DynamoLedger::new(clients.dynamo.clone(), table, payloads);
    originals::make(ledger, MemoryQueue::new(clock, QueueRules::default()), clock).await;
    let done = Template::of(clients, table, DONE).await;
    let lost = Template::of(clients, table, LOST).await;
    let every = finished / DUE;
    // The templates count: the first of each kind stands already.
    let items = (1..finished).flat_map(|n| {
        let due = n.is_multiple_of(every).then(|| lost.clone_as(&format!("lost-{n}")));
        done.clone_as(&format!("done-{n}")).into_iter().chain(due.into_iter().flatten())
    });
    let batches = stream::iter(items).chunks(TOGETHER).map(|batch| put(clients, table, batch));
    batches.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
}

impl Template {
    async fn of(clients: &Clients, table: &str, event_id: &str) -> Self {
        let named = Named::by(event_id);
        let partition = AttributeValue::S(format!("T#acme#D#{}", named.delivery_id()));
        let asking = clients.dynamo.query().table_name(table).key_condition_expression("pk = :pk");
        let found = asking.expression_attribute_values(":pk", partition).send().await.unwrap();
        let items = found.items.unwrap();
        assert_eq!(items.len(), 2, "a record and a payload");
        Self { named, items }
    }

    fn clone_as(&self, event_id: &str) -> Vec<Item> {
        let clone = Named::by(event_id);
        let said = |value: &AttributeValue| match value {
            AttributeValue::S(text) => AttributeValue::S(self.named.renamed(text, &clone)),
            other => other.clone(),
        };
        let cloned = |item: &Item| {
            let mut cloned: Item = item.iter().map(|(name, value)| (name.clone(), said(value))).collect();
            // A delivery's shard follows from its ID.
            if let Some(shard) = cloned.get_mut("open_shard") {
                let sum: u32 = clone.delivery_id().bytes().map(u32::from).sum();
                *shard = AttributeValue::S(format!("O#{}", sum % waybill_aws::table::OPEN_SHARDS));
            }
            cloned
        };
        self.items.iter().map(cloned).collect()
    }
}

async fn put(clients: &Clients, table: &str, batch: Vec<Item>) {
    let request = |item| {
        WriteRequest::builder()
            .put_request(PutRequest::builder().set_item(Some(item)).build().unwrap())
            .build()
    };
    let mut left: Vec<WriteRequest> = batch.into_iter().map(request).collect();
    while !left.is_empty() {
        let writing = clients.dynamo.batch_write_item().request_items(table, left);
        let answer = writing.send().await.unwrap();
        left = answer.unprocessed_items.unwrap_or_default().remove(table).unwrap_or_default();
    }
}
