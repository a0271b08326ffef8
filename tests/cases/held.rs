//! What is held of a destination, counted for whoever asks.

use std::collections::BTreeMap;

use waybill_domain::delivery::Delivery;
use waybill_domain::hold::{Held, HoldReason};
use waybill_domain::identity::DeliveryKey;
use waybill_service::held::{HeldCount, MOST_PASSED, count_held};
use waybill_service::ports::Clock as _;
use waybill_testkit::conformance::fixture;

use crate::crew::accounting;
use crate::world::World;

/// Holds so many deliveries of a tenant's to the accounting system.
fn hold(world: &World, tenant: &str, reason: HoldReason, count: usize) {
    for n in 0..count {
        let delivery = fixture::delivery(tenant, &format!("{reason:?}-{n}"), "accounting");
        let pending = fixture::pending(Delivery { first_queued_at: world.clock.now(), ..delivery });
        let held = Held { reason, since: world.clock.now() };
        let by = fixture::writer("worker", world.clock.now());
        world.block(fixture::store_as(&world.ports.ledger, &pending, |record| {
            record.hold(&by, held).unwrap()
        }));
    }
}

fn counted(world: &World, most: usize, is_meant: impl Fn(&DeliveryKey) -> bool) -> HeldCount {
    world.block(count_held(&world.ports.ledger, &accounting(), most, is_meant)).unwrap()
}

#[test]
fn what_is_held_is_counted_by_its_reason_up_to_as_many_as_were_asked_for() {
    let world = World::new();
    hold(&world, "acme", HoldReason::Paused, 150);
    hold(&world, "acme", HoldReason::Budget, 70);
    hold(&world, "northwind", HoldReason::Paused, 30);
    let of = |tenant: &'static str| move |key: &DeliveryKey| key.tenant.as_str() == tenant;
    let all = counted(&world, 1000, |_| true);
    assert_eq!(all.by_reason, BTreeMap::from([(HoldReason::Paused, 180), (HoldReason::Budget, 70)]));
    assert_eq!((all.total(), all.more), (250, false));
    let acmes = counted(&world, 1000, of("acme"));
    assert_eq!(acmes.by_reason, BTreeMap::from([(HoldReason::Paused, 150), (HoldReason::Budget, 70)]));
    for (most, total, more) in [(249, 249, true), (250, 250, false), (0, 0, true)] {
        let count = counted(&world, most, |_| true);
        assert_eq!((count.total(), count.more), (total, more), "at most {most}");
    }
    assert_eq!(counted(&world, 10, of("nobody")), HeldCount::default());
}

#[test]
fn who_asks_for_one_tenants_reads_past_no_more_than_ten_thousand_of_others() {
    let world = World::new();
    hold(&world, "acme", HoldReason::Paused, MOST_PASSED);
    assert!(!counted(&world, 10, |_| false).more, "it came to the end");
    hold(&world, "northwind", HoldReason::Paused, 1);
    assert!(counted(&world, 10, |_| false).more);
}
