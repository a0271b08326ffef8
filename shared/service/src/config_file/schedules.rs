//! `[schedules.NAME]`: what is published by the calendar. A schedule that could never do its work, or that
//! could be taken for another one's, is a fault.

use std::collections::BTreeMap;

use waybill_domain::destination::EventPattern;
use waybill_domain::event_template::{self, EventIdTemplate, TEMPLATE_RULE};
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DestinationName, EventType, PolicyName, TenantId};
use waybill_domain::schedule::{LONGEST_CATCH_UP, Timing};
use waybill_domain::time::DurationMs;

use super::destination_keys::TENANTS_RULE;
use super::destinations::tenants;
use super::json;
use super::policies::{self, POLICY_RULE, Policies};
use super::reader::{Entry, Section};
use super::reference::{Key, Kind, Table};
use super::sources::Destinations;
use crate::config::{EventTypeRules, Schedule};

const CRON_RULE: &str = "minute, hour, day of month, month, day of week, such as \"30 2 * * *\"";
const ZONE_RULE: &str = "a name of the IANA time zone database, such as \"America/New_York\"";
const WINDOW_RULE: &str = "\"previous-day\": the business day before the one on which it fires";
const TYPE_RULE: &str = "the event type of its deliveries";
const DESTINATION_RULE: &str = "a destination that serves every tenant of the schedule";
const PAYLOAD_RULE: &str = "a table, or any value that JSON has";
const CATCH_UP_RULE: &str =
    "from 1h to 89d: deliveries are kept for 90 days, and only they tell what was done";

pub(super) const TABLE: Table = Table {
    path: "schedules.NAME",
    says: "What is published by the calendar: one delivery for each tenant and closed business day.",
    keys: &[
        Key::new("cron", Kind::Text, "when it fires, on the clocks of the zone").required().rule(CRON_RULE),
        Key::new("timezone", Kind::Text, "whose clocks and days count").required().rule(ZONE_RULE),
        Key::new("window", Kind::Text, "which day a delivery is for")
            .default("\"previous-day\"")
            .rule(WINDOW_RULE),
        Key::new("tenants", Kind::List, "one delivery for each").required().rule(TENANTS_RULE),
        Key::new("destination", Kind::Text, "to whom").required().rule(DESTINATION_RULE),
        Key::new("type", Kind::Text, "one that requires no deadline").required().rule(TYPE_RULE),
        Key::new("event_id", Kind::Text, "one for each tenant and window, and no other schedule's")
            .default("\"{schedule}:{tenant}:{window}\"")
            .rule(TEMPLATE_RULE),
        Key::new("catch_up", Kind::Duration, "for how long missed windows are published")
            .default("\"7d\"")
            .rule(CATCH_UP_RULE),
        Key::new("policy", Kind::Text, "retry rules in place of the destination's").rule(POLICY_RULE),
        Key::new(
            "payload",
            Kind::Any,
            "the payload; {schedule}, {tenant} and {window} in its texts are filled in",
        )
        .required()
        .rule(PAYLOAD_RULE),
    ],
    later: &[],
};

/// A window that is missed is looked for once a minute: less than this could be missed for good.
const SHORTEST_CATCH_UP: DurationMs = DurationMs::from_secs(3600);
const USUAL_CATCH_UP: DurationMs = DurationMs::from_secs(7 * 86_400);

pub(super) fn read(
    root: &Section<'_, '_>,
    destinations: &Destinations<'_>,
    policies: &Policies,
    event_types: &[(EventPattern, EventTypeRules)],
) -> Vec<Schedule> {
    let mut schedules: Vec<Schedule> = Vec::new();
    for entry in root.tables("schedules") {
        let Some(schedule) = read_one(&entry, destinations, policies, event_types) else { continue };
        for other in &schedules {
            refuse_collision(&entry, &schedule, other);
        }
        schedules.push(schedule);
    }
    schedules.sort_by(|a, b| a.name.cmp(&b.name));
    schedules
}

fn read_one(
    entry: &Entry<'_, '_>,
    destinations: &Destinations<'_>,
    policies: &Policies,
    event_types: &[(EventPattern, EventTypeRules)],
) -> Option<Schedule> {
    // Schedules and destinations are named by the same rule.
    let name = entry.parsed_name(|name| DestinationName::parse(name).map_err(|i| i.of("schedule")));
    let section = entry.as_section(&TABLE)?;
    let timing = timing(&section);
    if let Some(window) = section.get("window") {
        window.parsed(|field, text| match text {
            "previous-day" => Ok(()),
            other => Err(InvalidField::new(field, format!("is {other:?}"), WINDOW_RULE)),
        });
    }
    let tenants = tenants(&section);
    let destination = section
        .require("destination", DESTINATION_RULE)
        .and_then(|entry| destination(&entry, destinations, tenants.as_deref().unwrap_or_default()));
    let event_type = section.require("type", TYPE_RULE).and_then(|entry| {
        let event_type = entry.parsed(|field, text| EventType::parse(text).map_err(|i| i.of(field)))?;
        let rules = event_types.iter().find(|(pattern, _)| pattern.matches(&event_type));
        if rules.is_some_and(|(_, rules)| rules.require_deadline) {
            entry.refuse("requires a deadline, and a schedule gives none", TYPE_RULE);
            return None;
        }
        Some(event_type)
    });
    let event_id = match section.get("event_id") {
        Some(template) => template.parsed(|field, text| EventIdTemplate::parse(field, text, entry.name())),
        None => EventIdTemplate::parse("event_id", event_template::DEFAULT, entry.name()).ok(),
    };
    let mut catch_up = USUAL_CATCH_UP;
    let sound = section.set("catch_up", &mut catch_up, |entry| entry.parsed(span));
    let mut policy = None;
    let sound = sound
        & section.set("policy", &mut policy, |entry| {
            policies::named(entry, policies)?;
            Some(Some(entry.parsed(|_, name| PolicyName::parse(name))?))
        });
    let payload = section.require("payload", PAYLOAD_RULE).and_then(|entry| json::read(&entry));
    Some(Schedule {
        name: name?.as_str().to_owned(),
        timing: timing?,
        tenants: tenants?,
        destination: destination?,
        event_type: event_type?,
        event_id: event_id?,
        policy,
        payload: payload.filter(|_| sound)?,
        catch_up,
        since: BTreeMap::new(),
        former: BTreeMap::new(),
    })
}

/// Pattern and zone, each reported at its own key.
fn timing(section: &Section<'_, '_>) -> Option<Timing> {
    let cron = section.require("cron", CRON_RULE).and_then(|entry| {
        let text = entry.as_text()?;
        entry.parsed(|_, text| Timing::parse(text, "UTC")).map(|_| text)
    });
    let zone = section.require("timezone", ZONE_RULE).and_then(|entry| {
        let text = entry.as_text()?;
        entry.parsed(|_, text| Timing::parse("0 0 * * *", text)).map(|_| text)
    });
    Timing::parse(cron?, zone?).ok()
}

fn destination(
    entry: &Entry<'_, '_>,
    destinations: &Destinations<'_>,
    tenants: &[TenantId],
) -> Option<DestinationName> {
    let name = entry.as_text()?;
    let found = destinations.read.iter().find(|(known, _)| known.as_str() == name);
    let Some((name, destination)) = found else {
        // One that is written and faulty is found fault with where it stands.
        if destinations.written.contains(&name) {
            return None;
        }
        entry.refuse(format!("no destination is named {name:?}"), DESTINATION_RULE);
        return None;
    };
    let unserved: Vec<&str> =
        tenants.iter().filter(|tenant| !destination.serves(tenant)).map(TenantId::as_str).collect();
    if !unserved.is_empty() {
        entry.refuse(format!("does not serve {}", unserved.join(", ")), DESTINATION_RULE);
        return None;
    }
    Some(name.clone())
}

fn span(field: &str, text: &str) -> Result<DurationMs, InvalidField> {
    let span = DurationMs::parse(field, text)?;
    if (SHORTEST_CATCH_UP..=LONGEST_CATCH_UP).contains(&span) {
        return Ok(span);
    }
    Err(InvalidField::new(field, format!("is {span}"), CATCH_UP_RULE))
}

/// Two schedules that give one tenant the same event ID at one destination would each take the other's
/// delivery for its own.
fn refuse_collision(entry: &Entry<'_, '_>, schedule: &Schedule, other: &Schedule) {
    if schedule.destination != other.destination {
        return;
    }
    let shared = schedule.tenants.iter().filter(|tenant| other.tenants.contains(tenant));
    let meeting = shared.into_iter().find(|tenant| schedule.event_id.may_meet(&other.event_id, tenant));
    if let Some(tenant) = meeting {
        entry.refuse(
            format!(
                "gives tenant {tenant} the event IDs of schedule {:?} ({} and {})",
                other.name, schedule.event_id, other.event_id
            ),
            "event IDs of its own at each destination, as {schedule} in the template makes them",
        );
    }
}
