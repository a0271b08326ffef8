//! No recipient has more requests at once than its budget allows, and no worker keeps a slot that it
//! has done with.

use waybill_domain::delivery::Record;
use waybill_domain::identity::DestinationName;

use crate::scripted::Received;

use super::{Auditor, Broken};

impl Auditor {
    /// Counted at the recipient, in truth, whatever anybody's clock says.
    pub(super) fn check_in_flight(&self, record: &Record, request: &Received) -> Result<(), Broken> {
        let destination = &record.delivery.destination;
        let Some(&(_, most)) = self.most_slots.get(destination) else { return Ok(()) };
        let is_of_it = |open: &&super::OpenRequest| {
            open.over_at > request.at
                && self.world.ledger.inspect(&open.key, |record| record.delivery.destination == *destination)
                    == Some(true)
        };
        let others = self.open_requests.iter().filter(is_of_it).count();
        if others >= most as usize {
            return Err(format!("sent while {others} wait for {destination}, whose budget is {most}"));
        }
        Ok(())
    }

    /// The most slots that each destination ever had: whoever read a configuration goes by it for a while.
    pub(super) fn note_budgets(&mut self) {
        let writes = self.world.office.writes();
        if self.most_slots.values().any(|(at, _)| *at == writes) {
            return;
        }
        for (name, destination) in &self.world.config().destinations {
            if let Some(budget) = destination.budget {
                let (at, most) = self.most_slots.entry(name.clone()).or_default();
                (*at, *most) = (writes, budget.concurrency.max(*most));
            }
        }
    }

    /// A worker that nothing kept from it has given back every slot.
    pub fn check_slots(&self, worker: &str) -> Result<(), Broken> {
        let config = self.world.config();
        let kept = |name: &DestinationName| {
            let usage = serde_json::to_value(self.world.ledger.peek_usage(name).usage).unwrap_or_default();
            // The failures in a row are told of, and nobody's.
            let parts = [usage.get("slots"), usage.pointer("/health/suspension/probe")];
            let own = format!("\"{worker}-");
            parts.into_iter().flatten().any(|part| part.to_string().contains(&own))
        };
        match config.destinations.keys().find(|name| kept(name)) {
            Some(name) => Err(format!("{worker} is done, and keeps a slot of {name}")),
            None => Ok(()),
        }
    }
}
