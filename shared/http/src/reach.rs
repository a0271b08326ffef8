//! Whether a recipient can be reached: resolved, judged, connected to and, with TLS, greeted. Nothing is
//! sent; what a recipient does with requests is `probe`'s matter.

use waybill_domain::attempt::{Phase, SendWindow};
use waybill_domain::destination::Destination;
use waybill_domain::time::DurationMs;
use waybill_service::ports::Clock;

use crate::budget::Budget;
use crate::connect;
use crate::recipient::HttpRecipient;
use crate::report::Stop;
use crate::resolve::{self, Resolver};
use crate::wire::{SentFlag, Wire};

impl<C: Clock, R: Resolver, S> HttpRecipient<C, R, S> {
    /// How far the way to a destination leads, within its own timeout; or one sentence on where it ends.
    pub async fn reach(&self, destination: &Destination) -> Result<Phase, String> {
        let (timeout, started_at) = (destination.timeout, self.now());
        let far = started_at.plus(timeout).plus(DurationMs::from_secs(60));
        let window = SendWindow { lease_until: far, limit_at: far, timeout, started_at };
        let budget = Budget::start(timeout, &window);
        self.reached(destination, &budget).await.map_err(|stop| match stop {
            Stop::Fault(fault) => fault.into_note(),
            Stop::NotSent(why) => why.as_str().to_owned(),
        })
    }

    async fn reached(&self, destination: &Destination, budget: &Budget) -> Result<Phase, Stop> {
        let url = destination.url.as_url();
        let encrypted = self.wants_tls(url.scheme())?;
        let addresses = resolve::judged(&self.resolver, url, self.locality, budget).await?;
        let wire = Wire::new(connect::dial(&addresses, budget).await?, SentFlag::default());
        if !encrypted {
            return Ok(Phase::Connect);
        }
        self.tls.handshake(url, wire, budget).await?;
        Ok(Phase::Tls)
    }
}
