//! Settling: evidence first, then the record, then the hand-off; and what is done where the claim was lost
//! meanwhile.

use waybill_domain::attempt::SendReport;
use waybill_domain::delivery::{Change, Claim, Record};
use waybill_domain::identity::DeliveryKey;
use waybill_domain::outcome::Outcome;
use waybill_domain::settle::{Terms, interrupted, settle, settle_by, settle_late, standing_evidence};
use waybill_domain::transition::{ClaimEnd, IllegalTransition, Writer};

use crate::config::Config;
use crate::ports::{Applied, Clock, Dice, Ledger, PortError, PortResult, Queue, Recipient};
use crate::steps::{Landing, MOST_ROUNDS, insist, legal, write};
use crate::{instruments, notes};

use super::{Consumer, Round};

impl<L: Ledger, Q: Queue, R: Recipient, C: Clock, D: Dice> Consumer<'_, L, Q, R, C, D> {
    /// Evidence first, here too: what stands of the attempt already (its worker died after writing it,
    /// or another finder did) is what counts; without any, it was interrupted.
    pub(super) async fn settle_lapsed(
        &self,
        record: &Record,
        terms: &Terms,
        by: &Writer,
    ) -> PortResult<Change> {
        let (ledger, key) = (&self.ports.ledger, record.delivery.key());
        let mut attempts = ledger.attempts(&key).await?;
        if standing_evidence(record, &attempts).is_none() {
            let own = legal(interrupted(record, terms, by, self.ports.dice.unit()))?;
            ledger.add_attempt(&key, &own).await?;
            // Another finder's may have come first: both settle by the one that stands.
            attempts = ledger.attempts(&key).await?;
        }
        let standing = standing_evidence(record, &attempts).ok_or_else(|| PortError::AskLater {
            port: "ledger",
            cause: "evidence that was just written is not read back".into(),
        })?;
        legal(settle_by(record, standing, ClaimEnd::Lapsed, terms, by))
    }

    /// Evidence, settle, hand off; and what was acknowledged in time is not lost with its claim.
    pub(super) async fn settle_report(
        &self,
        config: &Config,
        claimed: Record,
        claim: &Claim,
        report: &SendReport,
        terms: &Terms,
        by: &Writer,
    ) -> PortResult<Round> {
        let unit = self.ports.dice.unit();
        let key = claimed.delivery.key();
        if let Some(attempt) = &legal(settle(&claimed, report, terms, by, unit))?.attempt {
            insist(|| self.ports.ledger.add_attempt(&key, attempt)).await?;
        }
        let round = self
            .settle_until_known(config, claimed, by, |record| {
                settle(record, report, terms, by, unit).map(|settlement| settlement.change)
            })
            .await?;
        match (round, report.outcome) {
            (Round::Again, Outcome::Delivered) => {
                self.acknowledge_late(config, &key, claim, report, terms, by).await
            }
            (round, _) => Ok(round),
        }
    }

    /// Settles our claim. If the condition fails: the settled token is ours → it had landed; the
    /// claim is still ours → somebody only moved the revision, settle again on the new one; anything
    /// else → the claim is lost, for nobody settles another's.
    pub(super) async fn settle_until_known(
        &self,
        config: &Config,
        claimed: Record,
        by: &Writer,
        settle: impl Fn(&Record) -> Result<Change, IllegalTransition>,
    ) -> PortResult<Round> {
        let is_settled_by_us = |stored: &Record| stored.settled_token.as_ref() == Some(&by.token);
        let mut current = Box::new(claimed);
        for _ in 0..MOST_ROUNDS {
            let Ok(change) = settle(&current) else { break };
            match insist(|| write(&self.ports.ledger, &change, is_settled_by_us)).await? {
                Landing::Landed(after) => {
                    notes::decision(&after);
                    instruments::decided(config, current.attempts_made, &after);
                    return self.hand_off(&after).await;
                }
                Landing::Lost(Some(stored)) => current = stored,
                Landing::Lost(None) => break,
            }
        }
        tracing::warn!(delivery_id = %current.delivery.id, tenant = %current.delivery.tenant, "claim lost");
        Ok(Round::Again)
    }

    async fn acknowledge_late(
        &self,
        config: &Config,
        key: &DeliveryKey,
        claim: &Claim,
        report: &SendReport,
        terms: &Terms,
        by: &Writer,
    ) -> PortResult<Round> {
        for _ in 0..MOST_ROUNDS {
            let Some(record) = self.ports.ledger.load(key).await? else { break };
            let Ok(change) = settle_late(&record, claim.attempt, report, terms, by) else { break };
            match self.ports.ledger.apply(&change).await {
                Ok(Applied::Landed) => {
                    notes::decision(change.after());
                    instruments::ended(config, change.after());
                    break;
                }
                // Whether it landed or not shows when the record is loaded again.
                Ok(Applied::Lost(_)) | Err(PortError::AskLater { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Round::Again)
    }
}
