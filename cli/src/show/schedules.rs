//! Schedules: what is next, what was last and what became of it, and what is owed.

use serde_json::{Value, json};
use waybill_domain::identity::TenantId;
use waybill_domain::schedule::{Clocks, Coming, Window};
use waybill_service::config::Schedule;
use waybill_service::schedule::standing::Standing;

use super::config::span;
use super::or_dash;
use super::table::table;

/// A schedule as it stands for one tenant.
pub(crate) struct Seen {
    /// What the configuration says.
    pub(crate) schedule: Schedule,
    /// For whom.
    pub(crate) tenant: TenantId,
    /// What the ledger and the calendar say.
    pub(crate) standing: Standing,
}

/// Schedules, one row for each tenant, and a line for what is worth a word.
pub(crate) fn of_all(all: &[Seen]) -> String {
    let header = ["SCHEDULE", "TENANT", "NEXT FIRING", "FOR", "LAST WINDOW", "ITS DELIVERY", "STATE", "OWED"];
    let rows = all.iter().map(|seen| {
        let Standing { next, last, owed, .. } = &seen.standing;
        let record = last.as_ref().and_then(|(_, record)| record.as_ref());
        [
            seen.schedule.name.clone(),
            seen.tenant.to_string(),
            or_dash(next.map(|coming| coming.window.fires_at)),
            or_dash(next.map(|coming| coming.window.day)),
            or_dash(last.as_ref().map(|(window, _)| window.day)),
            or_dash(record.map(|record| &record.delivery.id)),
            or_dash(record.map(|record| record.state)),
            owed.len().to_string(),
        ]
    });
    let mut lines = vec![table(header, rows)];
    let mut noted = Vec::new();
    for seen in all {
        lines.extend(owes(seen));
        if !noted.contains(&&seen.schedule.name) {
            noted.push(&seen.schedule.name);
            lines.extend(seen.standing.jump.map(|coming| jumps(seen, coming)));
        }
    }
    lines.join("\n")
}

fn owes(seen: &Seen) -> Option<String> {
    let owed = &seen.standing.owed;
    let days: Vec<String> = owed.iter().map(|window| window.day.to_string()).collect();
    let Seen { schedule, tenant, .. } = seen;
    let shown = days.len().min(MOST_SHOWN);
    let rest = if days.len() > shown { format!(" and {} more", days.len() - shown) } else { String::new() };
    let sentence = format!(
        "{}, {tenant}: owes {}{rest}; published at the reconciler's next round, within {} of their firing",
        schedule.name,
        days[..shown].join(", "),
        span(schedule.catch_up),
    );
    (!owed.is_empty()).then_some(sentence)
}

/// How many days a line names; JSON has all.
const MOST_SHOWN: usize = 7;

fn jumps(seen: &Seen, Coming { window, clocks }: Coming) -> String {
    let does = match clocks {
        Clocks::Show => "show its time once",
        Clocks::Skip => "skip its time, and it fires right after the gap",
        Clocks::Repeat => "show its time twice, and it fires at the first",
    };
    format!("{}: after {} the clocks {does}, at {}", seen.schedule.name, window.day, window.fires_at)
}

/// One schedule and tenant for programs.
pub(crate) fn facts(seen: &Seen) -> Value {
    let Seen { schedule, tenant, standing } = seen;
    let coming = |coming: &Coming| {
        let clocks = match coming.clocks {
            Clocks::Show => "show",
            Clocks::Skip => "skip",
            Clocks::Repeat => "repeat",
        };
        json!({ "window": window(&coming.window), "clocks": clocks })
    };
    json!({
        "schedule": schedule.name,
        "tenant": tenant.as_str(),
        "timing": schedule.timing.to_string(),
        "destination": schedule.destination.as_str(),
        "policy": schedule.policy.as_ref().map(|policy| policy.as_str()),
        "catch_up_ms": schedule.catch_up.as_ms(),
        "in_force_since": schedule.since.get(tenant).map(ToString::to_string),
        "next": standing.next.as_ref().map(coming),
        "next_jump": standing.jump.as_ref().map(coming),
        "last": standing.last.as_ref().map(|(last, record)| json!({
            "window": window(last),
            "delivery_id": record.as_ref().map(|record| record.delivery.id.as_str()),
            "state": record.as_ref().map(|record| record.state.as_str()),
        })),
        "owed": standing.owed.iter().map(window).collect::<Vec<_>>(),
        "before_it_began": standing.before_it_began,
    })
}

fn window(window: &Window) -> Value {
    json!({
        "day": window.day.to_string(),
        "from": window.from.to_string(),
        "to": window.to.to_string(),
        "fires_at": window.fires_at.to_string(),
    })
}
