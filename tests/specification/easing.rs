//! An eased hold: of which destinations it lets go, what it goes on to keep, and what an older reader makes of it.

use serde_json::{Value, json};
use waybill_domain::authority::Book;
use waybill_domain::budget::{Budget, Rate};
use waybill_domain::destination::EventPattern;
use waybill_domain::hold::{HoldRule, Share};
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::order::{Eased, Hold, Order, OrderBody, OrderId, Signed};

use crate::build::T0;

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn to(name: &str) -> DestinationName {
    DestinationName::parse(name).unwrap()
}

fn within(name: &str, rule: HoldRule) -> HoldRule {
    HoldRule::Within { tenant: tenant(name), rule: Box::new(rule) }
}

fn types(of: Option<&str>) -> HoldRule {
    let types = EventPattern::parse("*").unwrap();
    HoldRule::Type { types, payload_version: None, tenant: of.map(tenant) }
}

fn elsewhere(rule: HoldRule, than: &str) -> HoldRule {
    HoldRule::Elsewhere { rule: Box::new(rule), than: vec![to(than)] }
}

fn run() -> HoldRule {
    HoldRule::Run { run: "rdr_1".to_owned(), tenant: None }
}

#[test]
fn a_rule_keeps_back_a_destination_as_a_whole_where_nothing_of_others_goes_there() {
    use Share::{Nothing, Part, Whole};
    let books = || HoldRule::Destination(to("books"));
    // The rule; what it keeps back of `books` where that serves acme alone, and acme and globex.
    let table = [
        (books(), Whole, Whole),
        (HoldRule::Destination(to("crm")), Nothing, Nothing),
        (HoldRule::Suspended(to("books")), Whole, Whole),
        (HoldRule::All, Whole, Whole),
        (HoldRule::Tenant(tenant("acme")), Whole, Part),
        (HoldRule::Tenant(tenant("globex")), Nothing, Part),
        (HoldRule::Tenant(tenant("northwind")), Nothing, Nothing),
        (within("acme", books()), Whole, Part),
        (within("acme", HoldRule::Destination(to("crm"))), Nothing, Nothing),
        (within("acme", HoldRule::All), Whole, Part),
        (within("globex", HoldRule::All), Nothing, Part),
        (within("acme", HoldRule::Tenant(tenant("globex"))), Nothing, Part),
        // Whatever the pattern, it is about what is published, and not about where it goes.
        (types(None), Part, Part),
        (types(Some("acme")), Part, Part),
        (types(Some("globex")), Nothing, Part),
        (run(), Part, Part),
        (elsewhere(HoldRule::All, "crm"), Whole, Whole),
        (elsewhere(HoldRule::All, "books"), Nothing, Nothing),
        (elsewhere(HoldRule::Tenant(tenant("acme")), "crm"), Whole, Part),
    ];
    for (rule, alone, shared) in table {
        assert_eq!(rule.share_of(&to("books"), &[tenant("acme")]), alone, "{rule:?}, alone");
        let both = [tenant("acme"), tenant("globex")];
        assert_eq!(rule.share_of(&to("books"), &both), shared, "{rule:?}, shared");
    }
}

#[test]
fn a_rule_at_a_destination_keeps_back_no_less_than_its_part_of_it() {
    let books = || HoldRule::Destination(to("books"));
    let table = [
        (HoldRule::All, books()),
        (books(), books()),
        (HoldRule::Tenant(tenant("acme")), within("acme", books())),
        (within("acme", HoldRule::All), within("acme", books())),
        // There is no rule for less than this.
        (types(None), types(None)),
        (run(), run()),
    ];
    for (rule, expected) in table {
        assert_eq!(rule.at(&to("books")), expected, "{rule:?}");
    }
}

#[test]
fn an_eased_destination_gets_the_less_of_its_own_budget_and_the_limit() {
    let rate = Rate::parse("rate", "20/s").ok();
    // Its own concurrency and rate, the limit, and what counts.
    let table = [
        (None, None, 2, (2, None)),
        (Some(8), None, 2, (2, None)),
        (Some(1), None, 2, (1, None)),
        (Some(8), rate, 2, (2, rate)),
        // A rate brings sixteen slots.
        (None, rate, 2, (2, rate)),
        (None, rate, 100, (16, rate)),
        (None, None, 0, (1, None)),
    ];
    for (own, rate, limit, (concurrency, expected)) in table {
        let eased = Budget::at_most(Budget::of(own, rate), limit);
        assert_eq!((eased.concurrency, eased.rate), (concurrency, expected), "{own:?} {rate:?} at {limit}");
    }
}

fn signed(why: &str) -> Signed {
    Signed { by: "maria".to_owned(), at: T0, why: why.to_owned() }
}

fn order(eased: Option<Eased>, lifted: Option<Signed>) -> Order {
    let hold = Hold { rule: HoldRule::All, placed: signed("rollback"), eased, lifted };
    let id = OrderId::parse("hld_00000000000000000000000001").unwrap();
    Order::place(id, Book::Across, OrderBody::Hold(hold)).after
}

/// What `Hold` was before holds could be eased, as a version that knows nothing of it reads orders.
#[derive(serde::Deserialize)]
struct OlderHold {
    rule: HoldRule,
    lifted: Option<Signed>,
}

#[test]
fn an_older_version_reads_an_eased_hold_as_one_that_holds() {
    let eased = Some(Eased { concurrency: 2, signed: signed("a few first") });
    let written = serde_json::to_value(order(eased, None)).unwrap();
    let older: OlderHold = serde_json::from_value(written["body"]["hold"].clone()).unwrap();
    assert_eq!((older.rule, older.lifted), (HoldRule::All, None));
    // Nor is a hold written otherwise than before that is not eased, and what was written before is read.
    let plain = serde_json::to_value(order(None, None)).unwrap();
    let fields: Vec<&String> = plain["body"]["hold"].as_object().unwrap().keys().collect();
    assert!(!fields.contains(&&"eased".to_owned()), "{fields:?}");
    assert_eq!(serde_json::from_value::<Order>(plain).unwrap(), order(None, None));
}

#[test]
fn an_eased_hold_is_open_and_means_its_rule_until_it_is_lifted() {
    let eased = |n| Some(Eased { concurrency: n, signed: signed("a few first") });
    let lifted = || Some(signed("all is well"));
    let table = [
        ("in force", order(None, None), true, Some(HoldRule::All), None),
        ("eased", order(eased(2), None), true, Some(HoldRule::All), Some(2)),
        ("eased and lifted", order(eased(2), lifted()), false, None, Some(2)),
        ("lifted", order(None, lifted()), false, None, None),
    ];
    for (what, order, is_open, rule, eased_to) in table {
        assert_eq!(
            (order.is_open(), order.hold_rule(), order.eased_to()),
            (is_open, rule, eased_to),
            "{what}"
        );
        let read: Value = json!(order);
        assert_eq!(serde_json::from_value::<Order>(read).unwrap(), order, "{what}");
    }
}
