//! Keeping the DLQ true: it should show what the ledger says are dead letters, and nothing else.
//!
//! Copies of what is no dead letter any more are removed. What SQS moved by itself (functions that
//! could not start) belongs to a delivery that is still open: it is woken from the ledger, and the copy
//! removed. What nobody knows stays, and is reported.

use std::future::Future;

use waybill_domain::delivery::{Record, State};
use waybill_domain::envelope::{DeadLetter, Decoded, WakeUp, decode};
use waybill_domain::identity::{DeliveryKey, MessageId};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::config::Config;
use crate::ports::{Clock, Ledger, PortResult, Queue, Receipt, Received};
use crate::steps::{Landing, hand_over, legal, write};

/// The dead-letter queue, as it can be browsed: a message that is looked at is hidden for a moment.
pub trait DeadLetterBox: Send + Sync {
    /// Up to `most` messages, each hidden for `visibility`; empty if none is visible.
    fn take(
        &self,
        most: usize,
        visibility: DurationMs,
    ) -> impl Future<Output = PortResult<Vec<Received>>> + Send;

    /// Removes a message. A stale receipt removes nothing.
    fn remove(&self, receipt: &Receipt) -> impl Future<Output = PortResult<()>> + Send;

    /// Shows a message again. A stale receipt shows nothing.
    fn show(&self, receipt: &Receipt) -> impl Future<Output = PortResult<()>> + Send;
}

/// What a sweep came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Looked at.
    pub looked_at: usize,
    /// Dead letters that stay.
    pub kept: usize,
    /// Removed: the delivery is no such dead letter any more.
    pub removed: usize,
    /// Removed, and the delivery woken from the ledger: SQS had moved its wake-up.
    pub rescued: usize,
    /// Kept: no envelope of ours, of a newer version, or of a delivery that the ledger does not know.
    pub unknown: usize,
    /// Whether it stopped at its limit.
    pub more: bool,
}

/// How many messages one sweep looks at.
const MOST: usize = 1000;
/// How many are taken at once: as many as SQS gives.
const AT_ONCE: usize = 10;
/// How long a message is hidden: longer than a sweep takes.
const HIDDEN: DurationMs = DurationMs::from_secs(120);

enum Fate {
    Keep,
    Remove,
    Rescue(Box<Record>),
    Unknown(&'static str),
}

/// Sweeps the DLQ once; from `until` on nothing further is taken.
pub async fn sweep<L: Ledger, Q: Queue + DeadLetterBox, C: Clock>(
    ledger: &L,
    queue: &Q,
    clock: &C,
    config: &Config,
    until: Option<TimeMs>,
) -> PortResult<SweepReport> {
    let mut report = SweepReport::default();
    let mut kept = Vec::new();
    while !report.more {
        let messages = queue.take(AT_ONCE, HIDDEN).await?;
        if messages.is_empty() {
            break;
        }
        for message in messages {
            report.looked_at += 1;
            match fate_of(ledger, &message).await? {
                Fate::Keep => {
                    report.kept += 1;
                    kept.push(message.receipt);
                }
                Fate::Unknown(why) => {
                    tracing::warn!(message_id = %message.message_id, reason = why, "kept in the DLQ");
                    report.unknown += 1;
                    kept.push(message.receipt);
                }
                Fate::Remove => {
                    queue.remove(&message.receipt).await?;
                    report.removed += 1;
                }
                Fate::Rescue(record) => {
                    rescue(ledger, queue, clock, config, &record).await?;
                    queue.remove(&message.receipt).await?;
                    report.rescued += 1;
                }
            }
        }
        report.more = report.looked_at >= MOST || until.is_some_and(|until| clock.now() >= until);
    }
    show_again(queue, &kept).await;
    let SweepReport { looked_at, kept, removed, rescued, unknown, more } = report;
    tracing::info!(looked_at, kept, removed, rescued, unknown, more, "swept the DLQ");
    Ok(report)
}

/// A copy in the DLQ that belongs to no delivery which the ledger knows: it stays there until a person
/// decided. Its body is nobody's to read here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCopy {
    /// Its message ID, as the queue's own tools show it.
    pub message_id: MessageId,
    /// What is the matter: `undecodable`, `newer_version`, or `unknown` to the ledger.
    pub why: &'static str,
    /// The delivery that it names, where it can be read.
    pub delivery: Option<DeliveryKey>,
    /// How long its body is.
    pub bytes: usize,
}

/// The copies that a sweep keeps because nobody knows them, and whether there may be more: of the first
/// thousand copies that are visible. Nothing is changed; each is hidden while this looks.
pub async fn unknown_copies(
    ledger: &impl Ledger,
    queue: &impl DeadLetterBox,
) -> PortResult<(Vec<UnknownCopy>, bool)> {
    let (mut unknown, mut seen) = (Vec::new(), Vec::new());
    let looking = async {
        while seen.len() < MOST {
            let messages = queue.take(AT_ONCE, HIDDEN).await?;
            if messages.is_empty() {
                return Ok(false);
            }
            for message in messages {
                seen.push(message.receipt.clone());
                if let Fate::Unknown(why) = fate_of(ledger, &message).await? {
                    let Received { message_id, body, .. } = message;
                    unknown.push(UnknownCopy { message_id, why, delivery: named(&body), bytes: body.len() });
                }
            }
        }
        Ok(true)
    };
    let more = looking.await;
    show_again(queue, &seen).await;
    Ok((unknown, more?))
}

/// The delivery that a body of ours names.
fn named(body: &str) -> Option<DeliveryKey> {
    match decode(body) {
        Decoded::WakeUp(WakeUp { facts, .. }) | Decoded::DeadLetter(DeadLetter { facts, .. }) => {
            Some(facts.key())
        }
        Decoded::Newer(_) | Decoded::Undecodable(_) => None,
    }
}

async fn show_again(queue: &impl DeadLetterBox, receipts: &[Receipt]) {
    for receipt in receipts {
        // It comes back by itself all the same.
        if let Err(error) = queue.show(receipt).await {
            tracing::warn!(error = error.in_full(), "a dead letter stays hidden for a moment");
        }
    }
}

async fn fate_of(ledger: &impl Ledger, message: &Received) -> PortResult<Fate> {
    let key = match decode(&message.body) {
        Decoded::WakeUp(WakeUp { ref facts, .. }) | Decoded::DeadLetter(DeadLetter { ref facts, .. }) => {
            facts.key()
        }
        Decoded::Newer(_) => return Ok(Fate::Unknown("newer_version")),
        Decoded::Undecodable(_) => return Ok(Fate::Unknown("undecodable")),
    };
    let Some(record) = ledger.load(&key).await? else { return Ok(Fate::Unknown("unknown")) };
    Ok(match (decode(&message.body), record.state) {
        // A console's redrive of a wake-up, or a queue that could not be worked for.
        (Decoded::WakeUp(_), State::Pending | State::Retryable) => Fate::Rescue(Box::new(record)),
        (Decoded::DeadLetter(letter), State::DeadLettered | State::Expired)
            if is_its_letter(&letter, &record) =>
        {
            Fate::Keep
        }
        _ => Fate::Remove,
    })
}

/// Whether a letter tells of the ending that the record stands at.
fn is_its_letter(letter: &DeadLetter, record: &Record) -> bool {
    let is_open_matter = record.state == State::Expired || record.dead_letter_reason().is_some();
    is_open_matter && record.ended_at == Some(letter.ended_at)
}

/// Wakes a delivery whose wake-up lay in the DLQ. Its look moves first, as for every rescue.
async fn rescue<L: Ledger, Q: Queue, C: Clock>(
    ledger: &L,
    queue: &Q,
    clock: &C,
    config: &Config,
    record: &Record,
) -> PortResult<()> {
    // Held: whoever lifts the hold wakes it. Claimed: a worker is at it, or the reconciler will be.
    if record.look_at.is_none() || record.claim.is_some() {
        return Ok(());
    }
    let rules = config.look_rules(queue.window());
    match write(ledger, &legal(record.looked(clock.now(), &rules))?, |_| false).await? {
        Landing::Landed(moved) => hand_over(ledger, queue, clock, &moved).await,
        // Somebody else moves it on.
        Landing::Lost(_) => Ok(()),
    }
}
