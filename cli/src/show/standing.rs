//! How a destination stands: what is used of its budget, what is held and why, whether it is suspended.

use serde_json::{Map, Value, json};
use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_domain::suspension::Suspension;
use waybill_domain::time::TimeMs;
use waybill_service::held::HeldCount;

/// How a destination stands now.
pub(crate) struct Standing {
    /// What it may be asked to bear now.
    pub(crate) budget: Option<Budget>,
    /// Its budget while a hold on it is eased.
    pub(crate) eased: Option<Budget>,
    /// How many slots of its budget are leased or reserved; none where its reader may not know.
    pub(crate) in_use: Option<usize>,
    /// The suspension in force.
    pub(crate) suspension: Option<Suspension>,
    /// How many failures stand in a row that may suspend it.
    pub(crate) failures_in_a_row: u32,
    /// What is held.
    pub(crate) held: HeldCount,
    /// When it was looked at.
    pub(crate) now: TimeMs,
}

impl Standing {
    /// How many are held, in one word.
    pub(crate) fn held(&self) -> String {
        format!("{}{}", self.held.total(), if self.held.more { "+" } else { "" })
    }

    /// Requests that are with it, in a few words.
    pub(crate) fn at_once(&self) -> Option<String> {
        let in_use = self.in_use?;
        Some(match &self.budget {
            Some(budget) => format!("{in_use} of {}", budget.concurrency),
            None => in_use.to_string(),
        })
    }

    /// Its lines for people.
    pub(crate) fn lines(&self, destination: &Destination) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(at_once) = self.at_once() {
            lines.push(format!("  at once       {at_once}"));
        }
        let by_reason = self.held.by_reason.iter();
        let by_reason: Vec<String> =
            by_reason.map(|(reason, number)| format!("{number} {}", reason.as_str())).collect();
        let reasons =
            if by_reason.is_empty() { String::new() } else { format!(": {}", by_reason.join(", ")) };
        lines.push(format!("  waiting       {}{reasons}", self.held()));
        match &self.suspension {
            Some(it) => {
                let probe = match it.is_probing(self.now) {
                    true => "a probe is under way".to_owned(),
                    false => format!("the next probe at {} or with what comes then", it.next_probe_at),
                };
                let (cause, failures) = (it.cause.as_str(), it.failures);
                lines.push(format!(
                    "  suspended     since {}, {cause} {failures} in a row; {} failed probes; {probe} ({})",
                    it.since, it.probes, it.id
                ));
            }
            None if destination.suspension.is_some() => {
                lines.push(format!("  suspended     no; {} failures in a row", self.failures_in_a_row));
            }
            None => {}
        }
        lines
    }
}

/// The same for programs; nothing where its reader may not know.
pub(crate) fn added_to(mut facts: Map<String, Value>, of: Option<&Standing>, to: &Destination) -> Value {
    let held = of.map(|it| {
        let reasons = it.held.by_reason.iter();
        let by_reason: Map<String, Value> =
            reasons.map(|(reason, number)| (reason.as_str().to_owned(), json!(number))).collect();
        json!({ "number": it.held.total(), "more": it.held.more, "by_reason": by_reason })
    });
    let suspension = of.and_then(|standing| {
        let it = standing.suspension.as_ref()?;
        Some(json!({
            "hold": it.id.as_str(),
            "since": it.since.to_string(),
            "cause": it.cause.as_str(),
            "failures": it.failures,
            "probes": it.probes,
            "is_probing": it.is_probing(standing.now),
            "next_probe_at": it.next_probe_at.to_string(),
        }))
    });
    let budget = json!({
        "concurrency": to.budget.as_ref().map(|budget| budget.concurrency),
        "eased_to": of.and_then(|it| it.eased).map(|budget| budget.concurrency),
        "in_use": of.and_then(|it| it.in_use),
    });
    facts.insert("budget".to_owned(), budget);
    facts.insert("waiting".to_owned(), json!(held));
    facts.insert("suspension".to_owned(), json!(suspension));
    facts.insert("failures_in_a_row".to_owned(), json!(of.map(|it| it.failures_in_a_row)));
    Value::Object(facts)
}
