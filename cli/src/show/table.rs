//! Listings as tables: columns, no frames, so that they can be read, cut and compared.

use comfy_table::{Table, presets};
use waybill_domain::delivery::Record;
use waybill_domain::ending::Disposition;
use waybill_domain::time::TimeMs;
use waybill_service::ports::DeadLetterGroup;
use waybill_service::sweep::UnknownCopy;

use super::escape::escaped;

/// Deliveries, one row each: what fits on a line of a terminal. JSON has the times and the rest.
pub(crate) fn of_records(records: &[Record], now: TimeMs) -> String {
    let header = ["DELIVERY", "STATE", "TENANT", "DESTINATION", "EVENT", "AGE", "ATTEMPTS", "LAST FAILURE"];
    let rows = records.iter().map(|record| {
        let delivery = &record.delivery;
        [
            delivery.id.to_string(),
            state(record),
            delivery.tenant.to_string(),
            delivery.destination.to_string(),
            escaped(delivery.event_id.as_str()),
            now.since(delivery.first_queued_at).to_string(),
            format!("{}/{}", record.attempts_made, record.attempt_limit),
            last_failure(record),
        ]
    });
    table(header, rows)
}

/// Dead letters, counted.
pub(crate) fn of_groups(groups: &[DeadLetterGroup]) -> String {
    let header = ["TENANT", "DESTINATION", "REASON", "COUNT", "OLDEST", "NEAREST DEADLINE"];
    let rows = groups.iter().map(|group| {
        [
            group.tenant.to_string(),
            group.destination.to_string(),
            group.reason.to_string(),
            group.count.to_string(),
            group.oldest_ended_at.to_string(),
            group.nearest_deadline.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        ]
    });
    table(header, rows)
}

/// Dead letters, one row each.
pub(crate) fn of_dead_letters(records: &[Record], _now: TimeMs) -> String {
    let header = ["DELIVERY", "TENANT", "DESTINATION", "REASON", "EVENT", "ENDED", "ATTEMPTS", "DEADLINE"];
    let rows = records.iter().map(|record| {
        let delivery = &record.delivery;
        [
            delivery.id.to_string(),
            delivery.tenant.to_string(),
            delivery.destination.to_string(),
            record.dead_letter_reason().map_or_else(|| "-".to_owned(), |reason| reason.to_string()),
            escaped(delivery.event_id.as_str()),
            record.ended_at.map_or_else(|| "-".to_owned(), |at| at.to_string()),
            record.attempts_made.to_string(),
            delivery.deadline.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        ]
    });
    table(header, rows)
}

/// Copies in the DLQ that nobody knows, one row each.
pub(crate) fn of_unknown_copies(copies: &[UnknownCopy]) -> String {
    let header = ["MESSAGE", "WHY IT STAYS", "DELIVERY", "TENANT", "BYTES"];
    let rows = copies.iter().map(|copy| {
        let delivery = copy.delivery.as_ref();
        [
            copy.message_id.to_string(),
            copy.why.to_owned(),
            delivery.map_or_else(|| "-".to_owned(), |key| key.delivery_id.to_string()),
            delivery.map_or_else(|| "-".to_owned(), |key| key.tenant.to_string()),
            copy.bytes.to_string(),
        ]
    });
    table(header, rows)
}

fn state(record: &Record) -> String {
    match (&record.hold, record.disposition) {
        (Some(held), _) => format!("{}, held: {}", record.state, held.reason.as_str()),
        (None, Some(Disposition::Closed(_))) => format!("{}, closed", record.state),
        (None, Some(Disposition::Resolved(_))) => format!("{}, resolved", record.state),
        (None, _) => record.state.to_string(),
    }
}

/// The kind of the last failure, or why it ended without one, in a word.
fn last_failure(record: &Record) -> String {
    match (record.disposition, &record.last_failure) {
        (Some(Disposition::Delivered { late: true, .. }), _) => "late".to_owned(),
        (Some(Disposition::Delivered { .. }), _) | (None, None) => "-".to_owned(),
        (_, Some(last)) => last.failure.class.to_string(),
        (Some(Disposition::Closed(reason) | Disposition::Resolved(reason)), None) => reason.to_string(),
        (Some(Disposition::Ended(ending)), None) => ending.reason().to_owned(),
    }
}

pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    for row in rows {
        table.add_row(row.to_vec());
    }
    // The left padding of the first column is nobody's wish.
    let lines: Vec<String> = table.lines().map(|line| line.trim().to_owned()).collect();
    lines.join("\n")
}
