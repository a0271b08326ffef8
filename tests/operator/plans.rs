//! What a plan means, counts and tells: what may have been applied, and what a hold would keep back.

use std::collections::BTreeMap;

use serde_json::json;
use waybill_domain::delivery::{Delivery, State};
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{DestinationName, EventId, ulid};
use waybill_domain::order::OrderId;
use waybill_domain::redrive::{Fate, ReleaseRate, Reviews, Selection};
use waybill_domain::time::DurationMs;
use waybill_service::ports::Clock as _;
use waybill_service::redrive::orders::Start;
use waybill_service::redrive::plan::Plan;
use waybill_testkit::conformance::fixture;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{publish, refused};
use crate::redrive::{many, states};
use crate::world::{EXHAUSTED, REFUSED, World, book, of, tenant};

#[test]
fn a_plan_counts_by_destination_reason_and_fate_and_writes_nothing() {
    let world = World::new();
    many(&world, "acme", 3);
    world.dead("acme", "crm-1", "crm", REFUSED);
    let late = Delivery { deadline: Some(fixture::t(50)), ..fixture::delivery("acme", "late", "books") };
    world.dead_with(late, EXHAUSTED);
    many(&world, "globex", 2);
    world.pass(60);
    world.ports.ledger.take_journal();
    let messages = world.ports.queue.messages().len();

    let plan = world.plan(of("acme"), Reviews::default());
    let counted: Vec<_> =
        plan.groups.iter().map(|g| (g.destination.as_str(), g.reason, g.fate, g.count)).collect();
    assert_eq!(
        counted,
        [
            ("books", EXHAUSTED, Fate::Release, 3),
            ("books", EXHAUSTED, Fate::Expire, 1),
            // Its evidence tells of no configuration, so nobody can say that it is as it was.
            ("crm", REFUSED, Fate::Release, 1),
        ]
    );
    assert!(world.ports.ledger.take_journal().is_empty() && world.ports.queue.messages().len() == messages);
    assert!(world.acts(&book("acme")).is_empty());
    let read_back = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(plan, read_back);
}

#[test]
fn what_died_after_the_plan_is_not_in_it() {
    let world = World::new();
    let before = many(&world, "acme", 2);
    world.pass(1);
    let plan = world.plan(of("acme"), Reviews::default());
    let after = world.dead("acme", "later", "books", EXHAUSTED);
    world.start(&plan, "10/s", None);
    world.run_for(300);
    assert_eq!(states(&world, &before), BTreeMap::from([(State::Succeeded, 2)]));
    assert_eq!(world.record(&after).state, State::DeadLettered);
}

#[test]
fn a_selection_means_what_it_names() {
    let world = World::new();
    many(&world, "acme", 3);
    let night = world.dead("acme", "acme:2026-08-09", "crm", REFUSED);
    world.pass(1);
    let select = |change: fn(&mut Selection)| {
        let mut selection = of("acme");
        change(&mut selection);
        let reviews = Reviews { permanent: Some("seen".to_owned()), ..Reviews::default() };
        world.plan(selection, reviews).releasable()
    };
    assert_eq!(select(|_| {}), 4);
    assert_eq!(
        select(
            |s| s.destination = Some("crm".to_owned()).map(|n| fixture::delivery("a", "b", &n).destination)
        ),
        1
    );
    assert_eq!(select(|s| s.reason = Some(REFUSED)), 1);
    assert_eq!(select(|s| s.event_prefix = Some("acme:2026-08".to_owned())), 1);
    assert_eq!(select(|s| s.since = Some(fixture::t(1))), 0);
    assert_eq!(select(|s| s.until = Some(fixture::T0)), 0);
    let named = Selection { deliveries: vec![night.delivery_id], ..of("acme") };
    assert_eq!(world.plan(named, Reviews::default()).releasable(), 1);
}

#[test]
fn a_plan_counts_what_the_recipient_may_have_applied() {
    let world = World::new();
    // Refused and never reached: known not to be applied. Silent: nobody knows.
    let rows = [
        ("refused", Reaction::answer(503)),
        ("unreached", Reaction::lost_before()),
        ("silent", Reaction::silence()),
    ];
    for (event, reaction) in rows {
        let key = publish(&world, event, json!({}));
        world.ports.recipient.react(&key.delivery_id, std::array::from_fn::<_, 3, _>(|_| reaction.clone()));
        world.run_for(3600);
        assert_eq!(world.record(&key).state, State::DeadLettered, "{event}");
    }
    let plan = world.plan(Selection::default(), Reviews::default());
    let counted: Vec<(u64, u64)> = plan.groups.iter().map(|g| (g.count, g.perhaps_applied)).collect();
    assert_eq!(counted, [(3, 1)]);
}

#[test]
fn a_plan_is_touched_by_the_holds_that_would_keep_its_deliveries_back() {
    let world = World::new();
    refused(&world, "blocked", json!({ "destination": "crm" }));
    let key = publish(&world, "e", json!({}));
    world.ports.recipient.react(&key.delivery_id, [503; 3].map(Reaction::answer));
    world.run_for(3600);
    let of_type = |text: &str, of: Option<&str>| HoldRule::Type {
        types: EventPattern::parse(text).unwrap(),
        payload_version: None,
        tenant: of.map(tenant),
    };
    let to = |name: &str| HoldRule::Destination(DestinationName::parse(name).unwrap());
    let within = |of: &str, rule| HoldRule::Within { tenant: tenant(of), rule: Box::new(rule) };
    let leases = Selection { event_type: Some(EventPattern::parse("lease.*").unwrap()), ..of("acme") };
    let plan = |selection: Selection| -> Plan {
        // Without a review what crm refused stays: nothing is released to it.
        let reviews = Reviews::default();
        let plan = world.plan(selection, reviews);
        assert_eq!(plan.releasable(), 1);
        plan
    };
    let rows = [
        ("its destination", plan(of("acme")), to("books"), true),
        ("another destination", plan(of("acme")), to("attic"), false),
        ("its tenant", plan(of("acme")), HoldRule::Tenant(tenant("acme")), true),
        ("another tenant", plan(of("acme")), HoldRule::Tenant(tenant("globex")), false),
        (
            "another tenant, of a plan across",
            plan(Selection::default()),
            HoldRule::Tenant(tenant("globex")),
            true,
        ),
        ("a type, of a plan of all types", plan(of("acme")), of_type("renewal.*", None), true),
        ("its type", plan(leases.clone()), of_type("lease.paid", None), true),
        ("another type", plan(leases.clone()), of_type("renewal.*", None), false),
        ("its type of another tenant", plan(leases.clone()), of_type("lease.*", Some("globex")), false),
        (
            "another type of another tenant, of a plan across",
            plan(Selection { tenant: None, ..leases }),
            of_type("renewal.*", Some("globex")),
            false,
        ),
        ("everything", plan(of("acme")), HoldRule::All, true),
        ("its own of its destination", plan(of("acme")), within("acme", to("books")), true),
        ("its own of another destination", plan(of("acme")), within("acme", to("attic")), false),
        ("another's of its destination", plan(of("acme")), within("globex", to("books")), false),
    ];
    for (name, plan, rule, expected) in rows {
        assert_eq!(plan.is_touched_by(&rule), expected, "{name}");
    }
}

/// A plan is a file, and may have been edited since.
#[test]
fn a_plan_that_nobody_can_have_made_starts_nothing() {
    let world = World::new();
    world.dead("acme", "e", "books", EXHAUSTED);
    world.pass(60);
    let plan = world.plan(of("acme"), Reviews::default());
    let now = world.clock.now();
    let later = now.plus(DurationMs::from_ms(1));
    let groups = |count| vec![plan.groups[0].clone(); count];
    let named = |count: usize| (0..count).map(|n| EventId::parse(format!("e{n}")).unwrap()).collect();
    let with = |change: &dyn Fn(&mut Plan)| {
        let mut edited = plan.clone();
        change(&mut edited);
        edited.check(now).map_err(|invalid| invalid.to_string())
    };
    type Edit<'a> = &'a dyn Fn(&mut Plan);
    let rows: [(&str, Edit<'_>, Option<&str>); 12] = [
        ("as it was made", &|_| {}, None),
        (
            "another prefix",
            &|plan| plan.run = OrderId::parse(ulid("hld", now, "x")).unwrap(),
            Some("run: is not the ID of a run"),
        ),
        ("made later than now", &|plan| plan.made_at = later, Some("made_at: is in the future")),
        ("without an end", &|plan| plan.selection.until = None, Some("selection.until: is missing")),
        ("ending when it was made", &|plan| plan.selection.until = Some(plan.made_at), None),
        (
            "ending later",
            &|plan| plan.selection.until = Some(later),
            Some("selection.until: is after made_at"),
        ),
        ("500 events", &|plan| plan.selection.events = named(500), None),
        ("501 events", &|plan| plan.selection.events = named(501), Some("selection.events: names 501")),
        ("500 groups", &|plan| plan.groups = groups(500), None),
        ("501 groups", &|plan| plan.groups = groups(501), Some("groups: there are 501")),
        ("a review", &|plan| plan.reviews.permanent = Some("corrected".to_owned()), None),
        (
            "an empty review",
            &|plan| plan.reviews.permanent = Some(" ".to_owned()),
            Some("reviews.permanent: "),
        ),
    ];
    for (name, edit, fault) in rows {
        match (with(edit), fault) {
            (Ok(()), None) => {}
            (Err(said), Some(fault)) if said.starts_with(fault) => {}
            (said, fault) => panic!("{name}: {said:?} and not {fault:?}"),
        }
    }
    let start = Start { rate: ReleaseRate::parse("rate", "1/s").unwrap(), sample: None, not_before: None };
    let edited = Plan { made_at: later, ..plan.clone() };
    world.block(world.desk().start(&edited, start.clone(), "maria", "mended")).unwrap_err();
    assert!(world.acts(&book("acme")).is_empty());
    let empty = Plan { groups: Vec::new(), ..plan };
    let refused = world.block(world.desk().start(&empty, start, "maria", "mended")).unwrap_err();
    assert_eq!(refused.to_string(), "the plan has no dead letters: there is nothing to start");
}
