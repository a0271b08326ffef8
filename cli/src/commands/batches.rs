//! Events that can be published side by side: lines that are at hand without waiting for their
//! writer, none of them the same event, so that of two with one ID the first still comes first.

use std::collections::HashSet;
use std::io::{self, Read};

use waybill_domain::identity::{EventId, TenantId};
use waybill_service::event::{Event, MAX_EVENT_BYTES};
use waybill_service::refusal::{Code, Refusal};

use super::faults::in_words;
use super::lines::{Line, Lines};

/// A line that was read: where it stands, and its event if it is one.
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) event: Result<Event, Refusal>,
}

/// Where in the source something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Counted from 1.
    pub(super) line: u64,
    /// Counted from 1; only where the line is no JSON.
    pub(super) column: Option<u64>,
}

/// The most events at once: they share the commits of the store.
const MOST: usize = 64;

/// The batches of a source.
pub(super) struct Batches<R> {
    lines: Lines<R>,
    /// Read, but the same event as one of the batch before.
    held: Option<Row>,
}

impl<R: Read> Batches<R> {
    pub(super) fn new(source: R) -> Self {
        Self { lines: Lines::new(source), held: None }
    }

    /// The next batch; empty at the end.
    pub(super) fn next(&mut self) -> io::Result<Vec<Row>> {
        let mut batch = Vec::new();
        let mut seen: HashSet<(TenantId, EventId)> = HashSet::new();
        while let Some(read) = self.take()? {
            if let Ok(event) = &read.event
                && !seen.insert((event.tenant.clone(), event.event_id.clone()))
            {
                self.held = Some(read);
                break;
            }
            batch.push(read);
            if batch.len() == MOST || !self.lines.has_more_at_hand() {
                break;
            }
        }
        Ok(batch)
    }

    fn take(&mut self) -> io::Result<Option<Row>> {
        if self.held.is_some() {
            return Ok(self.held.take());
        }
        Ok(self.lines.next()?.map(|(number, line)| row(number, line)))
    }
}

fn row(number: u64, line: Line) -> Row {
    let mut column = None;
    let event = match line {
        Line::Whole(bytes) => Event::parse(&bytes).map_err(|invalid| {
            let (invalid, at) = in_words(invalid);
            column = at;
            Refusal::of_event(invalid, bytes.len())
        }),
        Line::TooLong => {
            let message = format!("event: is too long (at most {MAX_EVENT_BYTES} bytes)");
            Err(Refusal::new(Code::PayloadTooLarge, message))
        }
    };
    Row { place: Place { line: number, column }, event }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_batch_has_no_event_twice_and_nothing_is_lost_or_moved() {
        let line = |id: u32| format!(r#"{{"event_id":"e{id}","tenant":"t","type":"x","payload":1}}"#);
        let ids = [1, 2, 1, 1, 3, 2, 4];
        let source = ids.map(line).join("\n") + "\nbad\nbad\n";
        let mut batches = Batches::new(source.as_bytes());
        let mut sizes = Vec::new();
        let mut numbers = Vec::new();
        loop {
            let batch = batches.next().unwrap();
            if batch.is_empty() {
                break;
            }
            sizes.push(batch.len());
            numbers.extend(batch.iter().map(|row| row.place.line));
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(sizes, [2, 1, 6]);
        let many: Vec<String> = (0..100).map(line).collect();
        assert_eq!(Batches::new(many.join("\n").as_bytes()).next().unwrap().len(), MOST);
    }
}
