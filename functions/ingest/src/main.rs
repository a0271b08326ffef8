//! The ingest function. This file wires; requests and answers are translated in [`handler`].

mod handler;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use waybill_aws::clients::{Clients, Limits};
use waybill_aws::{AwsSecrets, Place};
use waybill_service::publish::Publisher;
use waybill_system::{SystemClock, log};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log::start();
    let place = Place::from_environment()?;
    let clients = Clients::load(Limits::default()).await;
    let configuration = &place.configuration(&clients, SystemClock);
    let secrets = &AwsSecrets::new(clients.clone(), SystemClock);
    let (ledger, queue) = (place.ledger(&clients), place.queue(&clients));
    let publisher = &Publisher { ledger: &ledger, queue: &queue, clock: &SystemClock };
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Box<RawValue>>| -> Result<_, Error> {
        let config = configuration.current().await;
        Ok(handler::handle(publisher, config, secrets, &event.payload).await?)
    }))
    .await
}
