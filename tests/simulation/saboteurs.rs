//! A simulator proves something only if it can fail: rules broken on purpose that it tells soon. Those that
//! take it longer, and every clause, are in `planted`.

use waybill_testkit::memory::Clause;
use waybill_testkit::simulation::sabotage::Sabotage;
use waybill_testkit::simulation::sabotaged;

/// The first history that notices, of so many; it must name one of these broken promises.
#[track_caller]
fn assert_noticed(sabotage: Sabotage, within: u64, promises: &[&str]) {
    let noticed = (0..within).find_map(|seed| sabotaged(seed, sabotage).err());
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
    assert_noticed(Sabotage::LateOwnerOverwrites, 200, &["was written over revision"]);
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
fn a_success_that_is_not_counted_is_noticed() {
    assert_noticed(Sabotage::SuccessIsNotCounted, 200, &["still counts failures"]);
}

#[test]
fn a_suspension_that_nobody_lifts_is_noticed() {
    assert_noticed(Sabotage::SuspensionIsNeverLifted, 200, &["is still suspended"]);
}

#[test]
fn a_suspension_that_nobody_sees_is_noticed() {
    assert_noticed(Sabotage::IgnoresSuspensions, 200, &["is not its probe", "does not end"]);
}

#[test]
fn probes_side_by_side_are_noticed() {
    assert_noticed(Sabotage::ProbesSideBySide, 200, &["is the probe of", "keeps a slot"]);
}

#[test]
fn evidence_that_is_not_written_is_noticed() {
    assert_noticed(Sabotage::EvidenceIsDropped, 50, &["left no evidence", "does not end"]);
}

#[test]
fn a_slot_that_is_not_given_back_is_noticed() {
    assert_noticed(Sabotage::SlotsAreNotGivenBack, 50, &["keeps a slot"]);
}

#[test]
fn a_budget_that_is_not_compared_is_noticed() {
    assert_noticed(
        Sabotage::Drops(Clause::UsageRevision),
        2_000,
        &["whose budget is", "keeps a slot", "the suspension"],
    );
}

#[test]
fn a_revision_that_is_not_compared_is_noticed() {
    assert_noticed(Sabotage::Drops(Clause::ApplyRevision), 500, &["written over", "sent by"]);
}

#[test]
fn an_order_that_is_written_over_is_noticed() {
    assert_noticed(Sabotage::Drops(Clause::ProgressOrder), 500, &["written over"]);
}

#[test]
fn a_worker_that_does_not_see_what_is_held_is_noticed() {
    assert_noticed(Sabotage::IgnoresHolds, 200, &["claims what"]);
}

#[test]
fn a_limit_of_an_eased_hold_that_nobody_keeps_is_noticed() {
    assert_noticed(Sabotage::IgnoresLimits, 1_000, &["whose budget is"]);
}

#[test]
fn an_eased_hold_that_goes_on_to_hold_is_noticed() {
    assert_noticed(Sabotage::HoldsWhatIsEased, 200, &["and nothing keeps it"]);
}

#[test]
fn what_is_held_and_goes_in_any_order_is_noticed() {
    assert_noticed(Sabotage::ReleasesInAnyOrder, 1_000, &["which comes first"]);
}

#[test]
fn a_run_that_forgets_what_it_took_in_hand_is_noticed() {
    assert_noticed(Sabotage::ForgetsWhatIsInHand, 200, &["released of"]);
}
