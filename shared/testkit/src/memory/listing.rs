//! Pages in the order of a text key: a cursor is the key of the last item that was shown.

use waybill_domain::time::TimeMs;
use waybill_service::ports::{Cursor, Page};

/// The first `limit` items after `from`, by key.
pub(super) fn page<T>(mut items: Vec<(String, T)>, limit: usize, from: Option<&Cursor>) -> Page<T> {
    items.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut rest = items.into_iter().filter(|(key, _)| from.is_none_or(|from| *key > from.0));
    let mut shown = Vec::new();
    let mut last = None;
    for (key, item) in rest.by_ref().take(limit) {
        last = Some(key);
        shown.push(item);
    }
    let next = if rest.next().is_some() { last.map(Cursor) } else { None };
    Page { items: shown, next }
}

/// Parts of a key, in order of weight. A unit separator sorts before everything that they contain.
pub(super) fn key<const N: usize>(parts: [&str; N]) -> String {
    parts.join("\u{1}")
}

/// A time as text that sorts as the time does.
pub(super) fn ascending(time: TimeMs) -> String {
    format!("{:020}", (time.as_unix_ms() as i128) - i128::from(i64::MIN))
}

/// A time as text that sorts the other way round.
pub(super) fn descending(time: TimeMs) -> String {
    format!("{:020}", i128::from(i64::MAX) - (time.as_unix_ms() as i128))
}
