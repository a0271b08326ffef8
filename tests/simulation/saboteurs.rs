//! A simulator proves something only if it can fail: rules broken on purpose, and how soon it tells.

use waybill_testkit::simulation::run;
use waybill_testkit::simulation::sabotage::Sabotage;

/// The first history that notices, of so many; it must name one of these broken promises.
#[track_caller]
fn assert_noticed(sabotage: Sabotage, within: u64, promises: &[&str]) {
    let noticed = (0..within).find_map(|seed| run(seed, Some(sabotage)).err());
    let Some(failure) = noticed else { panic!("{sabotage:?} was not noticed within {within} histories") };
    println!("{sabotage:?}: {failure}");
    let is_named = promises.iter().any(|promise| failure.broken.contains(promise));
    assert!(is_named, "{sabotage:?} was noticed as something else: {failure}");
}

#[test]
fn a_settle_that_is_taken_for_landed_is_noticed() {
    assert_noticed(Sabotage::SettleTakenForLanded, 2_000, &["nobody owes its next step"]);
}

#[test]
fn a_settle_without_comparing_the_claim_token_is_noticed() {
    let promises = ["became", "a success was written to", "attempts went", "ended by somebody else"];
    assert_noticed(Sabotage::LateOwnerOverwrites, 500, &promises);
}

#[test]
fn a_ledger_that_ignores_the_revision_is_noticed() {
    let promises =
        ["two claims at once", "ended by somebody else", "attempts went", "sent by", "was sent before"];
    assert_noticed(Sabotage::LedgerIgnoresRevision, 500, &promises);
}

/// The state clause is a second lock: every write moves the revision, so a record of the expected
/// revision is in the expected state. No history can tell a ledger that leaves it out.
#[test]
fn a_ledger_that_ignores_the_state_cannot_be_told_from_an_honest_one() {
    assert!((0..300).all(|seed| run(seed, Some(Sabotage::LedgerIgnoresState)).is_ok()));
}

#[test]
fn an_acknowledgement_before_the_hand_off_is_noticed() {
    assert_noticed(Sabotage::AcknowledgesBeforeHandOff, 50, &["nobody owes its next step"]);
}

#[test]
fn a_copy_that_never_repeats_its_hand_off_is_noticed() {
    assert_noticed(Sabotage::NeverRepeatsHandOff, 500, &["nobody owes its next step"]);
}

#[test]
fn a_deadline_forgotten_at_the_first_byte_is_noticed() {
    assert_noticed(Sabotage::ForgetsDeadlineAtSend, 2_000, &["at or after the deadline"]);
}

#[test]
fn a_lease_forgotten_at_the_first_byte_is_noticed() {
    let promises = ["under a claim until", "without a claim", "under the claim"];
    assert_noticed(Sabotage::ForgetsLeaseAtSend, 2_000, &promises);
}

#[test]
fn a_duplicate_that_deletes_a_live_claim_s_message_is_noticed() {
    assert_noticed(Sabotage::AcknowledgesOwnClaim, 500, &["nobody owes its next step"]);
}

#[test]
fn a_queue_that_drops_wake_ups_is_noticed() {
    assert_noticed(Sabotage::QueueDropsSends, 50, &["nobody owes its next step", "does not end"]);
}

#[test]
fn a_queue_that_drops_dead_letters_is_noticed() {
    assert_noticed(Sabotage::QueueDropsBurials, 50, &["not in the DLQ", "are in the DLQ"]);
}

#[test]
fn a_look_up_that_is_not_made_is_noticed() {
    assert_noticed(Sabotage::SendsInDoubt, 500, &["applied twice"]);
}

#[test]
fn evidence_that_is_not_written_is_noticed() {
    assert_noticed(Sabotage::EvidenceIsDropped, 50, &["left no evidence"]);
}

#[test]
fn a_slot_that_is_not_given_back_is_noticed() {
    assert_noticed(Sabotage::SlotsAreNotGivenBack, 50, &["keeps a slot"]);
}

#[test]
fn a_release_that_frees_another_s_slot_is_noticed() {
    assert_noticed(Sabotage::ReleasesAnothersSlot, 2_000, &["whose budget is"]);
}

#[test]
fn a_budget_that_is_not_compared_is_noticed() {
    assert_noticed(Sabotage::UsageIsNotCompared, 2_000, &["whose budget is", "keeps a slot"]);
}
