//! Listings page by page: JSON lines go out as they come, a table is held back to align its columns
//! and says so when it stops before the end.

use waybill_domain::delivery::Record;
use waybill_domain::time::TimeMs;
use waybill_service::ports::Clock as _;

use super::Globals;
use super::operator::Operator;
use super::owners::Owners;
use crate::exit::{Exit, Failure};
use crate::out::{self, Format};
use crate::show::facts;
use waybill_system::SystemClock;

/// How many records are asked for at once.
pub(super) const PAGE: usize = 200;

/// The most rows of a table: more than a person reads.
const MOST_ROWS: usize = 1000;

/// The rows of a listing.
pub(super) struct Rows {
    output: Format,
    table: fn(&[Record], TimeMs) -> String,
    owners: Owners,
    held: Vec<Record>,
    is_cut: bool,
    is_empty: bool,
}

impl Rows {
    pub(super) fn new(
        globals: &Globals,
        operator: &Operator,
        table: fn(&[Record], TimeMs) -> String,
    ) -> Self {
        let owners = Owners::at_hand(operator, &globals.backend());
        Self { output: globals.output, table, owners, held: Vec::new(), is_cut: false, is_empty: true }
    }

    /// Takes a page; `false` when no more is wanted.
    pub(super) fn take(&mut self, records: Vec<Record>) -> bool {
        self.is_empty &= records.is_empty();
        if self.output == Format::Json {
            let now = SystemClock.now();
            for record in &records {
                let is_too_late = record.delivery.deadline.is_some_and(|at| at <= now);
                out::json(&facts::of_record(record, self.owners.owner(record), is_too_late));
            }
            return true;
        }
        self.held.extend(records);
        self.is_cut = self.held.len() > MOST_ROWS;
        !self.is_cut
    }

    /// Prints what was held back; `none` says that there was nothing, unless `check` finds that nothing
    /// could be found.
    pub(super) fn finish(
        mut self,
        none: &str,
        check: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        if self.is_empty {
            check()?;
        }
        if self.output == Format::Json {
            return Ok(Exit::Done);
        }
        if self.is_empty {
            out::complain(none);
            return Ok(Exit::Done);
        }
        self.held.truncate(MOST_ROWS);
        out::line((self.table)(&self.held, SystemClock.now()));
        if self.is_cut {
            out::complain(format_args!(
                "there are more than these {MOST_ROWS}: narrow the listing, or use --output json"
            ));
        }
        Ok(Exit::Done)
    }
}
