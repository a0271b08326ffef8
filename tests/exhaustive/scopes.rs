//! What is searched, and rules that are broken on purpose to see that the search tells.

use crate::search::search;

/// The delivery that a search is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Its budget of attempts.
    pub(crate) max_attempts: u32,
    /// Its deadline, in seconds after it was published.
    pub(crate) deadline_s: Option<u64>,
    /// Whether its publisher lived to send the first wake-up.
    pub(crate) is_sent: bool,
}

/// What may still happen, at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    pub(crate) crashes: u8,
    pub(crate) duplicates: u8,
    pub(crate) losses: u8,
    /// Own writes whose answer was lost.
    pub(crate) repeats: u8,
    /// Times that the clock moves on while somebody could have moved.
    pub(crate) freezes: u8,
    pub(crate) holds: u8,
    pub(crate) releases: u8,
    pub(crate) stops: u8,
    pub(crate) reconciles: bool,
}

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    /// A copy that is received for the first time owes nothing (the rule of an early draft: duplicates
    /// share their message, and to delete one is to delete both).
    FirstCopyOwesNothing,
    /// Whoever finds a lapsed claim settles it, and leaves the hand-off to others (trace 4).
    FinderOwesNothing,
    /// A settle that failed while the claim is still its own is taken for landed (trace 7).
    SettleTakenForLanded,
    /// The ledger compares states alone.
    RevisionIsNotCompared,
}

const TWO: Terms = Terms { max_attempts: 2, deadline_s: None, is_sent: true };
const ONE: Terms = Terms { max_attempts: 1, ..TWO };
const URGENT: Terms = Terms { deadline_s: Some(40), ..TWO };
const UNSENT: Terms = Terms { is_sent: false, ..ONE };
const NONE: Bounds = Bounds {
    crashes: 0,
    duplicates: 0,
    losses: 0,
    repeats: 0,
    freezes: 0,
    holds: 0,
    releases: 0,
    stops: 0,
    reconciles: true,
};

/// Without a fault, with a budget of two: 70 states, by hand.
const QUIET: (&str, Terms, Bounds) = ("no fault", TWO, NONE);

/// What every run of the tests searches: name, delivery, bounds. First without a reconciler's help.
const WORKERS: &[(&str, Terms, Bounds)] =
    &[QUIET, ("workers alone", TWO, Bounds { crashes: 2, duplicates: 1, reconciles: false, ..NONE })];

/// And with it.
const USUAL: &[(&str, Terms, Bounds)] = &[
    ("a worker sleeps and dies", ONE, Bounds { crashes: 1, freezes: 1, ..NONE }),
    ("a worker sleeps beside a duplicate", ONE, Bounds { duplicates: 1, freezes: 1, ..NONE }),
    ("a deadline passes", URGENT, Bounds { crashes: 1, freezes: 1, ..NONE }),
    ("a message is lost", TWO, Bounds { crashes: 1, losses: 1, ..NONE }),
    ("the publisher died", UNSENT, Bounds { crashes: 1, duplicates: 1, ..NONE }),
    ("answers are lost", ONE, Bounds { crashes: 1, duplicates: 1, repeats: 1, ..NONE }),
    ("a hold comes and goes", ONE, Bounds { crashes: 1, duplicates: 1, holds: 1, ..NONE }),
    ("a run is stopped and goes on", ONE, Bounds { crashes: 1, releases: 1, stops: 1, ..NONE }),
    ("all of them", ONE, Bounds { crashes: 1, holds: 1, releases: 1, stops: 1, ..NONE }),
];

/// What `make exhaustive` searches beside it, in minutes.
const DEEP: &[(&str, Terms, Bounds)] = &[
    ("three crashes", TWO, Bounds { crashes: 3, duplicates: 1, ..NONE }),
    ("two duplicates", ONE, Bounds { crashes: 1, duplicates: 2, ..NONE }),
    ("a worker sleeps twice", TWO, Bounds { duplicates: 1, freezes: 2, ..NONE }),
    ("a deadline, sleep, duplicates", URGENT, Bounds { crashes: 1, duplicates: 1, freezes: 1, ..NONE }),
    ("losses and repeats", TWO, Bounds { crashes: 1, duplicates: 1, losses: 1, repeats: 1, ..NONE }),
    ("a run and duplicates", ONE, Bounds { crashes: 1, duplicates: 1, releases: 1, stops: 1, ..NONE }),
    ("all, and a duplicate", ONE, Bounds { duplicates: 1, holds: 1, releases: 1, stops: 1, ..NONE }),
];

#[track_caller]
fn check(scopes: &[(&str, Terms, Bounds)]) {
    for (name, terms, bounds) in scopes {
        let found = search(*terms, *bounds, None);
        println!("{:>9} states, {:>5} ends {:?}: {name}", found.states, found.ends, found.ended);
        if let Some((broken, story)) = &found.broken {
            panic!("{name}: {broken}\n{}", story.join("\n"));
        }
        assert!(found.ends > 0, "{name}: nothing ever ends");
    }
}

#[test]
fn every_interleaving_of_two_workers_keeps_every_law() {
    check(WORKERS);
}

#[test]
fn every_interleaving_of_workers_reconciler_and_operator_keeps_every_law() {
    check(USUAL);
    if std::env::var_os("WAYBILL_DEEP").is_some() {
        check(DEEP);
    }
}

#[test]
fn every_state_of_an_end_is_reached() {
    let (_, terms, bounds) = QUIET;
    let found = search(terms, bounds, None);
    assert_eq!(found.ended.keys().collect::<Vec<_>>(), ["dead_lettered", "succeeded"]);
    let urgent = search(URGENT, Bounds { crashes: 1, ..NONE }, None);
    assert!(urgent.ended.contains_key("expired"), "{:?}", urgent.ended);
}

#[track_caller]
fn assert_found(plant: Plant, terms: Terms, bounds: Bounds, law: &str) {
    let found = search(terms, bounds, Some(plant));
    let Some((broken, story)) = found.broken else {
        panic!("{plant:?} was not found in {} states", found.states)
    };
    println!("{plant:?}, after {} states: {broken}\n{}", found.states, story.join("\n"));
    assert!(broken.contains(law), "{plant:?} was found as something else: {broken}");
}

#[test]
fn the_rule_that_a_copy_received_first_owes_nothing_is_found() {
    let bounds = Bounds { crashes: 1, duplicates: 1, reconciles: false, ..NONE };
    assert_found(Plant::FirstCopyOwesNothing, TWO, bounds, "nobody owes its next step");
}

#[test]
fn a_finder_that_leaves_the_hand_off_to_others_is_found() {
    let bounds = Bounds { crashes: 1, ..NONE };
    assert_found(Plant::FinderOwesNothing, TWO, bounds, "nobody owes its next step");
}

#[test]
fn a_settle_that_is_taken_for_landed_is_found() {
    let bounds = Bounds { freezes: 3, ..NONE };
    assert_found(Plant::SettleTakenForLanded, ONE, bounds, "nobody owes its next step");
}

#[test]
fn a_revision_that_is_not_compared_is_found() {
    let bounds = Bounds { duplicates: 1, ..NONE };
    assert_found(Plant::RevisionIsNotCompared, TWO, bounds, "two claims at once");
}
