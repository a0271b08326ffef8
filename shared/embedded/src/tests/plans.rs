//! Every question that is asked again and again is one range of one index: whatever ended, or is
//! not due, is never read.

use rusqlite::Connection;
use waybill_domain::identity::TenantId;
use waybill_service::ports::{DeadLetterFilter, Filter};

use super::fresh;
use crate::{catalogue, dead_letter_box, inbox, ledger, office, turns};

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nulls = vec![rusqlite::types::Null; explain.parameter_count()];
    let steps = explain.query_map(rusqlite::params_from_iter(nulls), |row| row.get(3)).unwrap();
    steps.map(Result::unwrap).collect()
}

#[test]
fn costs_do_not_know_history() {
    let (_store, dir) = fresh();
    let conn = Connection::open(dir.path().join("waybill.db")).unwrap();
    let tenant = TenantId::parse("acme").unwrap();
    let place = || ("acme".to_owned(), "books".to_owned(), "gone".to_owned(), 1, "whd".to_owned());
    let dead_of_tenant = DeadLetterFilter { tenant: Some(tenant), ..DeadLetterFilter::default() };

    let cases = [
        (
            ledger::DUE.to_owned(),
            "SEARCH delivery USING COVERING INDEX delivery_by_look ((look_at,tenant,delivery_id)>(?,?,?) AND look_at<?)",
        ),
        (
            ledger::HELD.to_owned(),
            "SEARCH delivery USING COVERING INDEX delivery_by_hold \
             (destination=? AND (release_order,tenant,delivery_id)>(?,?,?))",
        ),
        (turns::OLDEST.to_owned(), "SEARCH message USING INDEX message_by_visibility (visible_at<?)"),
        (turns::NEXT_GROUP.to_owned(), "SEARCH message USING COVERING INDEX message_by_group (<expr>>?)"),
        (
            turns::OF_GROUP.to_owned(),
            "SEARCH message USING INDEX message_by_group (<expr>=? AND visible_at<?)",
        ),
        (inbox::NEXT.to_owned(), "SEARCH message USING COVERING INDEX message_by_visibility"),
        (
            catalogue::list_of_tenant(&Filter::default(), "acme", Some((1, "whd".to_owned())), 9).sql,
            "SEARCH delivery USING INDEX delivery_by_time (tenant=? AND (first_queued_at,delivery_id)<(?,?))",
        ),
        (
            catalogue::summary(dead_of_tenant.tenant.as_ref()).sql,
            "SEARCH delivery USING COVERING INDEX delivery_by_reason (tenant=?)",
        ),
        (
            catalogue::oldest_of_next_group(),
            "SEARCH delivery USING COVERING INDEX delivery_by_reason ((tenant,destination,reason)>(?,?,?))",
        ),
        (
            catalogue::dead_letters(&dead_of_tenant, Some(place()), 9).sql,
            "SEARCH delivery USING INDEX delivery_by_reason \
             (tenant=? AND (destination,reason,ended_at,delivery_id)>(?,?,?,?))",
        ),
        (office::OPEN.to_owned(), "SEARCH orders USING INDEX orders_open ((digits,book,order_id)>(?,?,?))"),
        (office::OF_BOOK.to_owned(), "SEARCH orders USING INDEX orders_by_time (book=? AND digits<?)"),
        (office::ENTRIES.to_owned(), "SEARCH audit USING PRIMARY KEY (book=? AND seq>?)"),
        (
            dead_letter_box::VISIBLE.to_owned(),
            "SEARCH dead_message USING INDEX dead_message_by_visibility (hidden_until<?)",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(plan(&conn, &sql), [expected], "{sql}");
    }
}

/// From name to name: one range for each destination, however much of it is held.
#[test]
fn the_destinations_with_something_held_cost_one_search_each() {
    let (_store, dir) = fresh();
    let conn = Connection::open(dir.path().join("waybill.db")).unwrap();
    let steps = plan(&conn, ledger::HELD_DESTINATIONS);
    let of_delivery: Vec<&String> = steps.iter().filter(|step| step.contains("delivery")).collect();
    assert!(
        !of_delivery.is_empty()
            && of_delivery
                .iter()
                .all(|step| step.starts_with("SEARCH delivery USING COVERING INDEX delivery_by_hold")),
        "{steps:?}"
    );
}
