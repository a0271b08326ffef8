//! The consumer function. This file wires; the event is translated in [`handler`].

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use waybill_aws::clients::{Clients, Limits};
use waybill_aws::{AwsSecrets, Place};
use waybill_consumer::handler;
use waybill_http::HttpRecipient;
use waybill_service::desk::Desk;
use waybill_service::ports::Ports;
use waybill_system::{SystemClock, SystemDice, emf, log};

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
        queue: place.queue(&clients),
        recipient: HttpRecipient::new(SystemClock, place.locality()).with_secrets(secrets),
        clock: SystemClock,
        dice: SystemDice,
        desk: Desk::default(),
    };
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Box<RawValue>>| -> Result<_, Error> {
        let config = configuration.current().await?;
        let ends_at = waybill_aws::ends_at(event.context.deadline);
        let answer = handler::handle(ports, &config, &event.payload, ends_at, room).await;
        metrics.flush();
        Ok(answer?)
    }))
    .await
}
