//! Since when each schedule is in force, as the history of the configuration tells it.
//!
//! A schedule that comes to make other deliveries begins anew: what fired before is not owed under event IDs
//! that nobody knows. Where only the template of its event IDs changed, what is still owed from before is owed
//! under the IDs of then.

use std::collections::BTreeMap;

use waybill_domain::event_template::{self, EventIdTemplate};
use waybill_domain::schedule::LONGEST_CATCH_UP;
use waybill_domain::time::TimeMs;

use crate::config::{Config, FormerIds};
use crate::office::{Former, Revision};

/// What a new revision keeps of its schedules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Since {
    pub(crate) since: BTreeMap<String, TimeMs>,
    pub(crate) former: BTreeMap<String, Vec<Former>>,
}

/// Which deliveries a schedule makes for a tenant.
#[derive(PartialEq, Eq)]
struct Job {
    event_id: String,
    destination: String,
}

/// Since when each schedule of a document is in force for each of its tenants: without a gap, and with the
/// same event ID and destination, as another makes other deliveries.
pub(crate) fn of(document: &str, old: &str, before: Option<&Revision>, now: TimeMs) -> Since {
    let was = jobs(old);
    let mut known = Since::default();
    for (key, job) in jobs(document) {
        let past = before.and_then(|before| Some((before, before.schedules.get(&key)?, was.get(&key)?)));
        let past = past.filter(|(.., was)| was.destination == job.destination);
        let mut at = now;
        if let Some((before, since, was)) = past {
            let mut former = before.former.get(&key).cloned().unwrap_or_default();
            match *was == job {
                true => at = *since,
                false => former.push(Former { event_id: was.event_id.clone(), since: *since, until: now }),
            }
            former.retain(|former| former.until > now.minus(LONGEST_CATCH_UP));
            if !former.is_empty() {
                known.former.insert(key.clone(), former);
            }
        }
        known.since.insert(key, at);
    }
    known
}

/// A configuration that was read, with what its revision knows: since when it and each schedule in it is in
/// force.
pub fn dated(mut config: Config, revision: &Revision) -> Config {
    config.applied_at = Some(revision.signed.at);
    for schedule in &mut config.schedules {
        for tenant in &schedule.tenants {
            let key = key(&schedule.name, tenant.as_str());
            if let Some(at) = revision.schedules.get(&key) {
                schedule.since.insert(tenant.clone(), *at);
            }
            let former: Vec<FormerIds> = revision
                .former
                .get(&key)
                .into_iter()
                .flatten()
                .filter_map(|f| ids(f, &schedule.name))
                .collect();
            if !former.is_empty() {
                schedule.former.insert(tenant.clone(), former);
            }
        }
    }
    config
}

fn ids(former: &Former, schedule: &str) -> Option<FormerIds> {
    let Former { event_id, since, until } = former;
    let event_id = EventIdTemplate::parse("event_id", event_id, schedule).ok()?;
    Some(FormerIds { event_id, since: *since, until: *until })
}

/// The jobs of a document.
fn jobs(document: &str) -> BTreeMap<String, Job> {
    let table = document.parse::<toml::Table>().unwrap_or_default();
    let mut jobs = BTreeMap::new();
    for (name, schedule) in table.get("schedules").and_then(toml::Value::as_table).into_iter().flatten() {
        let setting = |name: &str| schedule.get(name).and_then(toml::Value::as_str).map(str::to_owned);
        let tenants = schedule.get("tenants").and_then(toml::Value::as_array).into_iter().flatten();
        for tenant in tenants.filter_map(toml::Value::as_str) {
            let event_id = setting("event_id").unwrap_or_else(|| event_template::DEFAULT.to_owned());
            let destination = setting("destination").unwrap_or_default();
            jobs.insert(key(name, tenant), Job { event_id, destination });
        }
    }
    jobs
}

/// How a revision names a schedule's tenant.
fn key(name: &str, tenant: &str) -> String {
    format!("{name}:{tenant}")
}
