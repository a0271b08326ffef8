//! `suspend_after` and `gone` of a destination: when automation suspends it.

use waybill_domain::fault::InvalidField;
use waybill_domain::outcome::{StatusOverride, StatusOverrides};
use waybill_domain::suspension::SuspendRules;

use super::reader::{Entry, Section};

const MOST_FAILURES: u32 = 1000;
pub(super) const AFTER_RULE: &str = "from 1 to 1000";
const GONE: u16 = 410;
pub(super) const GONE_RULE: &str =
    "\"dead_letter\", or \"suspend\" for a recipient that says by 410 that it wants no more";

/// What is written of it.
#[derive(Default)]
pub(super) struct Suspending {
    after: Option<u32>,
    on_gone: bool,
}

impl Suspending {
    /// Reads what is written; `false` if any of it was refused.
    pub(super) fn read(&mut self, section: &Section<'_, '_>) -> bool {
        let after = section.set("suspend_after", &mut self.after, |entry| suspend_after(entry).map(Some));
        section.set("gone", &mut self.on_gone, gone) && after
    }

    /// What suspends its destination is not the delivery's end, and is not to be read otherwise.
    pub(super) fn settle(&self, section: &Section<'_, '_>, statuses: &mut StatusOverrides) -> bool {
        if !self.on_gone {
            return true;
        }
        if statuses.contains_key(&GONE) {
            let rule = "leave 410 out of statuses, or say gone = \"dead_letter\"";
            section.refuse(InvalidField::new("gone", "suspends, and statuses says what 410 is", rule));
            return false;
        }
        statuses.insert(GONE, StatusOverride::Retryable);
        true
    }

    /// The rules; none where nothing suspends it.
    pub(super) fn rules(&self) -> Option<SuspendRules> {
        SuspendRules::of(self.after, self.on_gone)
    }
}

/// Whether 410 suspends the destination. Otherwise it ends the delivery as a dead letter.
fn gone(entry: &Entry<'_, '_>) -> Option<bool> {
    match entry.as_text()? {
        "dead_letter" => return Some(false),
        "suspend" => return Some(true),
        other => entry.refuse(format!("is {other:?}"), GONE_RULE),
    }
    None
}

fn suspend_after(entry: &Entry<'_, '_>) -> Option<u32> {
    let read = entry.as_u32()?;
    if !(1..=MOST_FAILURES).contains(&read) {
        entry.refuse(format!("is {read}"), AFTER_RULE);
        return None;
    }
    Some(read)
}
