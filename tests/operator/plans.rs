//! What a plan tells beside its counts: what may have been applied, and what a hold would keep back.

use serde_json::json;
use waybill_domain::delivery::State;
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::DestinationName;
use waybill_domain::redrive::{Reviews, Selection};
use waybill_service::redrive::plan::Plan;
use waybill_testkit::scripted::Reaction;

use crate::publishing::{publish, refused};
use crate::world::{World, of, tenant};

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
        ("its type of another tenant", plan(leases), of_type("lease.*", Some("globex")), false),
        ("everything", plan(of("acme")), HoldRule::All, true),
    ];
    for (name, plan, rule, expected) in rows {
        assert_eq!(plan.is_touched_by(&rule), expected, "{name}");
    }
}
