//! The consumer of the next version, for the rehearsal of a rollback: this one, behind the translator of
//! `waybill_testkit::next_version`. It reads envelopes of both versions, and writes the next one's.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use waybill_aws::clients::{Clients, Limits};
use waybill_aws::{AwsSecrets, Place};
use waybill_consumer::handler;
use waybill_http::HttpRecipient;
use waybill_service::desk::Desk;
use waybill_service::ports::Ports;
use waybill_system::{SystemClock, SystemDice, emf, log};
use waybill_testkit::next_version::{Versioned, read};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log::start();
    let metrics = emf::start()?;
    let place = Place::from_environment()?;
    let clients = Clients::load(Limits::default()).await;
    let room = waybill_aws::batch_size();
    let configuration = &place.configuration(&clients, SystemClock);
    let secrets = AwsSecrets::new(clients.clone(), SystemClock);
    let ports = &Ports {
        ledger: place.ledger(&clients).reading_ahead(),
        queue: Versioned::new(place.queue(&clients), true),
        recipient: HttpRecipient::new(SystemClock, place.locality()).with_secrets(secrets),
        clock: SystemClock,
        dice: SystemDice,
        desk: Desk::default(),
    };
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| -> Result<_, Error> {
        let config = configuration.current().await?;
        let ends_at = waybill_aws::ends_at(event.context.deadline);
        let batch = translated(event.payload)?;
        let answer = handler::handle(ports, &config, &batch, ends_at, room).await;
        metrics.flush();
        Ok(answer?)
    }))
    .await
}

/// The batch with every body as this version would have written it.
fn translated(mut event: Value) -> Result<Box<RawValue>, serde_json::Error> {
    for record in event.get_mut("Records").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(body)) = record.get_mut("body") {
            *body = read(body);
        }
    }
    to_raw_value(&event)
}
