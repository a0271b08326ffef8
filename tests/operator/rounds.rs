//! What a round carries out, and in which share of its time; and what orders it does not believe.

use std::collections::BTreeMap;

use serde_json::json;
use waybill_domain::address::Locality;
use waybill_domain::audit::{Act, Draft};
use waybill_domain::delivery::State;
use waybill_domain::hold::{HoldRule, keeps_all, matching};
use waybill_domain::identity::DestinationName;
use waybill_domain::order::{Decision, EndingOrder, Hold, Order, OrderBody};
use waybill_domain::redrive::Reviews;
use waybill_domain::time::DurationMs;
use waybill_service::config_file::{self, Rules};
use waybill_service::office::Office as _;
use waybill_service::ports::{Clock as _, Ports};
use waybill_service::reconcile::TickLimits;
use waybill_service::round::Round;
use waybill_service::schedule::Learned;
use waybill_service::source::ConfigSource;
use waybill_testkit::faults::{Stage, Staged};
use waybill_testkit::memory::MemoryOffice;

use crate::logged::{logged, messages};
use crate::publishing::{publish, refused};
use crate::redrive::{many, states};
use crate::world::{EXHAUSTED, World, book, of, tenant};

#[test]
fn a_long_run_leaves_the_others_their_share_of_the_time() {
    let world = World::new();
    let (long, short) = (many(&world, "acme", 400), many(&world, "globex", 30));
    world.pass(1);
    let first = world.start(&world.plan(of("acme"), Reviews::default()), "1000/s", None);
    // The oldest has its turn first.
    world.pass(1);
    let second = world.start(&world.plan(of("globex"), Reviews::default()), "1000/s", None);
    // Each has seen as many outcomes as it waits for, and the rest is before it.
    world.round();
    world.work_until(world.clock.now().plus(DurationMs::from_secs(30)));
    assert_eq!([&first, &second].map(|run| world.run_of(run).tally.released), [20, 20]);

    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let stage = Stage::slow(clock, DurationMs::from_ms(50));
    let (ledger, queue) = (Staged::new(ledger.clone(), &stage), Staged::new(queue.clone(), &stage));
    let office = Staged::new(world.office.clone(), &stage);
    let round = Round { ledger: &ledger, queue: &queue, office: &office, clock, dice };
    let until = clock.now().plus(DurationMs::from_secs(20));
    let limits = TickLimits { until: Some(until), ..TickLimits::default() };
    world.block(round.orders(&world.config_now(), limits)).unwrap();
    assert_eq!(world.run_of(&second).tally.released, 30, "the short one is through");
    assert!(world.run_of(&first).tally.released < 400, "although the long one is not");
    world.run_for(300);
    for keys in [long, short] {
        assert_eq!(states(&world, &keys), BTreeMap::from([(State::Succeeded, keys.len())]));
    }
}

#[test]
fn the_last_run_has_all_the_time_that_the_others_left() {
    let world = World::new();
    let (short, long) = (many(&world, "globex", 1), many(&world, "acme", 400));
    world.pass(1);
    world.start(&world.plan(of("globex"), Reviews::default()), "1000/s", None);
    world.pass(1);
    let last = world.start(&world.plan(of("acme"), Reviews::default()), "1000/s", None);
    world.round();
    world.work_until(world.clock.now().plus(DurationMs::from_secs(30)));
    assert_eq!(states(&world, &short), BTreeMap::from([(State::Succeeded, 1)]));

    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let stage = Stage::slow(clock, DurationMs::from_ms(50));
    let (ledger, queue) = (Staged::new(ledger.clone(), &stage), Staged::new(queue.clone(), &stage));
    let round = Round { ledger: &ledger, queue: &queue, office: &world.office, clock, dice };
    let until = clock.now().plus(DurationMs::from_secs(20));
    let limits = TickLimits { until: Some(until), ..TickLimits::default() };
    world.block(round.orders(&world.config_now(), limits)).unwrap();
    assert!(world.run_of(&last).tally.released < long.len() as u64, "it has more to do");
    assert!(clock.now() >= until, "and stopped before its time was up");
}

#[test]
fn schedules_have_half_of_a_rounds_time_and_what_is_due_has_the_rest() {
    let mut world = World::new();
    world.config = config_file::parse(crate::schedules::CONFIG, Locality::PublicOnly).unwrap();
    world.config.applied_at = Some(world.clock.now());
    // Four nights are owed, and a delivery whose wake-up was lost is due for a look.
    world.pass(4 * 86_400);
    let key = publish(&world, "due", json!({}));
    world.ports.queue.purge();
    world.pass(600);

    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let stage = Stage::slow(clock, DurationMs::from_secs(1));
    let (ledger, queue) = (Staged::new(ledger.clone(), &stage), Staged::new(queue.clone(), &stage));
    let round = Round { ledger: &ledger, queue: &queue, office: &world.office, clock, dice };
    let until = Some(clock.now().plus(DurationMs::from_secs(16)));
    let limits = TickLimits { until, ..TickLimits::default() };
    let report = world.block(round.run(&world.config, &Learned::default(), limits)).unwrap();
    // Four questions, and then a delivery is recorded and woken: two seconds each.
    assert_eq!((report.windows.published, report.windows.more), (2, true));
    assert_eq!((report.looked.woken, world.record(&key).looks), (1, 1));
}

/// Writes an order into acme's book as one may write who can write its items.
fn enter(world: &World, prefix: &str, body: OrderBody) -> Order {
    let change = Order::place(world.desk().new_id(prefix).unwrap(), book("acme"), body);
    let draft = Draft {
        book: book("acme"),
        at: world.clock.now(),
        who: "mallory".to_owned(),
        act: Act::HoldAdded,
        subject: change.after.id.to_string(),
        why: Some("because I can".to_owned()),
        details: json!({}),
    };
    assert!(world.block(world.desk().enter(draft, Some(&change))).unwrap());
    change.after
}

const NOT_BELIEVED: &str = "an order beyond its book is not carried out";

#[test]
fn an_order_that_cannot_be_carried_out_is_said_and_an_act_has_its_line() {
    let world = World::new();
    for event in ["e1", "e2"] {
        let key = refused(&world, event, json!({}));
        let act =
            || world.block(world.desk().order_ending(&world.record(&key), Decision::Close, "maria", "done"));
        let (act, lines) = logged(act);
        act.unwrap();
        assert_eq!((messages(&lines), &lines[0]["who"]), (vec!["act".to_owned()], &json!("maria")));
    }
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let ledger = Staged::new(ledger.clone(), &Stage::dies_after(0));
    let round = Round { ledger: &ledger, queue, office: &world.office, clock, dice };
    let (done, lines) = logged(|| world.block(round.orders(&world.config, TickLimits::default())));
    done.unwrap();
    assert_eq!(messages(&lines), ["not carried out", "not carried out"]);
}

#[test]
fn an_order_beyond_its_book_keeps_nothing_back_and_releases_and_ends_nothing() {
    let world = World::new();
    let signed = world.desk().sign("mallory", "because I can");
    let rules = [
        HoldRule::All,
        HoldRule::Tenant(tenant("globex")),
        // It serves others, too.
        HoldRule::Destination(DestinationName::parse("books").unwrap()),
    ];
    for rule in rules {
        let hold = Hold { rule, placed: signed.clone(), eased: None, lifted: None };
        enter(&world, "hld", OrderBody::Hold(hold));
    }
    // acme's own does.
    let own = HoldRule::Destination(DestinationName::parse("crm").unwrap());
    enter(
        &world,
        "hld",
        OrderBody::Hold(Hold { rule: own.clone(), placed: signed.clone(), eased: None, lifted: None }),
    );

    let foreign = world.dead("globex", "evt", "books", EXHAUSTED);
    world.pass(1);
    let run = world.start(&world.plan(of("globex"), Reviews::default()), "10/s", None);
    let stored = world.block(world.office.order(&run.book, &run.id)).unwrap().unwrap();
    let twin = enter(&world, "rdr", stored.body);
    world.stop(&run, "only the other is left");
    let ending = EndingOrder {
        delivery: foreign.clone(),
        ended_at: world.record(&foreign).ended_at.unwrap(),
        decision: Decision::Close,
        signed,
        came_to: None,
    };
    enter(&world, "end", OrderBody::Ending(ending));

    let before = world.record(&foreign);
    let Ports { ledger, queue, clock, dice, .. } = &world.ports;
    let round = Round { ledger, queue, office: &world.office, clock, dice };
    let (done, lines) = logged(|| world.block(round.orders(&world.config, TickLimits::default())));
    done.unwrap();
    let refused = messages(&lines).iter().filter(|said| *said == NOT_BELIEVED).count();
    // The order to end it, and the twin run: a round reads what is open before endings, and before runs.
    assert_eq!((refused, lines.len()), (4, 4), "{lines:?}");
    assert_eq!(world.record(&foreign), before);
    assert_eq!(world.run_of(&twin).tally.released, 0);
    let (in_force, before) = (holds_in_force(&world), world.record(&foreign));
    assert!(in_force.contains(&own));
    let for_acme_alone = |rule: &HoldRule| *rule == own || matches!(rule, HoldRule::Within { .. });
    assert!(in_force.iter().all(for_acme_alone), "{in_force:?}");
    assert_eq!(matching(&in_force, &before), None, "nothing of globex's is kept back");
    let books = DestinationName::parse("books").unwrap();
    assert!(!keeps_all(&in_force, &books));
}

/// As a process of its own reads them.
fn holds_in_force(world: &World) -> Vec<HoldRule> {
    let office: MemoryOffice = world.office.clone();
    let rules = Rules::from(Locality::PublicOnly);
    world.block(world.desk().apply(crate::world::CONFIG, rules, "maria", "first of all")).unwrap();
    let source = ConfigSource::new(office, rules, world.clock.clone(), DurationMs::from_secs(1));
    let rule_of_run = |rule: &HoldRule| matches!(rule, HoldRule::Run { .. });
    let mut holds = world.block(source.current()).unwrap().holds.clone();
    holds.retain(|rule| !rule_of_run(rule));
    holds
}

#[test]
fn what_is_refused_for_its_credentials_is_ended_only_by_its_own_tenants_order() {
    let world = World::new();
    let key = refused(&world, "own", json!({}));
    let ending = EndingOrder {
        delivery: key.clone(),
        ended_at: world.record(&key).ended_at.unwrap(),
        decision: Decision::Close,
        signed: world.desk().sign("maria", "done with"),
        came_to: None,
    };
    enter(&world, "end", OrderBody::Ending(ending));
    world.round();
    assert!(world.record(&key).dead_letter_reason().is_none(), "what is within its book is carried out");
}
