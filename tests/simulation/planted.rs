//! Planted faults: every clause of every conditional write left out in turn, and rules broken by hand. Each
//! is found, and how soon is printed for `docs/RELIABILITY.md`: `make planted`.

use waybill_testkit::memory::Clause;
use waybill_testkit::simulation::sabotage::Sabotage;
use waybill_testkit::simulation::sabotaged;

/// Within so many histories each is found.
const WITHIN: u64 = 1_000;

/// Clauses whose lack no history can tell, and why that is right.
const SECOND_LOCKS: &[(Clause, &str)] = &[
    (
        Clause::ApplyState,
        "every write moves the revision, so a record of the expected revision is in the expected state",
    ),
    (
        Clause::EntrySequence,
        "an entry's hash covers its number: who follows the head's hash follows its number",
    ),
    (
        Clause::EntryPrevious,
        "a book has one entry of each number: who follows the head's number follows its hash",
    ),
    (Clause::InstallSequence, "as for an entry"),
    (Clause::InstallPrevious, "as for an entry"),
];

const BY_HAND: &[Sabotage] = &[
    Sabotage::SettleTakenForLanded,
    Sabotage::LateOwnerOverwrites,
    Sabotage::AcknowledgesBeforeHandOff,
    Sabotage::NeverRepeatsHandOff,
    Sabotage::ForgetsDeadlineAtSend,
    Sabotage::ForgetsLeaseAtSend,
    Sabotage::AcknowledgesOwnClaim,
    Sabotage::QueueDropsSends,
    Sabotage::QueueDropsBurials,
    Sabotage::EvidenceIsDropped,
    Sabotage::SlotsAreNotGivenBack,
    Sabotage::ReleasesAnothersSlot,
    Sabotage::DoublesWakeUps,
    Sabotage::IgnoresHolds,
    Sabotage::IgnoresLimits,
    Sabotage::HoldsWhatIsEased,
    Sabotage::ReleasesInAnyOrder,
    Sabotage::ForgetsWhatIsInHand,
    Sabotage::SendsInDoubt,
    Sabotage::SuccessIsNotCounted,
    Sabotage::SuspensionIsNeverLifted,
    Sabotage::IgnoresSuspensions,
    Sabotage::ProbesSideBySide,
];

#[test]
fn every_planted_fault_is_found() {
    let clauses = Clause::ALL.iter().map(|clause| (clause.to_string(), Sabotage::Drops(*clause)));
    let by_hand = BY_HAND.iter().map(|sabotage| (format!("{sabotage:?}"), *sabotage));
    let mut unexpected = Vec::new();
    println!("| planted | found by seed | as |\n|---|---|---|");
    for (name, sabotage) in clauses.chain(by_hand) {
        let second_lock = SECOND_LOCKS.iter().find(|(clause, _)| sabotage == Sabotage::Drops(*clause));
        let found = (0..WITHIN).find_map(|seed| sabotaged(seed, sabotage).err());
        match (&found, second_lock) {
            (Some(failure), _) => println!("| {name} | {} | {} |", failure.seed, failure.broken),
            (None, Some((_, why))) => println!("| {name} | never | a second lock: {why} |"),
            (None, None) => println!("| {name} | **never** | |"),
        }
        if found.is_some() == second_lock.is_some() {
            unexpected.push(name);
        }
    }
    assert!(unexpected.is_empty(), "not found, or found although they are second locks: {unexpected:?}");
}
