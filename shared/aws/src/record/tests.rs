use std::collections::BTreeSet;

use waybill_domain::delivery::Change;
use waybill_domain::identity::ConfigRevision;
use waybill_domain::policy::Policy;
use waybill_testkit::conformance::fixture::{self, LOOK, T0, t};

use super::*;

const RETAIN: DurationMs = DurationMs::from_secs(90 * 86_400);

#[test]
fn no_short_name_means_two_things_or_is_a_name_itself() {
    let names: BTreeSet<&str> = SHORT.iter().flat_map(|(long, short)| [*long, *short]).collect();
    assert_eq!(names.len(), 2 * SHORT.len());
}

/// A delivery as the lease example has it.
fn ordinary() -> Record {
    let mut delivery = fixture::delivery("acme", "lease_881:pay_7319", "acme-accounting");
    delivery.deadline = Some(t(86_400));
    Record::new(delivery, &Policy::default(), revision(), &LOOK)
}

fn revision() -> ConfigRevision {
    ConfigRevision::parse("file-0123456789ab").unwrap()
}

fn claim(record: &Record) -> Change {
    let message = fixture::message("059f36b4-87a3-44ab-83d2-661975830a7d");
    let token = fixture::token("0123456789ABCDEFGHJKMNPQRS");
    record.claim(message, token, t(1), DurationMs::from_secs(15), revision()).unwrap()
}

/// What DynamoDB bills an item by: its names and its values.
fn size(item: &Item) -> usize {
    let bytes = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len() / 2 + 2,
        other => panic!("{other:?} is no attribute of a record"),
    };
    item.iter().map(|(name, value)| name.len() + bytes(value)).sum()
}

#[test]
fn an_ordinary_record_costs_one_write_unit_up_to_its_success_and_two_after_a_failure() {
    let payload = "table:0123456789abcdef0123456789abcdef";
    let pending = ordinary();
    let claimed = claim(&pending).into_after();
    let failed = fixture::failed(&claimed, "0123456789ABCDEFGHJKMNPQRS", t(2), &fixture::retry(t(3)));
    let claimed_again = claim(failed.after()).into_after();
    let delivered = claimed.settle_delivered(&fixture::writer("0123456789ABCDEFGHJKMNPQRS", t(2)), None);
    let delivered = delivered.unwrap().into_after();
    let lives = [
        ("pending", &pending, 1024),
        ("claimed", &claimed, 1024),
        ("delivered", &delivered, 1024),
        ("failed", failed.after(), 2048),
        ("claimed again", &claimed_again, 2048),
    ];
    for (name, record, most) in lives {
        let item = new_item(record, payload.to_owned(), RETAIN).unwrap();
        assert!(size(&item) <= most, "{name}: {} bytes: {}", size(&item), write(record).unwrap());
        assert_eq!(&read(&item).unwrap(), record, "{name}");
    }
}

/// The text of an item as a newer version wrote it, changed by this one.
#[test]
fn what_a_newer_version_added_stays_in_the_item() {
    let mut item = new_item(&ordinary(), "table:0".to_owned(), RETAIN).unwrap();
    let text = write(&ordinary()).unwrap().replacen("\"d\":{", "\"zz\":[1],\"d\":{\"yy\":\"kept\",", 1);
    item.insert(TEXT.to_owned(), AttributeValue::S(text.clone()));
    let changed = write(claim(&read(&item).unwrap()).after()).unwrap();
    for added in ["\"zz\":[1]", "\"yy\":\"kept\""] {
        assert!(text.contains(added) && changed.contains(added), "{added}: {changed}");
    }
}

#[test]
fn a_claim_moves_no_index_and_success_leaves_the_open_one() {
    let pending = ordinary();
    let claimed = claim(&pending).into_after();
    assert_eq!(places(&claimed), places(&pending));
    let update = Update::to(&claimed, RETAIN).unwrap();
    assert_eq!(
        update.values[":look_order"],
        new_item(&pending, String::new(), RETAIN).unwrap()["look_order"]
    );

    let delivered = claimed
        .settle_delivered(&fixture::writer("0123456789ABCDEFGHJKMNPQRS", t(2)), None)
        .unwrap()
        .into_after();
    let [(_, open), ..] = places(&delivered);
    assert_eq!(open, None);
    assert!(Update::to(&delivered, RETAIN).unwrap().expression.contains("REMOVE #open_shard, #look_order"));
}

#[test]
fn c99_what_dynamodb_deletes_by_is_in_seconds_and_only_of_what_ended() {
    let pending = ordinary();
    assert_eq!(expires_at(&pending, RETAIN), None);
    let claimed = claim(&pending).into_after();
    let delivered = claimed
        .settle_delivered(&fixture::writer("0123456789ABCDEFGHJKMNPQRS", t(2)), None)
        .unwrap()
        .into_after();
    let at = T0.as_unix_s() + 2 + 90 * 86_400;
    assert_eq!(expires_at(&delivered, RETAIN), Some(AttributeValue::N(at.to_string())));
    assert!(at < 100_000_000_000, "seconds, not milliseconds");
}
