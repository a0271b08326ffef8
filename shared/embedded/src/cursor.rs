//! Places in listings: the keys of the last item shown, so that changes before or after it move
//! nothing.

use rusqlite::{Row, Rows};
use serde::de::DeserializeOwned;
use waybill_service::ports::{Cursor, Page};

use crate::fault::Fault;
use crate::rows::text;

/// Reads the place of a cursor of `listing`, if there is a cursor.
pub(crate) fn read<P: DeserializeOwned>(listing: &str, cursor: Option<&Cursor>) -> Result<Option<P>, Fault> {
    let Some(Cursor(written)) = cursor else { return Ok(None) };
    let place = written.strip_prefix(listing).and_then(|rest| rest.strip_prefix(':'));
    match place.map(serde_json::from_str) {
        Some(Ok(place)) => Ok(Some(place)),
        _ => Err(Fault::Refused(format!("{written:?} is not a place in this listing"))),
    }
}

/// What to show and what to ask for: one row more, which says whether another page follows. A page
/// shows at least one item, or paging would never end.
pub(crate) fn one_further(limit: usize) -> (usize, i64) {
    let limit = limit.clamp(1, i32::MAX as usize);
    (limit, limit as i64 + 1)
}

/// An item and its place: a JSON array of what the listing is ordered by.
pub(crate) struct Placed<T> {
    item: T,
    place: String,
}

/// Reads every row. `column` holds its place.
pub(crate) fn placed<T>(
    mut rows: Rows<'_>,
    column: usize,
    item: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<Placed<T>>, Fault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Placed { item: item(row)?, place: text(row, column)?.to_owned() });
    }
    Ok(found)
}

/// The first `limit` of what was found; what goes further only says that another page follows.
pub(crate) fn page<T>(listing: &str, mut found: Vec<Placed<T>>, limit: usize) -> Page<T> {
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| more);
    let next = last.map(|last| Cursor(format!("{listing}:{}", last.place)));
    Page { items: found.into_iter().map(|placed| placed.item).collect(), next }
}
