//! Orders: how they are called, how they change, and what they mean for deliveries.

use std::collections::BTreeMap;

use waybill_domain::authority::Book;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::TenantId;
use waybill_domain::order::{CameTo, Decision, EndingOrder, Hold, Order, OrderBody, OrderChange, OrderId};
use waybill_domain::redrive::{Lane, Run, Standing};

use crate::build::{T0, at, delivery};
use crate::runs::{run, signed, to};

const DIGITS: &str = "01JD000000000000000000000A";

fn id(prefix: &str) -> OrderId {
    OrderId::parse(format!("{prefix}_{DIGITS}")).unwrap()
}

#[test]
fn an_order_s_id_is_its_kind_and_a_ulid() {
    for prefix in ["hld", "rdr", "end"] {
        let (text, read) = (format!("{prefix}_{DIGITS}"), id(prefix));
        assert_eq!((read.as_str(), format!("{read:>31}")), (&*text, format!(" {text}")));
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written, *text);
        assert_eq!(serde_json::from_value::<OrderId>(written).unwrap(), read);
    }
    let rows = [
        "".to_owned(),
        DIGITS.to_owned(),
        format!("aud_{DIGITS}"),
        format!("hld_{DIGITS}0"),
        format!("hld_{}", &DIGITS[1..]),
        format!("hld_{}", DIGITS.to_lowercase()),
        format!("hld_{}-", &DIGITS[1..]),
    ];
    for text in rows {
        assert_eq!(OrderId::parse(text.clone()).unwrap_err().field, "order", "{text}");
        assert!(serde_json::from_value::<OrderId>(text.clone().into()).is_err(), "{text}");
    }
}

fn hold(rule: HoldRule, is_lifted: bool) -> OrderBody {
    let lifted = is_lifted.then(|| signed(at(1)));
    OrderBody::Hold(Hold { rule, placed: signed(T0), eased: None, lifted })
}

fn redrive(standing: Standing) -> OrderBody {
    OrderBody::Redrive(Box::new(Run { standing, ..run() }))
}

fn ending(came_to: Option<CameTo>) -> OrderBody {
    let delivery = delivery(None).key();
    OrderBody::Ending(EndingOrder {
        delivery,
        ended_at: T0,
        decision: Decision::Close,
        signed: signed(T0),
        came_to,
    })
}

#[test]
fn an_order_is_open_while_something_is_to_be_done_or_kept_in_force_and_holds_by_its_rule() {
    let (acme, id) = (TenantId::parse("acme").unwrap(), id("rdr"));
    let of_run = || Some(HoldRule::Run { run: id.to_string(), tenant: Some(acme.clone()) });
    let suspended = || HoldRule::Suspended(to("books"));
    // What it is; whether it is open, and what it keeps back.
    let table = [
        ("a hold", hold(HoldRule::All, false), true, Some(HoldRule::All)),
        ("a hold that was lifted", hold(HoldRule::All, true), false, None),
        ("a suspension, which is kept elsewhere", hold(suspended(), false), true, None),
        ("a run", redrive(Standing::Running), true, None),
        ("a run that was stopped", redrive(Standing::Stopped(signed(T0))), true, of_run()),
        ("a run that halted", redrive(Standing::Halted(signed(T0))), true, of_run()),
        ("a run after its sample", redrive(Standing::Sampled(T0)), true, None),
        ("a run that is over", redrive(Standing::Finished(T0)), false, None),
        ("a decision", ending(None), true, None),
        ("a decision that was carried out", ending(Some(CameTo::Done)), false, None),
        ("a decision that came too late", ending(Some(CameTo::NoDeadLetter)), false, None),
    ];
    for (what, body, is_open, rule) in table {
        let order = Order::place(id.clone(), Book::Tenant(acme.clone()), body).after;
        assert_eq!((order.is_open(), order.hold_rule(), order.eased_to()), (is_open, rule, None), "{what}");
    }
}

#[test]
fn every_change_of_an_order_expects_the_revision_before_it() {
    let placed = Order::place(id("hld"), Book::Across, hold(HoldRule::All, false));
    assert_eq!((placed.expected, placed.after.revision), (None, 1));
    let OrderChange { expected, after } = placed.after.becoming(hold(HoldRule::All, true));
    assert_eq!((expected, after.revision), (Some(1), 2));
    assert_eq!((&after.id, &after.book, after.is_open()), (&id("hld"), &Book::Across, false));
    let again = after.becoming(hold(HoldRule::All, false));
    assert_eq!((again.expected, again.after.revision), (Some(2), 3));
}

#[test]
fn whoever_lifts_hears_of_a_run_that_goes_on_after_a_stop() {
    let lanes = BTreeMap::from([(to("books"), Lane { next_at: Some(at(1)), ..Lane::default() })]);
    let mut going_on = Run { standing: Standing::Stopped(signed(T0)), lanes, ..run() };
    going_on.resume(at(60));
    let stopped_again = Run { standing: Standing::Stopped(signed(at(90))), ..going_on.clone() };
    let order = |run: Run| Order::place(id("rdr"), Book::Across, OrderBody::Redrive(Box::new(run))).after;
    let table = [
        ("never stopped", order(run()), false),
        ("goes on", order(going_on), true),
        ("stopped again: it holds", order(stopped_again), false),
        ("no run", Order::place(id("hld"), Book::Across, hold(HoldRule::All, true)).after, false),
    ];
    for (what, order, goes_on) in table {
        assert_eq!(order.resumed().is_some(), goes_on, "{what}");
    }
}
