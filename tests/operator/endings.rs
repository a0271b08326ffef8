//! Dead letters that a person ends: ordered with an audit entry, carried out as often as it takes.

use futures::FutureExt as _;
use serde_json::json;
use waybill_domain::delivery::{Record, State};
use waybill_domain::ending::Disposition;
use waybill_domain::identity::DeliveryKey;
use waybill_domain::order::{CameTo, Decision, EndingOrder, Order, OrderBody};
use waybill_domain::redrive::{Reviews, Selection};
use waybill_domain::time::DurationMs;
use waybill_service::acts::{ActError, Desk, all_open};
use waybill_service::endings::{EndingAct, carry_out};
use waybill_service::office::Office as _;
use waybill_service::ports::{Catalogue as _, Clock as _, DeadLetterFilter, Ledger as _};
use waybill_testkit::faults::{Call, Stage, Staged};
use waybill_testkit::scripted::Reaction;

use crate::publishing::{posts, publish, refused, work};
use crate::world::{REFUSED, World, book};

const BOTH: [Decision; 2] = [Decision::Close, Decision::Resolve];

/// Orders that a dead letter be ended; not carried out.
fn order(world: &World, key: &DeliveryKey, decision: Decision) -> Order {
    world
        .block(world.desk().order_ending(&world.record(key), decision, "maria", "settled by phone"))
        .unwrap();
    let open = world.block(all_open(&world.office)).unwrap();
    let ends = |order: &Order| matches!(&order.body, OrderBody::Ending(ending) if ending.delivery == *key);
    open.into_iter().find(ends).expect("it is ordered")
}

fn came_to(world: &World, order: &Order) -> Option<CameTo> {
    let stored = world.block(world.office.order(&order.book, &order.id)).unwrap().unwrap();
    match stored.body {
        OrderBody::Ending(EndingOrder { came_to, .. }) => came_to,
        other => panic!("{other:?}"),
    }
}

fn carried_out(world: &World, order: &Order) {
    world.block(carry_out(&world.ports.ledger, &world.desk(), order)).unwrap();
}

/// That the delivery stands as it was decided, by this order.
fn stands_as_decided(record: &Record, order: &Order, decision: Decision, name: &str) {
    let (state, disposition) = match decision {
        Decision::Close => (State::DeadLettered, Disposition::Closed(REFUSED)),
        Decision::Resolve => (State::Succeeded, Disposition::Resolved(REFUSED)),
    };
    assert_eq!((record.state, record.disposition), (state, Some(disposition)), "{name}");
    assert_eq!(record.ended_by.as_ref(), Some(&order.id), "{name}");
    assert_eq!(record.look_at, None, "{name}: nobody looks after it any more");
}

#[test]
fn closed_and_resolved_are_out_of_the_counts_and_nothing_is_sent() {
    for decision in BOTH {
        let world = World::new();
        let (key, other) = (refused(&world, "e", json!({})), refused(&world, "other", json!({})));
        world.pass(60);
        let order = order(&world, &key, decision);
        world.run_for(300);
        stands_as_decided(&world.record(&key), &order, decision, "ended");
        assert_eq!(came_to(&world, &order), Some(CameTo::Done));
        let entered = format!(
            "{} by maria",
            match decision {
                Decision::Close => "closed",
                Decision::Resolve => "resolved",
            }
        );
        assert_eq!(world.acts(&book("acme")), [entered]);

        let summary = world.block(world.ports.ledger.dead_letter_summary(None)).unwrap();
        assert_eq!(summary.iter().map(|group| group.count).collect::<Vec<_>>(), [1]);
        let listed = world.block(world.ports.ledger.dead_letters(&DeadLetterFilter::default(), 10, None));
        let listed: Vec<DeliveryKey> =
            listed.unwrap().items.iter().map(|record| record.delivery.key()).collect();
        assert_eq!(listed, [other]);
        let reviews = Reviews { permanent: Some("mended".to_owned()), ..Reviews::default() };
        assert_eq!(world.plan(Selection::default(), reviews).releasable(), 1);
        world.run_for(2 * 3600);
        assert_eq!(posts(&world, &key), 1, "its first attempt alone");
        assert_eq!(world.ports.queue.dead_letters().len(), 1, "its letter is swept");
    }
}

#[test]
fn an_order_whose_operator_died_at_once_is_carried_out_by_the_next_round() {
    for decision in BOTH {
        let world = World::new();
        let key = refused(&world, "e", json!({}));
        let order = order(&world, &key, decision);
        assert!(world.record(&key).dead_letter_reason().is_some(), "an order writes no delivery");
        assert_eq!(came_to(&world, &order), None);
        world.round();
        stands_as_decided(&world.record(&key), &order, decision, "after the round");
        assert_eq!(came_to(&world, &order), Some(CameTo::Done));
        assert_eq!(world.acts(&book("acme")).len(), 1);
    }
}

#[test]
fn whoever_carries_it_out_may_die_at_any_call() {
    for decision in BOTH {
        let mut was_whole = false;
        for calls in 0..20 {
            let name = format!("{decision:?}, dead after {calls} calls");
            let world = World::new();
            let key = refused(&world, "e", json!({}));
            let order = order(&world, &key, decision);
            let stage = Stage::dies_after(calls);
            let ledger = Staged::new(world.ports.ledger.clone(), &stage);
            let office = Staged::new(world.office.clone(), &stage);
            let desk = Desk { office: &office, clock: &world.clock, dice: &world.ports.dice };
            was_whole = world.block(carry_out(&ledger, &desk, &order)).is_ok();
            world.pass(60);
            world.round();
            stands_as_decided(&world.record(&key), &order, decision, &name);
            assert_eq!(came_to(&world, &order), Some(CameTo::Done), "{name}");
            assert_eq!(world.acts(&book("acme")).len(), 1, "{name}");
            assert_eq!(world.block(all_open(&world.office)).unwrap(), [], "{name}");
            if was_whole {
                break;
            }
        }
        assert!(was_whole, "it never came to its end");
    }
}

#[test]
fn who_decides_on_the_same_dead_letter_again_is_told_what_was_decided() {
    // Before it is carried out, and afterwards.
    for is_carried_out in [false, true] {
        for (first, second) in [(Decision::Close, Decision::Resolve), (Decision::Resolve, Decision::Close)] {
            let name = format!("{first:?}, carried out: {is_carried_out}");
            let world = World::new();
            let key = refused(&world, "e", json!({}));
            let standing = order(&world, &key, first);
            if is_carried_out {
                carried_out(&world, &standing);
            }
            let again = |decision| {
                world.block(world.desk().order_ending(&world.record(&key), decision, "otto", "it is settled"))
            };
            let same = again(first).unwrap();
            assert!(matches!(same, EndingAct::Already(_)), "{name}: {same:?}");
            assert_eq!(same.order().id, standing.id, "{name}");
            let other = again(second).unwrap_err().to_string();
            let said = match (is_carried_out, first) {
                (false, _) => "decided on it already, in another way",
                (true, Decision::Close) => "is closed already: only a dead letter can be ended",
                (true, Decision::Resolve) => "is succeeded: only a dead letter can be ended",
            };
            assert!(other.ends_with(said), "{name}: {other}");
            assert_eq!(world.acts(&book("acme")).len(), 1, "{name}");
        }
    }
}

/// Right before the write: the order was for a dead letter that is none any more.
#[test]
fn what_was_released_while_it_was_to_be_ended_is_not_ended_and_the_audit_says_so() {
    let world = World::new();
    let key = refused(&world, "e", json!({}));
    let order = order(&world, &key, Decision::Close);
    let (ledger, record, now) = (world.ports.ledger.clone(), world.record(&key), world.clock.now());
    let policy = world.config.destinations.values().next().unwrap().policy;
    let rules = world.config.look_rules(DurationMs::from_secs(900));
    let stage = Stage::overtaken(Call::Apply, move || {
        let release = record.release("rdr_1".to_owned(), &policy, now, now, &rules).unwrap();
        ledger.apply(&release).now_or_never().unwrap().unwrap();
    });
    let ledger = Staged::new(world.ports.ledger.clone(), &stage);
    world.block(carry_out(&ledger, &world.desk(), &order)).unwrap();
    assert_eq!(came_to(&world, &order), Some(CameTo::NoDeadLetter));
    assert_eq!(world.record(&key).state, State::Retryable);
    assert_eq!(world.acts(&book("acme")).last().unwrap(), "nothing_ended by automation");
}

#[test]
fn carried_out_twice_it_is_done_once() {
    for decision in BOTH {
        let world = World::new();
        let key = refused(&world, "e", json!({}));
        let order = order(&world, &key, decision);
        carried_out(&world, &order);
        let done = world.record(&key);
        // Another reconciler that had read the order before, and its own next round.
        world.pass(60);
        carried_out(&world, &order);
        world.round();
        assert_eq!(world.record(&key), done);
        assert_eq!(came_to(&world, &order), Some(CameTo::Done));
        assert_eq!(world.acts(&book("acme")).len(), 1);
    }
}

#[test]
fn what_is_no_dead_letter_cannot_be_ended() {
    let world = World::new();
    let pending = publish(&world, "pending", json!({}));
    let delivered = publish(&world, "delivered", json!({}));
    work(&world, 1);
    let open = publish(&world, "open", json!({}));
    for key in [pending, delivered, open] {
        let record = world.record(&key);
        for decision in BOTH {
            let error = world.block(world.desk().order_ending(&record, decision, "maria", "x")).unwrap_err();
            let ActError::Refused(sentence) = error else { panic!("{error:?}") };
            assert!(sentence.contains("only a dead letter can be ended"), "{sentence}");
        }
    }
    assert!(world.acts(&book("acme")).is_empty());
    assert_eq!(world.block(all_open(&world.office)).unwrap(), []);
}

#[test]
fn an_order_means_the_dead_letter_that_was_decided_on_and_no_later_one() {
    for decision in BOTH {
        let world = World::new();
        let key = refused(&world, "e", json!({}));
        let order = order(&world, &key, decision);
        // Before it is carried out, a run releases the delivery, and it is refused once more.
        world.ports.recipient.react(&key.delivery_id, [Reaction::answer(403)]);
        world.pass(60);
        let reviews = Reviews { permanent: Some("mended".to_owned()), ..Reviews::default() };
        let run = world.start(&world.plan(Selection::default(), reviews), "10/s", None);
        let releaser = waybill_service::redrive::release::Releaser {
            ledger: &world.ports.ledger,
            queue: &world.ports.queue,
            desk: world.desk(),
            ahead: waybill_service::redrive::release::AHEAD,
        };
        world.block(releaser.carry_out(&world.config, &run, None)).unwrap();
        let released = world.record(&key);
        assert_eq!(released.state, State::Retryable);
        work(&world, 60);
        let refused_again = world.record(&key);
        assert_eq!(refused_again.state, State::DeadLettered);

        carried_out(&world, &order);
        assert_eq!(world.record(&key), refused_again, "{decision:?}");
        assert_eq!(came_to(&world, &order), Some(CameTo::NoDeadLetter), "{decision:?}");
        // The entry of the order is not all that a reader finds.
        let acts = world.acts(&book("acme"));
        assert_eq!(acts.last().map(String::as_str), Some("nothing_ended by automation"), "{decision:?}");
    }
}

#[test]
fn an_order_on_what_was_released_meanwhile_takes_nothing_back() {
    let world = World::new();
    let key = refused(&world, "e", json!({}));
    let order = order(&world, &key, Decision::Close);
    let reviews = Reviews { permanent: Some("mended".to_owned()), ..Reviews::default() };
    let run = world.start(&world.plan(Selection::default(), reviews), "10/s", None);
    let (ledger, queue, desk) = (&world.ports.ledger, &world.ports.queue, world.desk());
    let ahead = waybill_service::redrive::release::AHEAD;
    let releaser = waybill_service::redrive::release::Releaser { ledger, queue, desk, ahead };
    world.block(releaser.carry_out(&world.config, &run, None)).unwrap();
    let released = world.record(&key);
    carried_out(&world, &order);
    assert_eq!(world.record(&key), released);
    assert_eq!(came_to(&world, &order), Some(CameTo::NoDeadLetter));
    // Carried out twice, it is entered once.
    carried_out(&world, &order);
    assert_eq!(world.acts(&book("acme")), ["closed by maria", "nothing_ended by automation"]);
    work(&world, 60);
    assert_eq!(world.record(&key).state, State::Succeeded);
}
