//! What `waybill doctor` looks at on AWS: table, queues, bucket, and whether this machine's clock agrees
//! with AWS'. Reads settings alone; what the caller may not ask is told as unknown, with the permission.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::types::{KeyType, TableDescription, TableStatus, TimeToLiveStatus};
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde::Deserialize;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::examination::{Found, QueueSettings, of_clock, of_queues};
use waybill_service::ports::{Clock, PortError, PortResult};

use crate::clients::Clients;
use crate::fault::{LEDGER, QUEUE, denied, of_sdk};
use crate::place::Place;
use crate::table::{EXPIRES_AT, INDEXES, PK, SK};

const TABLE: &str = "table";

/// Looks at everything that the environment names. `consumer_runs` is how long the consumer runs.
pub async fn examine(
    clients: &Clients,
    place: &Place,
    clock: &impl Clock,
    consumer_runs: DurationMs,
) -> Vec<Found> {
    let mut found = of_table(clients, place, clock).await;
    found.push(of_time_to_live(clients, place).await);
    found.extend(match queue_settings(clients, place).await {
        Ok(set) => of_queues(&set, consumer_runs),
        Err(error) => vec![not_seen("queue", "sqs:GetQueueAttributes", &error)],
    });
    let looking = clients.s3.head_bucket().bucket(place.bucket()).send().await;
    found.push(match looking {
        Ok(_) => Found::fine("bucket", "is there"),
        Err(error) => not_seen("bucket", "s3:ListBucket", &of_sdk(LEDGER, error)),
    });
    found
}

async fn of_table(clients: &Clients, place: &Place, clock: &impl Clock) -> Vec<Found> {
    let date = Date::default();
    let asking = clients.dynamo.describe_table().table_name(place.table());
    let asked_at = clock.now();
    let told = asking.customize().interceptor(date.clone()).send().await;
    let clock = date.read().map(|theirs| {
        // Whole seconds, told somewhere between question and answer.
        let ours = asked_at.plus(DurationMs::from_ms(clock.now().since(asked_at).as_ms() / 2));
        of_clock(ours, theirs, "AWS'")
    });
    let table = match told {
        Ok(told) => told.table.map_or_else(|| Found::mend(TABLE, "is not described"), |table| judged(&table)),
        Err(error)
            if error.as_service_error().is_some_and(|refusal| refusal.is_resource_not_found_exception()) =>
        {
            Found::mend(TABLE, "is not there: apply the Terraform, or correct WAYBILL_TABLE")
        }
        Err(error) => not_seen(TABLE, "dynamodb:DescribeTable", &of_sdk(LEDGER, error)),
    };
    [Some(table), clock].into_iter().flatten().collect()
}

fn judged(table: &TableDescription) -> Found {
    if table.table_status() != Some(&TableStatus::Active) {
        return Found::mend(TABLE, "is not active yet: wait, then look again");
    }
    let key = |of: &[aws_sdk_dynamodb::types::KeySchemaElement], kind: KeyType| {
        of.iter().find(|one| *one.key_type() == kind).map(|one| one.attribute_name().to_owned())
    };
    let has = |of, partition: &str, sort: &str| {
        key(of, KeyType::Hash).as_deref() == Some(partition)
            && key(of, KeyType::Range).as_deref() == Some(sort)
    };
    if !has(table.key_schema(), PK, SK) {
        return Found::mend(TABLE, format!("has other keys than {PK} and {SK}: it is not Waybill's"));
    }
    let lacks = INDEXES.iter().find(|wanted| {
        let mut there = table.global_secondary_indexes().iter();
        !there.any(|index| {
            index.index_name() == Some(wanted.name) && has(index.key_schema(), wanted.partition, wanted.sort)
        })
    });
    match lacks {
        Some(index) => {
            Found::mend(TABLE, format!("lacks the index {} as it should be: apply the Terraform", index.name))
        }
        None => Found::fine(TABLE, "is active, with every index"),
    }
}

async fn of_time_to_live(clients: &Clients, place: &Place) -> Found {
    const WHAT: &str = "time to live";
    let asked = clients.dynamo.describe_time_to_live().table_name(place.table()).send().await;
    let told = match asked {
        Ok(told) => told.time_to_live_description,
        Err(error) => return not_seen(WHAT, "dynamodb:DescribeTimeToLive", &of_sdk(LEDGER, error)),
    };
    let is_on = told.is_some_and(|told| {
        let state = told.time_to_live_status();
        let is_on = matches!(state, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
        is_on && told.attribute_name() == Some(EXPIRES_AT)
    });
    match is_on {
        true => Found::fine(WHAT, "cleans up what ended long ago"),
        false => Found::mend(
            WHAT,
            format!("is not on for {EXPIRES_AT}: what ended is kept, and paid for, for ever"),
        ),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RedrivePolicy {
    dead_letter_target_arn: String,
    /// A number, or one in quotes: SQS takes both, and gives back what it was given.
    max_receive_count: serde_json::Value,
}

async fn queue_settings(clients: &Clients, place: &Place) -> PortResult<QueueSettings> {
    let ask = async |url: &str| {
        let asking = clients.sqs.get_queue_attributes().queue_url(url).attribute_names(Attribute::All);
        asking
            .send()
            .await
            .map(|told| told.attributes.unwrap_or_default())
            .map_err(|error| of_sdk(QUEUE, error))
    };
    let (main, dead) = (ask(place.queue_url()).await?, ask(place.dlq_url()).await?);
    let seconds = |of: &std::collections::HashMap<Attribute, String>, name: Attribute| {
        DurationMs::from_secs(of.get(&name).and_then(|text| text.parse().ok()).unwrap_or_default())
    };
    let redrive = main.get(&Attribute::RedrivePolicy).and_then(|text| {
        let policy: RedrivePolicy = serde_json::from_str(text).ok()?;
        let receives = policy.max_receive_count;
        let receives = receives.as_u64().or_else(|| receives.as_str()?.parse().ok())?;
        Some((policy.dead_letter_target_arn, u32::try_from(receives).ok()?))
    });
    Ok(QueueSettings {
        visibility: seconds(&main, Attribute::VisibilityTimeout),
        kept: seconds(&main, Attribute::MessageRetentionPeriod),
        dead_kept: seconds(&dead, Attribute::MessageRetentionPeriod),
        redrive,
        dead_letters: dead.get(&Attribute::QueueArn).cloned().unwrap_or_default(),
    })
}

/// What could not be looked at: for want of a permission, or because it does not answer.
fn not_seen(what: &str, permission: &str, error: &PortError) -> Found {
    match denied(error) {
        Some(_) => Found::unknown(what, format!("cannot be looked at: these credentials lack {permission}")),
        None => Found::mend(what, format!("cannot be looked at: {}", error.in_full())),
    }
}

/// Keeps the `date` of an answer.
#[derive(Debug, Clone, Default)]
struct Date(Arc<Mutex<Option<String>>>);

impl Date {
    fn read(&self) -> Option<TimeMs> {
        let text = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let at = DateTime::from_str(&text, Format::HttpDate).ok()?;
        at.to_millis().ok().map(TimeMs::from_unix_ms)
    }
}

impl Intercept for Date {
    fn name(&self) -> &'static str {
        "Date"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date").map(str::to_owned);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date;
        Ok(())
    }
}
