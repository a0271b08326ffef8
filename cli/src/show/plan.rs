//! A plan for a redrive: what it means, what it counted, and what would release what is blocked.

use std::path::Path;

use serde_json::{Value, json};
use waybill_domain::redrive::{Fate, Reviews, Selection};
use waybill_service::redrive::plan::Plan;

use super::escape::escaped;
use super::table::table;

/// A plan for people; `saved` says where it can be started from.
pub(crate) fn of_plan(plan: &Plan, saved: Option<&Path>) -> String {
    let mut lines = vec![
        format!(
            "plan of {} by {}, under revision {}",
            plan.made_at,
            escaped(&plan.made_by),
            plan.config_revision
        ),
        format!("  means     dead letters {}", selection_in_words(&plan.selection)),
    ];
    for (what, why) in reviews(&plan.reviews) {
        lines.push(format!("  reviewed  {what}: {}", escaped(why)));
    }
    lines.push(String::new());
    if plan.groups.is_empty() {
        lines.push("there are none: nothing to start".to_owned());
        return lines.join("\n");
    }
    let header = ["DESTINATION", "REASON", "COUNT", "PERHAPS APPLIED", "A RUN WOULD"];
    let rows = plan.groups.iter().map(|group| {
        let fate = match group.fate {
            Fate::Release => "release them".to_owned(),
            Fate::Expire => "expire them: past their deadline, never sent".to_owned(),
            Fate::Blocked(block) => format!("leave them: {}", block.as_str()),
        };
        let perhaps_applied = group.perhaps_applied.to_string();
        [
            group.destination.to_string(),
            group.reason.to_string(),
            group.count.to_string(),
            perhaps_applied,
            fate,
        ]
    });
    lines.push(table(header, rows));
    lines.push(String::new());
    let Totals { selected, released, expired, blocked } = totals(plan);
    lines.push(format!(
        "{selected} selected: {released} to release, {expired} past their deadline, {blocked} blocked"
    ));
    let perhaps_applied: u64 = plan.groups.iter().map(|group| group.perhaps_applied).sum();
    if perhaps_applied > 0 {
        lines.push(format!(
            "{perhaps_applied} may have been applied: a replay has one effect only where the recipient knows their \
             idempotency-key"
        ));
    }
    for (block, count) in plan.blocks() {
        lines.push(format!("  {} ({count}): to release them, {}", block.as_str(), block.remedy()));
    }
    lines.push(match saved {
        Some(_) if blocked == selected => {
            "nothing was changed; nothing is to be released, and no run is started from it".to_owned()
        }
        Some(file) => format!(
            "nothing was changed; waybill redrive start {} --rate 5/s{} --why \"why\" begins it",
            file.display(),
            sample(released)
        ),
        None => "nothing was changed; --save FILE keeps the plan, and a run is started from that".to_owned(),
    });
    lines.join("\n")
}

/// A plan for programs, with the file's own contents.
pub(crate) fn facts(plan: &Plan, saved: Option<&Path>) -> Value {
    let Totals { selected, released, expired, blocked } = totals(plan);
    let blocks = plan.blocks().into_iter();
    json!({
        "selected": selected,
        "to_release": released,
        "past_deadline": expired,
        "blocked": blocked,
        "perhaps_applied": plan.groups.iter().map(|group| group.perhaps_applied).sum::<u64>(),
        "blocks": blocks
            .map(|(block, count)| json!({ "block": block.as_str(), "count": count, "lifted_by": block.remedy() }))
            .collect::<Vec<_>>(),
        "saved": saved.map(|file| file.display().to_string()),
        "plan": plan,
    })
}

/// A sample to begin with: some, and far from all; none of a few.
fn sample(released: u64) -> String {
    match released / 10 {
        0 => String::new(),
        tenth => format!(" --sample {}", tenth.min(10)),
    }
}

struct Totals {
    selected: u64,
    released: u64,
    expired: u64,
    blocked: u64,
}

fn totals(plan: &Plan) -> Totals {
    Totals {
        selected: plan.count(|_| true),
        released: plan.releasable(),
        expired: plan.count(|fate| fate == Fate::Expire),
        blocked: plan.count(|fate| matches!(fate, Fate::Blocked(_))),
    }
}

/// What a reviewer took upon themselves, with their reasons.
pub(super) fn reviews(reviews: &Reviews) -> Vec<(&'static str, &str)> {
    let Reviews { permanent, ambiguous, beyond_limit } = reviews;
    let all = [
        ("permanent failures", permanent),
        ("ambiguous outcomes", ambiguous),
        ("beyond the limit of redrives", beyond_limit),
    ];
    all.into_iter().filter_map(|(what, why)| Some((what, why.as_deref()?))).collect()
}

/// Which dead letters are meant, in words.
pub(super) fn selection_in_words(selection: &Selection) -> String {
    let Selection { tenant, destination, reason, event_type, since, until, deliveries, events, event_prefix } =
        selection;
    let mut parts = vec![
        tenant.as_ref().map_or_else(|| "of every tenant".to_owned(), |tenant| format!("of tenant {tenant}")),
    ];
    parts.extend(destination.as_ref().map(|destination| format!("to {destination}")));
    parts.extend(reason.map(|reason| format!("for {reason}")));
    parts.extend(event_type.as_ref().map(|types| format!("of type {types}")));
    parts.extend(since.map(|since| format!("that ended from {since} on")));
    parts.extend(until.map(|until| format!("that ended before {until}")));
    let named = [("deliveries", deliveries.len()), ("events", events.len())].into_iter();
    parts.extend(
        named.filter(|(_, count)| *count > 0).map(|(what, count)| format!("of {count} named {what}")),
    );
    parts
        .extend(event_prefix.as_ref().map(|prefix| format!("of events that begin with {}", escaped(prefix))));
    parts.join(", ")
}

/// Which dead letters are meant, for programs.
pub(super) fn selection_facts(selection: &Selection) -> Value {
    json!({
        "tenant": selection.tenant,
        "destination": selection.destination,
        "reason": selection.reason,
        "type": selection.event_type,
        "since": selection.since.map(|at| at.to_string()),
        "until": selection.until.map(|at| at.to_string()),
        "deliveries": selection.deliveries,
        "events": selection.events,
        "event_prefix": selection.event_prefix,
    })
}
