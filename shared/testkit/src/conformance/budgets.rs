//! What is used of budgets: kept as it was written, changed by compare-and-set.

use futures::future::join_all;
use waybill_domain::authority::Book;
use waybill_domain::budget::{Budget, Rate, Usage, Wanted};
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::suspension::{Heard, Sign, SuspendRules};
use waybill_domain::time::DurationMs;
use waybill_service::ports::{KeptUsage, Ledger, UsageSet};

use super::fixture::{t, token};

const LEASE: DurationMs = DurationMs::from_secs(25);

fn books() -> DestinationName {
    DestinationName::parse("books").expect("a destination")
}

fn wanted(name: &str, is_redrive: bool) -> Wanted {
    let tenant = TenantId::parse("acme").expect("a tenant");
    let event = EventId::parse(name).expect("an event ID");
    Wanted { token: token(name), delivery: DeliveryId::derive(&tenant, &event, &books()), is_redrive }
}

fn used(names: &[&str]) -> Usage {
    let budget = Budget::of(Some(50), Some(Rate::parse("rate", "20/s").expect("a rate"))).expect("a budget");
    let mut usage = Usage::default();
    for name in names {
        assert!(usage.take(&budget, &[wanted(name, name.starts_with('r'))], t(1), LEASE)[0].is_some());
    }
    assert!(usage.reserve(&budget, &wanted("held", true).delivery, true, t(2)).is_some());
    usage.someone_waits(t(2), LEASE);
    usage
}

fn heard(name: &str, sign: Sign, at: u64) -> Heard {
    Heard { token: token(name), sign: Some(sign), started_at: t(at) }
}

async fn kept<L: Ledger>(ledger: &L) -> KeptUsage {
    ledger.usage(&books()).await.expect("an answer")
}

/// Nothing has to be made before a budget is used.
pub async fn what_was_never_used_is_empty_at_revision_zero<L: Ledger>(ledger: L) {
    assert_eq!(kept(&ledger).await, KeptUsage { revision: 0, usage: Usage::default() });
}

/// Slots, reservations, pace and who waits: nothing is lost on the way.
pub async fn what_is_used_comes_back_equal<L: Ledger>(ledger: L) {
    for (revision, names) in [(0, &["a", "r"][..]), (1, &["a", "b", "c"]), (2, &[])] {
        let usage = used(names);
        let set = ledger.set_usage(&books(), revision, &usage).await.expect("an answer");
        assert_eq!(set, UsageSet::Landed);
        assert_eq!(kept(&ledger).await, KeptUsage { revision: revision + 1, usage });
    }
}

/// Whoever writes by what is past is told what is.
pub async fn of_two_writers_of_one_revision_one_lands<L: Ledger>(ledger: L) {
    for revision in [0, 1] {
        let (first, second) = (used(&["a"]), used(&["b"]));
        let set = ledger.set_usage(&books(), revision, &first).await.expect("an answer");
        assert_eq!(set, UsageSet::Landed);
        let stored = KeptUsage { revision: revision + 1, usage: first };
        let lost = ledger.set_usage(&books(), revision, &second).await.expect("an answer");
        assert_eq!(lost, UsageSet::Lost(stored.clone()));
        let ahead = ledger.set_usage(&books(), revision + 2, &second).await.expect("an answer");
        assert_eq!(ahead, UsageSet::Lost(stored), "a revision that never was");
    }
}

/// A store's client that repeats its own write finds it.
pub async fn a_repeated_write_loses_to_itself<L: Ledger>(ledger: L) {
    let usage = used(&["a"]);
    ledger.set_usage(&books(), 0, &usage).await.expect("an answer");
    let repeated = ledger.set_usage(&books(), 0, &usage).await.expect("an answer");
    assert_eq!(repeated, UsageSet::Lost(KeptUsage { revision: 1, usage }));
}

/// However many take at once, by compare-and-set alone.
pub async fn of_many_concurrent_takers_no_more_than_the_budget_get_a_slot<L: Ledger>(ledger: L) {
    let budget = Budget::of(Some(3), None).expect("a budget");
    let take = async |n: u32| {
        let wanted = [wanted(&format!("taker-{n}"), false)];
        loop {
            let mut kept = kept(&ledger).await;
            let granted = kept.usage.take(&budget, &wanted, t(1), LEASE);
            let set = ledger.set_usage(&books(), kept.revision, &kept.usage).await.expect("an answer");
            if set == UsageSet::Landed {
                return usize::from(granted[0].is_some());
            }
        }
    };
    let granted: usize = join_all((0..8).map(take)).await.into_iter().sum();
    assert_eq!((granted, kept(&ledger).await.usage.leased()), (3, 3));
}

/// A row of failures, a suspension, its probe and its end: nothing is lost on the way.
pub async fn how_a_destination_does_comes_back_equal<L: Ledger>(ledger: L) {
    let rules = SuspendRules { after: Some(2), on_gone: false };
    let mut usage = used(&["a"]);
    let mut revision = 0;
    let mut keep = async |usage: &Usage| {
        let set = ledger.set_usage(&books(), revision, usage).await.expect("an answer");
        assert_eq!(set, UsageSet::Landed);
        revision += 1;
        assert_eq!(kept(&ledger).await, KeptUsage { revision, usage: usage.clone() });
    };
    for name in ["f1", "f2"] {
        usage.health.hear(&rules, &Book::Across, &heard(name, Sign::Refused, 1), t(2));
        keep(&usage).await;
    }
    usage.health.choose_probe(&wanted("p", false).delivery, t(62));
    keep(&usage).await;
    usage.health.begin_probe(&wanted("p", false).delivery, &token("p"), t(80));
    keep(&usage).await;
    usage.health.hear(&rules, &Book::Across, &heard("p", Sign::Took, 62), t(63));
    assert!(usage.health.to_enter().is_some(), "its end is still to be entered");
    keep(&usage).await;
}

/// Whoever tells of a failure, all of them are in the row, and it suspends once.
pub async fn failures_told_by_many_at_once_are_each_counted_and_suspend_once<L: Ledger>(ledger: L) {
    let rules = SuspendRules { after: Some(6), on_gone: false };
    let tell = async |n: u32| {
        let heard = heard(&format!("teller-{n}"), Sign::Unreachable, 1);
        loop {
            let mut kept = kept(&ledger).await;
            kept.usage.health.hear(&rules, &Book::Across, &heard, t(2));
            let begun = kept.usage.health.suspension().is_some();
            let set = ledger.set_usage(&books(), kept.revision, &kept.usage).await.expect("an answer");
            if set == UsageSet::Landed {
                return begun;
            }
        }
    };
    let begun = join_all((0..6).map(tell)).await.into_iter().filter(|begun| *begun).count();
    let kept = kept(&ledger).await;
    assert_eq!((begun, kept.revision), (1, 6));
    assert_eq!(kept.usage.health.suspension().map(|it| it.failures), Some(6));
}

/// One item each.
pub async fn budgets_of_destinations_are_apart<L: Ledger>(ledger: L) {
    let crm = DestinationName::parse("crm").expect("a destination");
    let usage = used(&["a"]);
    ledger.set_usage(&books(), 0, &usage).await.expect("an answer");
    assert_eq!(ledger.usage(&crm).await.expect("an answer"), KeptUsage::default());
    let set = ledger.set_usage(&crm, 0, &used(&["b"])).await.expect("an answer");
    assert_eq!(set, UsageSet::Landed);
    assert_eq!(kept(&ledger).await, KeptUsage { revision: 1, usage });
}
