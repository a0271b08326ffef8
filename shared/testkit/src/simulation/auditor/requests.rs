//! No request without a right to it: a live claim of the sender's own, before the deadline, the
//! same bytes, every attempt number once, never two at a time.

use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::Disposition;

use crate::scripted::Received;

use super::{Auditor, Broken, OpenRequest, SKEW};

impl Auditor {
    pub(super) fn check_requests(&mut self) -> Result<(), Broken> {
        let requests = self.world.recipient.requests_after(self.seen_requests);
        self.seen_requests += requests.len();
        for request in requests {
            self.chronicle.note(|| {
                let (sender, id, attempt) = (&request.sender, &request.delivery_id, request.attempt);
                format!("  REQUEST of {sender} for {id}, attempt {attempt}")
            });
            self.check_request(&request)?;
        }
        Ok(())
    }

    fn check_request(&mut self, request: &Received) -> Result<(), Broken> {
        let known = self.wards.keys().find(|key| key.delivery_id == request.delivery_id).cloned();
        let unknown = || format!("a request for {}, which nobody published", request.delivery_id);
        let key = known.ok_or_else(unknown)?;
        let record = self.world.ledger.peek(&key).ok_or_else(unknown)?;
        let ward = self.wards.get_mut(&key).ok_or_else(unknown)?;
        let broken = |what: String| Err(format!("{}: attempt {}: {what}", ward.name, request.attempt));
        if request.body != ward.payload {
            return broken("other bytes than were published".to_owned());
        }
        if record.delivery.deadline.is_some_and(|deadline| request.at_sender >= deadline) {
            return broken(format!(
                "sent at {} by the sender's clock, at or after the deadline",
                request.at_sender
            ));
        }
        let asked_until = ward.asked_until.map(|until| until.minus(SKEW).minus(SKEW));
        if asked_until.is_some_and(|until| request.at < until) {
            return broken(format!("sent at {}, before the recipient's Retry-After", request.at));
        }
        if ward.attempts_sent.contains(&request.attempt) {
            return broken("this number was sent before".to_owned());
        }
        let rival = self
            .open_requests
            .iter()
            .find(|open| open.key == key && open.sender != request.sender && open.over_at > request.at);
        if let Some(rival) = rival {
            return broken(format!("sent while {} waits for its answer", rival.sender));
        }
        check_claim(&record, request).or_else(broken)?;
        ward.attempts_sent.insert(request.attempt);
        ward.requested_when_calm += u32::from(self.is_calm);
        let (sender, over_at) = (request.sender.clone(), request.over_at);
        self.check_in_flight(&record, request)?;
        self.check_suspended(&record, request)?;
        self.open_requests.push(OpenRequest { sender, key, over_at });
        Ok(())
    }
}

/// Tokens begin with their owner's name, so that the record tells whose claim it holds.
fn check_claim(record: &Record, request: &Received) -> Result<(), Broken> {
    let is_late = matches!(record.disposition, Some(Disposition::Delivered { late: true, .. }));
    if record.state == State::Succeeded && is_late {
        // A late acknowledgement ended it while this claim was about to send: nothing can recall it.
        return Ok(());
    }
    let Some(claim) = &record.claim else { return Err("sent without a claim".to_owned()) };
    let is_own =
        claim.token.as_str().strip_prefix(&*request.sender).is_some_and(|rest| rest.starts_with('-'));
    if !is_own || claim.attempt != request.attempt {
        return Err(format!(
            "sent by {} under the claim {} of attempt {}",
            request.sender, claim.token, claim.attempt
        ));
    }
    if request.at_sender >= claim.lease_until {
        return Err(format!("sent at {}, under a claim until {}", request.at_sender, claim.lease_until));
    }
    Ok(())
}
