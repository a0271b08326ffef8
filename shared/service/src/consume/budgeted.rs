//! What comes between admission and claim: the payload, and a slot where the destination has a budget.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use waybill_domain::admit::{Left, SETTLE_MARGIN};
use waybill_domain::budget::Wanted;
use waybill_domain::delivery::{Change, Record};
use waybill_domain::destination::Destination;
use waybill_domain::envelope::WakeUp;
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::AttemptNumber;
use waybill_domain::time::DurationMs;
use waybill_domain::transition::Writer;

use crate::config::Config;
use crate::desk::{Approach, Refused};
use crate::ports::{Clock, Dice, Ledger, PortResult, Queue, Recipient};
use crate::reconcile::Reconciler;
use crate::release::{Bid, is_redrive};
use crate::steps::{Landing, legal, write};
use crate::{instruments, notes};

use super::{Beginning, Consumer, Errand, Round, Verdict};

impl<L: Ledger, Q: Queue, R: Recipient, C: Clock, D: Dice> Consumer<'_, L, Q, R, C, D> {
    /// The way to the counter where a slot will be asked for, so that a batch asks together: all of it
    /// has set out before the first arrives.
    pub(super) async fn approach(&self, config: &Config, wakeup: &WakeUp) -> Option<Approach> {
        let destination = config.destination(&wakeup.facts.destination, &wakeup.facts.tenant)?;
        config.budget_of(destination)?;
        let approach = self.ports.desk.counter(&destination.name).approach();
        let mut is_second = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_second, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        Some(approach)
    }

    /// Begins an attempt: the payload, the slot, and then the claim. The slot is given back whatever
    /// the attempt comes to, a lost claim too.
    pub(super) async fn begin(
        &self,
        errand: Errand<'_>,
        destination: &Arc<Destination>,
        record: &Record,
        attempt: AttemptNumber,
        timeout: DurationMs,
        time_left: DurationMs,
    ) -> PortResult<Round> {
        let begun_at = self.ports.clock.now();
        // Fetched before the claim: a store that cannot give it costs no lease and no attempt.
        let payload = self.ports.ledger.payload(&record.delivery.key()).await?;
        let token = self.ports.dice.token();
        let beginning = Beginning { attempt, timeout, payload, token: token.clone(), slot: None };
        let Some(bid) = Bid::of(errand.config, destination) else {
            return self.attempt(errand, destination, record, beginning).await;
        };
        let (desk, release) = (&self.ports.desk, self.release());
        let wanted = Wanted { token, delivery: record.delivery.id.clone(), is_redrive: is_redrive(record) };
        let slot = match release.take(desk, bid, wanted, errand.approach).await? {
            Ok(slot) => slot,
            Err(Refused::Full) => return self.hold_back(errand, bid, record, HoldReason::Budget).await,
            Err(Refused::Suspended) => {
                return self.hold_back(errand, bid, record, HoldReason::Suspended).await;
            }
        };
        // Of the time that was judged at admission some has gone by: an attempt must not be cut off.
        let gone_by = self.ports.clock.now().since(begun_at);
        if time_left < timeout.plus(SETTLE_MARGIN).plus(gone_by) {
            release.give_back(bid, slot).await;
            notes::left(record, Left::TimeShort);
            return Ok(Round::Done(Verdict::Leave { hidden_until: None }));
        }
        let beginning = Beginning { slot: Some(&slot), ..beginning };
        let round = self.attempt(errand, destination, record, beginning).await;
        release.give_back(bid, slot).await;
        round
    }

    /// The budget is full, or the destination suspended: not an attempt. State and due time stay, and the
    /// message is not needed.
    async fn hold_back(
        &self,
        errand: Errand<'_>,
        bid: Bid<'_>,
        record: &Record,
        reason: HoldReason,
    ) -> PortResult<Round> {
        let (message_id, now) = (Some(errand.message_id.clone()), self.ports.clock.now());
        let by = Writer { message_id, token: self.ports.dice.token(), now };
        let change = legal(record.hold(&by, Held { reason, since: now }))?;
        let is_ours = |stored: &Record| stored.settled_token.as_ref() == Some(&by.token);
        let Landing::Landed(held) = write(&self.ports.ledger, &change, is_ours).await? else {
            return Ok(Round::Again);
        };
        notes::decision(&held);
        instruments::decided(errand.config, record.attempts_made, &held);
        if let Err(error) = self.release().reconsider(&self.ports.desk, bid, &held).await {
            tracing::warn!(delivery_id = %held.delivery.id, tenant = %held.delivery.tenant,
                error = error.in_full(), "held, and left to whoever frees a slot");
        }
        Ok(Round::Done(Verdict::Acknowledge))
    }

    /// Concludes what does not go after all: what was reserved for it goes to the next. If that fails, it
    /// lapses.
    pub(super) async fn conclude_unsent(
        &self,
        errand: Errand<'_>,
        destination: Option<&Arc<Destination>>,
        record: &Record,
        change: Change,
        by: &Writer,
    ) -> PortResult<Round> {
        let round = self.conclude(errand.config, record, change, by).await?;
        let bid = destination.and_then(|destination| Bid::of(errand.config, destination));
        // Where another's write came first, it is admitted again, and may go.
        let (Round::Done(_), Some(bid)) = (&round, bid) else { return Ok(round) };
        // It asks for no slot: whoever holds the turn and waits for all who are on their way must not wait for
        // this one, which waits for the turn.
        if let Some(approach) = errand.approach {
            approach.arrive();
        }
        if let Err(error) = self.release().withdraw(&self.ports.desk, bid, record).await {
            tracing::warn!(delivery_id = %record.delivery.id, tenant = %record.delivery.tenant,
                error = error.in_full(), "its slot stays reserved until that lapses");
        }
        Ok(round)
    }

    fn release(&self) -> Reconciler<'_, L, Q, C, D> {
        let ports = self.ports;
        Reconciler { ledger: &ports.ledger, queue: &ports.queue, clock: &ports.clock, dice: &ports.dice }
    }
}
