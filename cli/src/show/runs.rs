//! Redrive runs: where each stands, and what it came to so far.

use serde_json::{Map, Value, json};
use waybill_domain::order::{Order, Signed};
use waybill_domain::redrive::{Run, Standing};

use super::escape::escaped;
use super::orders::signed;
use super::plan::{reviews, selection_facts, selection_in_words};
use super::table::table;

/// What became of what a run released and looked at last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcomes {
    /// Delivered.
    pub(crate) delivered: usize,
    /// Failed again.
    pub(crate) failed: usize,
    /// Nothing is known of these yet.
    pub(crate) open: usize,
}

impl Outcomes {
    /// As the run itself knows them: it looks while it releases.
    pub(crate) fn noted(run: &Run) -> Self {
        let delivered = run.outcomes.iter().filter(|delivered| **delivered).count();
        Self { delivered, failed: run.outcomes.len() - delivered, open: run.watched.len() }
    }
}

/// Runs, one row each.
pub(crate) fn of_runs(runs: &[(&Order, &Run)]) -> String {
    let header =
        ["RUN", "BOOK", "STANDING", "RELEASED", "EXPIRED", "BLOCKED", "RATE", "STARTED", "BY", "WHY"];
    let rows = runs.iter().map(|(order, run)| {
        [
            order.id.to_string(),
            order.book.to_string(),
            run.standing.as_str().to_owned(),
            format!("{} of {}", run.tally.released, run.planned),
            run.tally.expired.to_string(),
            run.tally.blocked.to_string(),
            run.rate.to_string(),
            run.started.at.to_string(),
            escaped(&run.started.by),
            escaped(&run.started.why),
        ]
    });
    table(header, rows)
}

/// One run for people.
pub(crate) fn of_run(order: &Order, run: &Run, seen: Outcomes) -> String {
    let Signed { by, at, why } = &run.started;
    let mut lines = vec![
        format!("{}  {}", order.id, standing(run)),
        format!("  means     dead letters {}", selection_in_words(&run.selection)),
        format!("  started   {at} by {}: {}", escaped(by), escaped(why)),
        format!("  pace      {} for each destination{}", run.rate, limits(run)),
        format!(
            "  came to   {} of {} released, {} expired, {} blocked",
            run.tally.released, run.planned, run.tally.expired, run.tally.blocked
        ),
        format!("  outcomes  {}", outcomes(run, seen)),
    ];
    for (what, why) in reviews(&run.reviews) {
        lines.push(format!("  reviewed  {what}: {}", escaped(why)));
    }
    for (name, lane) in &run.lanes {
        let left = match (lane.done, lane.next_at) {
            (true, _) => "nothing is left to release".to_owned(),
            (false, _) if run.standing != Standing::Running => {
                "its next release waits for a resume".to_owned()
            }
            (false, Some(at)) => format!("its next release is due at {at} at the earliest"),
            (false, None) => "nothing was released yet".to_owned(),
        };
        lines.push(format!("  to {name}: {left}"));
    }
    lines.join("\n")
}

/// One run for programs.
pub(crate) fn facts(order: &Order, run: &Run, seen: Outcomes) -> Map<String, Value> {
    let lanes = run.lanes.iter().map(|(name, lane)| {
        let next = lane.next_at.map(|at| at.to_string());
        (name.to_string(), json!({ "judged": lane.done, "next_release_at": next }))
    });
    let Outcomes { delivered, failed, open } = seen;
    let (since, by, why) = match &run.standing {
        Standing::Running => (None, None, None),
        Standing::Stopped(signed) | Standing::Halted(signed) => {
            (Some(signed.at), Some(&signed.by), Some(&signed.why))
        }
        Standing::Sampled(at) | Standing::Finished(at) => (Some(*at), None, None),
    };
    let facts = json!({
        "run": order.id.as_str(),
        "book": order.book.as_str(),
        "standing": run.standing.as_str(),
        "standing_since": since.map(|at| at.to_string()),
        "standing_by": by,
        "standing_why": why,
        "selection": selection_facts(&run.selection),
        "started": signed(&run.started),
        "rate": run.rate.to_string(),
        "sample": run.sample,
        "resumed_at": run.resumed_at.map(|at| at.to_string()),
        "not_before": run.not_before.map(|at| at.to_string()),
        "reviews": run.reviews,
        "planned": run.planned,
        "released": run.tally.released,
        "expired": run.tally.expired,
        "blocked": run.tally.blocked,
        "last_outcomes": { "delivered": delivered, "failed": failed, "open": open },
        "destinations": lanes.collect::<Map<_, _>>(),
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// Where it stands, and what a person can do where it waits for one.
pub(crate) fn standing(run: &Run) -> String {
    match &run.standing {
        Standing::Running => match run.not_before {
            Some(at) => format!("running, not before {at}"),
            None => "running".to_owned(),
        },
        Standing::Stopped(Signed { by, at, why }) => {
            format!(
                "stopped at {at} by {}: {}; what it released and was not sent is held",
                escaped(by),
                escaped(why)
            )
        }
        Standing::Halted(Signed { at, why, .. }) => {
            format!(
                "halted itself at {at}: {}; what it released and was not sent is held until a resume",
                escaped(why)
            )
        }
        Standing::Sampled(at) => {
            format!("released its sample at {at}, and waits for a review: redrive resume")
        }
        Standing::Finished(at) => format!("finished at {at}"),
    }
}

fn limits(run: &Run) -> String {
    run.sample.map_or_else(String::new, |sample| format!(", a sample of {sample} first"))
}

fn outcomes(run: &Run, Outcomes { delivered, failed, open }: Outcomes) -> String {
    match (delivered + failed + open, run.resumed_at) {
        (0, Some(at)) => format!("none since the resume at {at}"),
        (0, None) => "none to be seen yet".to_owned(),
        (all, _) => format!(
            "of the last {all} released: {delivered} delivered, {failed} failed at their next attempt, {open} not known yet"
        ),
    }
}
