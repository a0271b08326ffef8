//! The reconciler function. This file wires; the time is translated in [`handler`].

mod handler;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::value::RawValue;
use waybill_aws::Place;
use waybill_aws::clients::{Clients, Limits};
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_system::{SystemClock, SystemDice, emf, log};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    log::start();
    let metrics = emf::start()?;
    let place = Place::from_environment()?;
    let clients = Clients::load(Limits::default()).await;
    let configuration = &place.configuration(&clients, SystemClock);
    let (ledger, queue, office) = (place.ledger(&clients), place.queue(&clients), place.office(&clients));
    let (clock, dice) = (&SystemClock, &SystemDice);
    let round = &Round { ledger: &ledger, queue: &queue, office: &office, clock, dice };
    let learned = &Learned::default();
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Box<RawValue>>| -> Result<_, Error> {
        let config = configuration.current().await?;
        let ends_at = waybill_aws::ends_at(event.context.deadline);
        let done = handler::handle(round, &config, learned, ends_at).await;
        metrics.flush();
        Ok(done?)
    }))
    .await
}
