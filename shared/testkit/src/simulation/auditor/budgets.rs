//! No recipient has more requests at once than its budget allows, and no worker keeps a slot that it
//! has done with.

use waybill_domain::delivery::Record;
use waybill_domain::identity::DestinationName;

use crate::scripted::Received;

use super::{Auditor, Broken};

impl Auditor {
    /// Counted at the recipient, in truth, whatever anybody's clock says: those that were sent under a limit that
    /// their senders knew of. Where two knew of different ones, the wider counts for both.
    pub(super) fn check_in_flight(&self, record: &Record, request: &Received) -> Result<(), Broken> {
        let destination = &record.delivery.destination;
        let most_of = |sender: &str| self.view_of(sender).and_then(|view| view.most_at(destination));
        let Some(own) = most_of(&request.sender) else { return Ok(()) };
        let is_of_it = |open: &&super::OpenRequest| {
            open.over_at > request.at
                && self.world.ledger.inspect(&open.key, |record| record.delivery.destination == *destination)
                    == Some(true)
        };
        let open = self.open_requests.iter().filter(is_of_it);
        let others: Vec<u32> = open.filter_map(|open| most_of(&open.sender)).collect();
        let most = others.iter().copied().fold(own, u32::max);
        if others.len() >= most as usize {
            let others = others.len();
            return Err(format!("sent while {others} wait for {destination}, whose budget is {most}"));
        }
        if self.view_of(&request.sender).is_some_and(|view| view.is_eased(destination)) {
            self.chronicle.count("eased, sent");
        }
        Ok(())
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
