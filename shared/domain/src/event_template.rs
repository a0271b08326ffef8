//! The event ID of a schedule's deliveries: a text with `{schedule}`, `{tenant}` and `{window}` in it.

use std::fmt;

use crate::fault::InvalidField;
use crate::identity::{EventId, TenantId};
use crate::placeholder;
use crate::schedule::BusinessDay;

/// What a schedule that says nothing uses.
pub const DEFAULT: &str = "{schedule}:{tenant}:{window}";

/// The rule that [`EventIdTemplate::parse`] holds, for error texts.
pub const TEMPLATE_RULE: &str = "a text with {window} in it, and {tenant} and {schedule} if wished, such as \
                                 \"{schedule}:{tenant}:{window}\"; an event ID with everything filled in";

/// A template that gives an event ID for every tenant and window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventIdTemplate {
    text: String,
    schedule: String,
}

impl EventIdTemplate {
    /// Reads a template for the schedule of this name.
    pub fn parse(field: &str, text: &str, schedule: &str) -> Result<Self, InvalidField> {
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, TEMPLATE_RULE));
        if !text.contains("{window}") {
            return refuse("has no {window}: every window would have the same delivery");
        }
        let longest = fill(text, schedule, &"x".repeat(64), "2026-08-09");
        if longest.contains(['{', '}']) {
            return refuse("has a brace that belongs to none of {schedule}, {tenant} and {window}");
        }
        match EventId::parse(longest) {
            Ok(_) => Ok(Self { text: text.to_owned(), schedule: schedule.to_owned() }),
            Err(invalid) => {
                refuse(&format!("gives no event ID for a tenant of 64 letters: it {}", invalid.fault))
            }
        }
    }

    /// The event ID of one tenant and window.
    pub fn fill(&self, tenant: &TenantId, day: BusinessDay) -> EventId {
        let filled = fill(&self.text, &self.schedule, tenant.as_str(), &day.to_string());
        EventId::parse(filled).expect("checked with the longest tenant when it was read")
    }

    /// Whether the two could ever give one tenant the same event ID, for whichever windows.
    pub fn may_meet(&self, other: &Self, tenant: &TenantId) -> bool {
        let shape = |template: &Self| {
            // No event ID has a control character, so that it stands for any digit here.
            fill(&template.text, &template.schedule, tenant.as_str(), "\0\0\0\0-\0\0-\0\0")
        };
        let (ours, theirs) = (shape(self), shape(other));
        let is_one = |(a, b): (char, char)| match (a, b) {
            ('\0', b) => b == '\0' || b.is_ascii_digit(),
            (a, '\0') => a.is_ascii_digit(),
            (a, b) => a == b,
        };
        ours.chars().count() == theirs.chars().count() && ours.chars().zip(theirs.chars()).all(is_one)
    }
}

impl fmt::Display for EventIdTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Fills the three places of a text.
pub fn fill(text: &str, schedule: &str, tenant: &str, window: &str) -> String {
    placeholder::fill(text, &[("{schedule}", schedule), ("{tenant}", tenant), ("{window}", window)])
}
