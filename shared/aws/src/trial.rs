//! A table and queues for a while: made for one rehearsal or one test, and taken away after it.
//!
//! What stands in an environment for good is made by the Terraform in `infra/`, never from here. A
//! trial has the keys and indexes that [`crate::table`] names, plain queues without a redrive
//! policy, and no bucket: its payloads fit into the table.

use std::time::Duration;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection,
    ProjectionType, ScalarAttributeType, TableStatus,
};
use waybill_service::ports::{PortError, PortResult};

use crate::clients::Clients;
use crate::fault::{Fault, LEDGER, QUEUE, of_sdk};
use crate::ledger::DynamoLedger;
use crate::office::AwsOffice;
use crate::payloads::S3Payloads;
use crate::queue::SqsQueue;
use crate::table::{INDEXES, Index, PK, SK};

/// Between two looks at a table that is being made.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// How many looks: a minute's worth.
const LOOKS: u32 = 120;

/// A table and two queues of one's own.
#[derive(Debug)]
pub struct Trial {
    clients: Clients,
    table: String,
    queue_url: String,
    dlq_url: String,
}

impl Trial {
    /// Makes them. `name` is part of every name: nobody else may have it.
    pub async fn make(clients: Clients, name: &str) -> PortResult<Self> {
        make_table(&clients, name).await?;
        let (work, dead) = (format!("{name}-work"), format!("{name}-dead"));
        let urls = async { Ok((make_queue(&clients, &work).await?, make_queue(&clients, &dead).await?)) };
        match urls.await {
            Ok((queue_url, dlq_url)) => Ok(Self { clients, table: name.to_owned(), queue_url, dlq_url }),
            Err(error) => {
                // The first fault is the one to be told.
                let _ = delete_table(&clients, name).await;
                Err(error)
            }
        }
    }

    /// The ledger.
    pub fn ledger(&self) -> DynamoLedger {
        let none = S3Payloads::new(self.clients.s3.clone(), format!("{}-has-no-bucket", self.table));
        DynamoLedger::new(self.clients.dynamo.clone(), &self.table, none)
    }

    /// Orders and audit. There is no bucket, so no configuration can be put in force.
    pub fn office(&self) -> AwsOffice {
        AwsOffice::new(self.clients.clone(), &self.table, format!("{}-has-no-bucket", self.table))
    }

    /// The queue and its dead-letter queue.
    pub fn queue(&self) -> SqsQueue {
        SqsQueue::new(self.clients.sqs.clone(), &self.queue_url, &self.dlq_url)
    }

    /// Takes everything away. Each is tried, whatever became of the others.
    pub async fn remove(self) -> PortResult<()> {
        let removed = [
            delete_table(&self.clients, &self.table).await,
            delete_queue(&self.clients, &self.queue_url).await,
            delete_queue(&self.clients, &self.dlq_url).await,
        ];
        removed.into_iter().collect()
    }
}

/// Makes a table with the keys and indexes of the ledger, and waits until it can be used.
pub async fn make_table(clients: &Clients, name: &str) -> PortResult<()> {
    let mut making = clients
        .dynamo
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(keys(PK, SK)?))
        .attribute_definitions(text(PK)?)
        .attribute_definitions(text(SK)?);
    for index in INDEXES {
        making = making
            .global_secondary_indexes(keys_only(&index)?)
            .attribute_definitions(text(index.partition)?)
            .attribute_definitions(text(index.sort)?);
    }
    making.send().await.map_err(|error| of_sdk(LEDGER, error))?;
    for _ in 0..LOOKS {
        let looking = clients.dynamo.describe_table().table_name(name);
        let table = looking.send().await.map_err(|error| of_sdk(LEDGER, error))?.table;
        if table.and_then(|table| table.table_status) == Some(TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Err(Fault::Passing(format!("the table {name} is still being made")).at(LEDGER))
}

fn keys(partition: &str, sort: &str) -> PortResult<Vec<KeySchemaElement>> {
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    Ok(vec![
        key(partition, KeyType::Hash).map_err(unmakeable)?,
        key(sort, KeyType::Range).map_err(unmakeable)?,
    ])
}

fn text(name: &str) -> PortResult<AttributeDefinition> {
    let definition = AttributeDefinition::builder().attribute_name(name);
    definition.attribute_type(ScalarAttributeType::S).build().map_err(unmakeable)
}

fn keys_only(index: &Index) -> PortResult<GlobalSecondaryIndex> {
    let projection = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
    let making = GlobalSecondaryIndex::builder().index_name(index.name).projection(projection);
    making.set_key_schema(Some(keys(index.partition, index.sort)?)).build().map_err(unmakeable)
}

fn unmakeable(error: aws_smithy_types::error::operation::BuildError) -> PortError {
    PortError::NeedsPerson { port: LEDGER, cause: Box::new(error) }
}

async fn make_queue(clients: &Clients, name: &str) -> PortResult<String> {
    let made = clients.sqs.create_queue().queue_name(name).send().await;
    let url = made.map_err(|error| of_sdk(QUEUE, error))?.queue_url;
    url.ok_or_else(|| Fault::Refused(format!("SQS made {name} and does not say where")).at(QUEUE))
}

async fn delete_table(clients: &Clients, name: &str) -> PortResult<()> {
    clients.dynamo.delete_table().table_name(name).send().await.map(drop).map_err(|e| of_sdk(LEDGER, e))
}

async fn delete_queue(clients: &Clients, url: &str) -> PortResult<()> {
    clients.sqs.delete_queue().queue_url(url).send().await.map(drop).map_err(|error| of_sdk(QUEUE, error))
}
