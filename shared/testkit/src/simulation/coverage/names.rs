//! What an admission, a write of a record and a write of an order are called.

use waybill_domain::admit::{Admission, Left, Suppressed};
use waybill_domain::audit::AUTOMATION;
use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::{DeadLetterReason, Disposition, Ending};
use waybill_domain::hold::{HoldReason, HoldRule};
use waybill_domain::order::{CameTo, Hold, Order, OrderBody};
use waybill_domain::redrive::Standing;

use crate::memory::{OrderWrite, Write};

/// An admission's name.
pub(in crate::simulation) fn admission(admission: &Admission) -> &'static str {
    use Suppressed as S;
    match admission {
        Admission::Acknowledge(S::Final) => "admit acknowledge final",
        Admission::Acknowledge(S::DeadLettered) => "admit acknowledge dead_lettered",
        Admission::Acknowledge(S::Claimed) => "admit acknowledge claimed",
        Admission::Acknowledge(S::Superseded) => "admit acknowledge superseded",
        Admission::Acknowledge(S::Held) => "admit acknowledge held",
        Admission::RepeatHandOff(S::Final) => "admit repeat final",
        Admission::RepeatHandOff(S::DeadLettered) => "admit repeat dead_lettered",
        Admission::RepeatHandOff(S::Superseded) => "admit repeat superseded",
        Admission::RepeatHandOff(S::Claimed | S::Held) => "admit repeat claimed, repeat held",
        Admission::Leave(Left::OwnClaim { .. }) => "admit leave own_claim",
        Admission::Leave(Left::TimeShort) => "admit leave time_short",
        Admission::SettleInterrupted => "admit settle_interrupted",
        Admission::End(Ending::Expired) => "admit end expired",
        Admission::End(Ending::DeadLettered(DeadLetterReason::HorizonReached)) => "admit end horizon_reached",
        Admission::End(Ending::DeadLettered(DeadLetterReason::DestinationRemoved)) => {
            "admit end destination_removed"
        }
        Admission::End(Ending::DeadLettered(_)) => "admit end attempts_exhausted",
        Admission::Hold(HoldReason::Paused) => "admit hold paused",
        Admission::Hold(HoldReason::Quarantine) => "admit hold quarantine",
        Admission::Hold(HoldReason::Gate) => "admit hold gate",
        Admission::Hold(HoldReason::Suspended) => "admit hold suspended",
        Admission::Hold(HoldReason::RunStopped) => "admit hold run_stopped",
        Admission::Hold(HoldReason::Budget) => "admit hold budget",
        Admission::Lift => "admit lift",
        Admission::Wait => "admit wait",
        Admission::Claim { .. } => "admit claim",
    }
}

/// A write's name, read from what it changed.
pub(in crate::simulation) fn write(write: &Write) -> &'static str {
    let after = &write.after;
    let Some(before) = &write.before else {
        return match after.state {
            State::DeadLettered => "write create, refused",
            _ => "write create",
        };
    };
    match (&after.disposition, before.state) {
        (Some(Disposition::Closed(_)), State::DeadLettered) if before.disposition != after.disposition => {
            return "write close";
        }
        (Some(Disposition::Resolved(_)), State::DeadLettered) => return "write resolve",
        _ => {}
    }
    match (before.state, after.state) {
        (State::DeadLettered, State::Expired) => return "write expire a dead letter",
        (State::DeadLettered, State::Retryable) => return "write release",
        (State::DeadLettered, State::Succeeded) => return "write late over dead_lettered",
        (State::Expired, State::Succeeded) => return "write late over expired",
        (_, State::Succeeded) => {
            let own = before.claim.as_ref().is_some_and(|c| Some(&c.token) == after.settled_token.as_ref());
            return match after.disposition {
                Some(Disposition::Delivered { by_look_up: true, .. }) if own => "write settled, confirmed",
                _ if own => "write settled, delivered",
                _ => "write late over retryable",
            };
        }
        _ => {}
    }
    let claim = match (&before.claim, &after.claim) {
        (None, Some(_)) => return "write claim",
        (Some(claim), None) => claim,
        _ => return unclaimed(before.state != after.state, write),
    };
    if after.attempts_made == before.attempts_made {
        return "write not_sent";
    }
    let is_own = Some(&claim.token) == after.settled_token.as_ref();
    use DeadLetterReason as R;
    match (is_own, after.state, after.dead_letter_reason()) {
        (true, State::Expired, _) => "write settled, expired",
        (true, _, None) => "write settled, retries",
        (true, _, Some(R::AttemptsExhausted)) => "write settled, exhausted",
        (true, _, Some(R::HorizonReached)) => "write settled, horizon",
        (true, _, Some(R::RetryAfterPastDeadline)) => "write settled, retry_after_past_deadline",
        (true, _, Some(R::AmbiguousOutcome)) => "write settled, ambiguous",
        (true, _, Some(R::Permanent(_) | R::DestinationRemoved | R::PayloadInvalid)) => {
            "write settled, permanent"
        }
        (false, State::Retryable, _) => "write interrupted, retries",
        (false, ..) => "write interrupted, ends",
    }
}

fn unclaimed(changes_state: bool, write: &Write) -> &'static str {
    let (Some(before), after) = (&write.before, &write.after) else { return "write create" };
    match (after.state, after.dead_letter_reason()) {
        (State::Expired, _) if changes_state => "write end expired",
        (_, Some(DeadLetterReason::DestinationRemoved)) if changes_state => "write end destination_removed",
        (_, Some(_)) if changes_state => "write end horizon_reached",
        _ if after.dlq_told && !before.dlq_told => "write told",
        _ if is_of(HoldReason::Budget, after) && before.hold != after.hold => "write hold, budget",
        _ if is_of(HoldReason::Suspended, after) && before.hold != after.hold => "write hold, suspended",
        _ if after.hold.is_some() && before.hold != after.hold => "write hold",
        _ if after.hold.is_none() && is_of(HoldReason::Budget, before) => "write lift, budget",
        _ if after.hold.is_none() && is_of(HoldReason::Suspended, before) => "write lift, suspended",
        _ if after.hold.is_none() && before.hold.is_some() => "write lift",
        _ => "write looked",
    }
}

fn is_of(reason: HoldReason, record: &Record) -> bool {
    record.hold.as_ref().is_some_and(|held| held.reason == reason)
}

/// What an order's write was, read from what it changed.
pub(in crate::simulation) fn order(write: &OrderWrite) -> &'static str {
    let standing = |body: &OrderBody| match body {
        OrderBody::Redrive(run) => Some(run.standing.clone()),
        _ => None,
    };
    let before = write.before.as_ref().and_then(|before| standing(&before.body));
    match (&write.after.body, before) {
        (OrderBody::Hold(Hold { rule: HoldRule::Suspended(_), lifted, .. }), _) => match lifted {
            None => "order suspension entered",
            Some(by) if by.by != AUTOMATION => "order suspension lifted by a person",
            Some(by) if by.why == "a probe succeeded" => "order suspension lifted by a probe",
            Some(_) => "order suspension over, its rule is gone",
        },
        (OrderBody::Hold(hold), _) => hold_order(write.before.as_ref(), hold),
        (OrderBody::Ending(ending), _) => match ending.came_to {
            None => "order ending given",
            Some(CameTo::Done) => "order ending carried out",
            Some(CameTo::NoDeadLetter) => "order ending found nothing",
        },
        (OrderBody::Redrive(_), None) => "order run started",
        (OrderBody::Redrive(run), Some(before)) => match (&run.standing, before) {
            (Standing::Running, Standing::Running) => "order run goes on",
            (Standing::Running, _) => "order run resumed",
            (Standing::Sampled(_), _) => "order run sampled",
            (Standing::Stopped(_), _) => "order run stopped",
            (Standing::Halted(_), _) => "order run halted",
            (Standing::Finished(_), _) => "order run finished",
        },
    }
}

fn hold_order(before: Option<&Order>, after: &Hold) -> &'static str {
    let was_eased = before.is_some_and(|order| order.eased_to().is_some());
    match (&after.lifted, &after.eased) {
        (Some(_), Some(_)) => "order hold lifted, which was eased",
        (Some(_), None) => "order hold lifted",
        (None, Some(_)) if was_eased => "order hold eased to another number",
        (None, Some(_)) => "order hold eased",
        (None, None) if was_eased => "order hold eased no more",
        (None, None) => "order hold placed",
    }
}
