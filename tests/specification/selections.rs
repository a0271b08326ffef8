//! Which dead letters a redrive means: every field narrows, and what is left out matches everything.

use waybill_domain::authority::Book;
use waybill_domain::delivery::Record;
use waybill_domain::destination::EventPattern;
use waybill_domain::ending::{DeadLetterReason, Ending};
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::order::{Decision, OrderId};
use waybill_domain::redrive::Selection;
use waybill_domain::time::DurationMs;

use crate::build::{at, by, delivery, look, pending};

const EXHAUSTED: DeadLetterReason = DeadLetterReason::AttemptsExhausted;

/// Of acme, to acme-accounting, evt_pay_7319 of the type lease.payment_recorded; dead ten seconds after T0.
fn dead() -> Record {
    pending(None).end(&by("m1", "t1", at(10)), Ending::DeadLettered(EXHAUSTED), &look()).unwrap().into_after()
}

#[test]
fn each_field_narrows_a_selection() {
    let ms = DurationMs::from_ms(1);
    let tenant = |name| Some(TenantId::parse(name).unwrap());
    let destination = |name| Some(DestinationName::parse(name).unwrap());
    let types = |text| Some(EventPattern::parse(text).unwrap());
    let event = |text| EventId::parse(text).unwrap();
    let other = DeliveryId::parse("whd_00000000000000000000000000").unwrap();
    let any = Selection::default;
    let table: Vec<(&str, Selection, bool)> = vec![
        ("any", any(), true),
        ("its tenant", Selection { tenant: tenant("acme"), ..any() }, true),
        ("another tenant", Selection { tenant: tenant("globex"), ..any() }, false),
        ("its destination", Selection { destination: destination("acme-accounting"), ..any() }, true),
        ("another destination", Selection { destination: destination("books"), ..any() }, false),
        ("its reason", Selection { reason: Some(EXHAUSTED), ..any() }, true),
        ("another reason", Selection { reason: Some(DeadLetterReason::HorizonReached), ..any() }, false),
        ("its type", Selection { event_type: types("lease.*"), ..any() }, true),
        ("another type", Selection { event_type: types("renewal.*"), ..any() }, false),
        ("since its end", Selection { since: Some(at(10)), ..any() }, true),
        ("since after its end", Selection { since: Some(at(10).plus(ms)), ..any() }, false),
        ("until after its end", Selection { until: Some(at(10).plus(ms)), ..any() }, true),
        ("until its end", Selection { until: Some(at(10)), ..any() }, false),
        ("by its ID", Selection { deliveries: vec![other.clone(), delivery(None).id], ..any() }, true),
        ("by another's ID", Selection { deliveries: vec![other], ..any() }, false),
        ("by its event", Selection { events: vec![event("evt_pay_7319")], ..any() }, true),
        ("by another event", Selection { events: vec![event("evt_pay_731")], ..any() }, false),
        ("as its event begins", Selection { event_prefix: Some("evt_pay_".to_owned()), ..any() }, true),
        ("as another begins", Selection { event_prefix: Some("pay_".to_owned()), ..any() }, false),
        (
            "all but one field match",
            Selection { tenant: tenant("acme"), event_prefix: Some("pay_".to_owned()), ..any() },
            false,
        ),
    ];
    for (what, selection, means) in table {
        assert_eq!(selection.matches(&dead()), means, "{what}");
    }
}

#[test]
fn only_a_dead_letter_is_selected() {
    let closed = dead().end_by_order(
        OrderId::parse("end_00000000000000000000000001").unwrap(),
        Decision::Close,
        at(20),
    );
    let expired = pending(Some(at(1))).end(&by("m1", "t1", at(1)), Ending::Expired, &look());
    for record in [pending(None), closed.unwrap().into_after(), expired.unwrap().into_after()] {
        assert!(!Selection::default().matches(&record), "{:?}", record.disposition);
    }
}

#[test]
fn a_selection_is_its_tenant_s_matter_or_one_across_tenants() {
    let acme = TenantId::parse("acme").unwrap();
    let of_acme = Selection { tenant: Some(acme.clone()), ..Selection::default() };
    assert_eq!((of_acme.book(), Selection::default().book()), (Book::Tenant(acme), Book::Across));
}
