//! What an operator asks: deliveries by time, dead letters by reason, a delivery by its ID.

use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Decision, OrderId};
use waybill_domain::outcome::FailureClass;
use waybill_domain::policy::Policy;
use waybill_service::ports::{Catalogue, DeadLetterFilter, DeadLetterGroup, Filter, Ledger};

use super::desk::all_pages;
use super::fixture::*;

/// By tenant, newest first within a tenant, in pages of any size.
pub async fn a_listing_goes_by_tenant_newest_first<L: Ledger + Catalogue>(ledger: L) {
    let order = [("acme", 30), ("acme", 20), ("acme", 10), ("northwind", 40), ("zeta", 5)];
    let records = order.map(|(tenant, at)| queued(tenant, at, "books"));
    for n in [3, 1, 4, 0, 2] {
        store(&ledger, &records[n]).await;
    }
    for page in [10, 3, 2, 1] {
        let found = all_pages(async |from| ledger.list(&Filter::default(), page, from).await).await;
        assert_eq!(found, records, "in pages of {page}");
    }
}

/// Each field of the filter counts, alone and with the others.
pub async fn a_listing_shows_only_what_matches<L: Ledger + Catalogue>(ledger: L) {
    let old = queued("acme", 10, "books");
    let other = queued("acme", 20, "crm");
    let dead = queued("acme", 30, "books");
    let foreign = queued("northwind", 30, "books");
    for record in [&old, &other, &foreign] {
        store(&ledger, record).await;
    }
    let dead = store_as(&ledger, &dead, |r| dead_lettered(r, DeadLetterReason::HorizonReached, t(40))).await;

    let all = Filter::default();
    let cases: [(&str, Filter, Vec<&Record>); 6] = [
        ("tenant", Filter { tenant: tenant("acme"), ..all.clone() }, vec![&dead, &other, &old]),
        ("destination", Filter { destination: to("books"), ..all.clone() }, vec![&dead, &old, &foreign]),
        ("state", Filter { state: Some(State::DeadLettered), ..all.clone() }, vec![&dead]),
        ("since", Filter { since: Some(t(30)), ..all.clone() }, vec![&dead, &foreign]),
        (
            "all four",
            Filter {
                tenant: tenant("acme"),
                destination: to("books"),
                state: Some(State::Pending),
                since: Some(t(10)),
            },
            vec![&old],
        ),
        ("an unknown tenant", Filter { tenant: tenant("nobody"), ..all }, vec![]),
    ];
    for (name, filter, expected) in cases {
        for page in [10, 1] {
            let found = all_pages(async |from| ledger.list(&filter, page, from).await).await;
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "by {name}, in pages of {page}");
        }
    }
}

/// What is queued while somebody turns the pages moves nothing that is still to come.
pub async fn a_listing_is_stable_while_deliveries_arrive<L: Ledger + Catalogue>(ledger: L) {
    let records = [40, 30, 20, 10].map(|at| queued("acme", at, "books"));
    for record in &records {
        store(&ledger, record).await;
    }
    let filter = Filter { tenant: tenant("acme"), ..Filter::default() };
    let first = ledger.list(&filter, 2, None).await.expect("an answer");
    store(&ledger, &queued("acme", 50, "books")).await;
    let second = ledger.list(&filter, 2, first.next.as_ref()).await.expect("an answer");
    assert_eq!([first.items, second.items].concat(), records);
}

/// A place in one tenant's listing leads nobody else into it.
pub async fn a_cursor_does_not_lead_to_another_tenant<L: Ledger + Catalogue>(ledger: L) {
    for at in [10, 20, 30] {
        store(&ledger, &queued("acme", at, "books")).await;
        store(&ledger, &queued("northwind", at, "books")).await;
    }
    let ours = Filter { tenant: tenant("acme"), ..Filter::default() };
    let theirs = Filter { tenant: tenant("northwind"), ..Filter::default() };
    let place = ledger.list(&ours, 1, None).await.expect("an answer").next.expect("more");
    // To refuse is as good as to show only what is theirs.
    if let Ok(page) = ledger.list(&theirs, 10, Some(&place)).await {
        let foreign = page.items.iter().filter(|record| record.delivery.tenant.as_str() != "northwind");
        assert_eq!(foreign.count(), 0, "another tenant's deliveries were shown");
    }
}

/// By its ID alone, in every tenant that has it.
pub async fn a_delivery_is_found_by_its_id<L: Ledger + Catalogue>(ledger: L) {
    let ours = queued("northwind", 10, "books");
    let mut delivery = delivery("acme", "evt", "books");
    delivery.id = ours.delivery.id.clone();
    let same_id = pending(delivery);
    let other = queued("acme", 20, "books");
    for record in [&ours, &same_id, &other] {
        store(&ledger, record).await;
    }
    let mut found = ledger.find(&ours.delivery.id).await.expect("an answer");
    found.sort_by(|a, b| a.delivery.tenant.cmp(&b.delivery.tenant));
    assert_eq!(found, [same_id, ours]);
    let unknown = queued("acme", 99, "books").delivery.id.clone();
    assert_eq!(ledger.find(&unknown).await.expect("an answer"), []);
}

/// Counted by tenant, destination and reason, with the oldest and the nearest deadline.
pub async fn dead_letters_are_summed_up_by_reason<L: Ledger + Catalogue>(ledger: L) {
    dead_letters_of_two_tenants(&ledger).await;
    store(&ledger, &queued("acme", 99, "books")).await;
    let group = |of: &str, destination: &str, reason, count, oldest, nearest: Option<u64>| DeadLetterGroup {
        tenant: tenant(of).expect("a tenant"),
        destination: to(destination).expect("a destination"),
        reason,
        count,
        oldest_ended_at: t(oldest),
        nearest_deadline: nearest.map(t),
    };
    let ours = [
        group("acme", "books", DeadLetterReason::AttemptsExhausted, 2, 110, Some(5000)),
        group("acme", "books", AUTHENTICATION, 1, 130, None),
        group("acme", "crm", DeadLetterReason::AttemptsExhausted, 1, 140, Some(6000)),
    ];
    let theirs = [group("northwind", "books", DeadLetterReason::AttemptsExhausted, 1, 150, None)];
    let acme = tenant("acme");
    assert_eq!(ledger.dead_letter_summary(acme.as_ref()).await.expect("an answer"), ours);
    let all = ledger.dead_letter_summary(None).await.expect("an answer");
    assert_eq!(all, [&ours[..], &theirs[..]].concat());
    let nobody = tenant("nobody");
    assert_eq!(ledger.dead_letter_summary(nobody.as_ref()).await.expect("an answer"), []);
}

/// By tenant, destination and reason, oldest first; each field of the filter counts.
pub async fn dead_letters_are_listed_oldest_first<L: Ledger + Catalogue>(ledger: L) {
    let [a, b, c, d, e] = dead_letters_of_two_tenants(&ledger).await;
    store(&ledger, &queued("acme", 99, "books")).await;
    let all = DeadLetterFilter::default();
    let exhausted = Some(DeadLetterReason::AttemptsExhausted);
    let cases: [(&str, DeadLetterFilter, Vec<&Record>); 7] = [
        ("nothing", all.clone(), vec![&a, &b, &c, &d, &e]),
        ("tenant", DeadLetterFilter { tenant: tenant("acme"), ..all.clone() }, vec![&a, &b, &c, &d]),
        ("destination", DeadLetterFilter { destination: to("books"), ..all.clone() }, vec![&a, &b, &c, &e]),
        ("reason", DeadLetterFilter { reason: exhausted, ..all.clone() }, vec![&a, &b, &d, &e]),
        ("time", DeadLetterFilter { ended_before: Some(t(140)), ..all.clone() }, vec![&a, &b, &c]),
        (
            "tenant and destination",
            DeadLetterFilter { tenant: tenant("acme"), destination: to("books"), ..all.clone() },
            vec![&a, &b, &c],
        ),
        (
            "all four",
            DeadLetterFilter {
                tenant: tenant("acme"),
                destination: to("books"),
                reason: exhausted,
                ended_before: Some(t(120)),
            },
            vec![&a],
        ),
    ];
    for (name, filter, expected) in cases {
        for page in [10, 2, 1] {
            let found = all_pages(async |from| ledger.dead_letters(&filter, page, from).await).await;
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "by {name}, in pages of {page}");
        }
    }
}

/// The oldest of all groups, which need not be the first group's; none once all are released.
pub async fn the_oldest_dead_letter_is_known<L: Ledger + Catalogue>(ledger: L) {
    assert_eq!(ledger.oldest_dead_letter().await.expect("an answer"), None);
    store(&ledger, &queued("acme", 1, "books")).await;
    let exhausted = DeadLetterReason::AttemptsExhausted;
    let mut left = Vec::new();
    for (tenant, at, destination, reason) in [
        ("acme", 70, "books", exhausted),
        ("acme", 60, "books", exhausted),
        ("acme", 50, "books", AUTHENTICATION),
        ("acme", 30, "crm", exhausted),
        ("acme", 40, "crm", exhausted),
        ("northwind", 20, "books", exhausted),
    ] {
        left.push(dead(&ledger, tenant, at, destination, reason, None).await);
        let oldest = left.iter().filter_map(|record| record.ended_at).min();
        assert_eq!(ledger.oldest_dead_letter().await.expect("an answer"), oldest);
    }
    while let Some(record) = left.pop() {
        let run = "rdr_1".to_owned();
        land(&ledger, record.release(run, &Policy::default(), t(200), t(200), &LOOK).expect("a release"))
            .await;
        let oldest = left.iter().filter_map(|record| record.ended_at).min();
        assert_eq!(ledger.oldest_dead_letter().await.expect("an answer"), oldest);
    }
}

/// A release and a late acknowledgement end a dead letter: it is counted and listed no more.
pub async fn a_dead_letter_that_was_released_is_none<L: Ledger + Catalogue>(ledger: L) {
    let [a, b, c, d, e] = dead_letters_of_two_tenants(&ledger).await;
    let run = || "rdr_1".to_owned();
    land(&ledger, a.release(run(), &Policy::default(), t(200), t(200), &LOOK).expect("a release")).await;
    let late = b.acknowledged_late(&writer("late", t(200)), b.next_attempt(), None).expect("a late answer");
    land(&ledger, late).await;
    let found =
        all_pages(async |from| ledger.dead_letters(&DeadLetterFilter::default(), 10, from).await).await;
    assert_eq!(found, [c, d, e]);
    let counts: Vec<u64> =
        ledger.dead_letter_summary(None).await.expect("an answer").iter().map(|group| group.count).collect();
    assert_eq!(counts, [1, 1, 1]);
}

/// What a person closed or resolved is counted and listed no more, although what was closed keeps its
/// state.
pub async fn a_dead_letter_that_a_person_ended_is_none<L: Ledger + Catalogue>(ledger: L) {
    let [a, b, c, d, e] = dead_letters_of_two_tenants(&ledger).await;
    let order = || OrderId::parse("end_00000000000000000000000000").expect("an order's ID");
    for (record, decision) in [(&a, Decision::Close), (&d, Decision::Close), (&b, Decision::Resolve)] {
        let ended = land(&ledger, record.end_by_order(order(), decision, t(200)).expect("an end")).await;
        assert_eq!(stored(&ledger, &ended.delivery.key()).await, Some(ended));
    }
    for page in [10, 1] {
        let all = DeadLetterFilter::default();
        let found = all_pages(async |from| ledger.dead_letters(&all, page, from).await).await;
        assert_eq!(found, [c.clone(), e.clone()], "in pages of {page}");
    }
    let to_crm = DeadLetterFilter { tenant: tenant("acme"), destination: to("crm"), ..Default::default() };
    assert_eq!(all_pages(async |from| ledger.dead_letters(&to_crm, 10, from).await).await, []);
    for (of, counts) in [(None, vec![1, 1]), (tenant("acme"), vec![1]), (tenant("northwind"), vec![1])] {
        let summary = ledger.dead_letter_summary(of.as_ref()).await.expect("an answer");
        assert_eq!(summary.iter().map(|group| group.count).collect::<Vec<_>>(), counts, "{of:?}");
    }
}

const AUTHENTICATION: DeadLetterReason = DeadLetterReason::Permanent(FailureClass::AuthenticationRejected);

/// Five dead letters, in the order in which they are listed.
async fn dead_letters_of_two_tenants<L: Ledger>(ledger: &L) -> [Record; 5] {
    let exhausted = DeadLetterReason::AttemptsExhausted;
    let a = dead(ledger, "acme", 10, "books", exhausted, Some(9000)).await;
    let e = dead(ledger, "northwind", 50, "books", exhausted, None).await;
    let d = dead(ledger, "acme", 40, "crm", exhausted, Some(6000)).await;
    let b = dead(ledger, "acme", 20, "books", exhausted, Some(5000)).await;
    let c = dead(ledger, "acme", 30, "books", AUTHENTICATION, None).await;
    [a, b, c, d, e]
}

/// A dead letter that ended 100 s after it was first queued.
async fn dead<L: Ledger>(
    ledger: &L,
    tenant: &str,
    at: u64,
    destination: &str,
    reason: DeadLetterReason,
    deadline: Option<u64>,
) -> Record {
    let mut delivery = delivery(tenant, &format!("evt-{at}"), destination);
    delivery.first_queued_at = t(at);
    delivery.deadline = deadline.map(t);
    store_as(ledger, &pending(delivery), |record| dead_lettered(record, reason, t(at + 100))).await
}

fn queued(tenant: &str, at: u64, destination: &str) -> Record {
    let mut delivery = delivery(tenant, &format!("evt-{at}"), destination);
    delivery.first_queued_at = t(at);
    pending(delivery)
}

fn tenant(name: &str) -> Option<TenantId> {
    Some(TenantId::parse(name).expect("a tenant"))
}

fn to(name: &str) -> Option<DestinationName> {
    Some(DestinationName::parse(name).expect("a destination"))
}
