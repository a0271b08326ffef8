//! `[destinations.NAME]`: where a recipient is, what signs for it, and how it wants to be treated.

use waybill_domain::address::{Locality, RecipientUrl, URL_RULE};
use waybill_domain::admit::longest_timeout;
use waybill_domain::budget::{Budget, Rate};
use waybill_domain::destination::{Destination, EventPattern, OnAmbiguous, SecretRef};
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::look_up::StatusUrl;
use waybill_domain::outcome::{StatusOverride, StatusOverrides};
use waybill_domain::static_header::{StaticHeader, StaticHeaderName};
use waybill_domain::time::DurationMs;

use super::destination_keys::{
    AMBIGUOUS_RULE, CONCURRENCY_RULE, HEADERS_RULE, LONGEST_TIMEOUT, MOST_HEADERS, OWNER_RULE, SECRETS_RULE,
    SHORTEST_TIMEOUT, STATUSES_RULE, TABLE, TENANTS_RULE, TIMEOUT_RULE,
};
use super::files::Files;
use super::policies::{self, DEFAULT, Policies};
use super::reader::{Entry, Section};
use super::suspending::Suspending;
use super::{Rules, SecretStores};
use crate::payload_schema::PayloadSchema;

/// The schema that a destination names, if it names one that is good.
pub(super) fn schema(entry: &Entry<'_, '_>, files: &Files<'_, '_>) -> Option<PayloadSchema> {
    // What is no table is reported where the destination is read.
    let named = entry.get("schema")?;
    files.schema(&named)
}

/// Whether metrics name it. What is no boolean is reported.
pub(super) fn is_measured(entry: &Entry<'_, '_>) -> bool {
    entry.get("metrics").and_then(|written| written.as_bool()).unwrap_or(false)
}

pub(super) fn read(entry: &Entry<'_, '_>, policies: &Policies, rules: Rules) -> Option<Destination> {
    let name = entry.parsed_name(|name| DestinationName::parse(name));
    let section = entry.as_section(&TABLE)?;
    let url = section
        .require("url", URL_RULE)
        .and_then(|entry| entry.parsed(|field, text| url(field, text, rules.locality)));
    let tenants = tenants(&section);
    let secrets = section
        .require("secrets", SECRETS_RULE)
        .and_then(|entry| entry.parsed_list(1, 2, SECRETS_RULE, |item| secret(item, rules)));
    let policy = match section.get("policy") {
        Some(entry) => policies::named(&entry, policies),
        None => policies.get(DEFAULT).copied(),
    };
    let mut optional = Optional::default();
    let sound = optional.read(&section, rules);
    let fits = rules.worker_runs.is_none_or(|runs| fits(&section, optional.timeout, runs));
    Some(Destination {
        name: name?,
        tenants: tenants?,
        url: url?,
        secrets: secrets?,
        headers: optional.headers,
        policy: policy.filter(|_| sound && fits)?,
        owner: optional.owner,
        event_types: optional.event_types,
        timeout: optional.timeout,
        budget: Budget::of(optional.concurrency, optional.rate),
        suspension: optional.suspension.rules(),
        on_ambiguous: optional.on_ambiguous,
        status_url: optional.status_url,
        statuses: optional.statuses,
        keep_result: optional.keep_result,
    })
}

/// What a destination may leave unsaid, with the defaults.
struct Optional {
    owner: Option<String>,
    headers: Vec<StaticHeader>,
    event_types: Vec<EventPattern>,
    timeout: DurationMs,
    concurrency: Option<u32>,
    rate: Option<Rate>,
    on_ambiguous: OnAmbiguous,
    status_url: Option<StatusUrl>,
    statuses: StatusOverrides,
    keep_result: bool,
    suspension: Suspending,
}

impl Default for Optional {
    fn default() -> Self {
        Self {
            owner: None,
            headers: Vec::new(),
            event_types: Vec::new(),
            timeout: DurationMs::from_secs(15),
            concurrency: None,
            rate: None,
            on_ambiguous: OnAmbiguous::default(),
            status_url: None,
            statuses: StatusOverrides::new(),
            keep_result: false,
            suspension: Suspending::default(),
        }
    }
}

impl Optional {
    /// Reads what is written; `false` if any of it was refused.
    fn read(&mut self, section: &Section<'_, '_>, rules: Rules) -> bool {
        let outcomes = [
            section.set("owner", &mut self.owner, |entry| entry.parsed(owner).map(Some)),
            section.set("event_types", &mut self.event_types, event_types),
            section.set("timeout", &mut self.timeout, |entry| entry.parsed(timeout)),
            section.set("concurrency", &mut self.concurrency, |entry| concurrency(entry).map(Some)),
            section.set("rate", &mut self.rate, |entry| entry.parsed(Rate::parse).map(Some)),
            section.set("on_ambiguous", &mut self.on_ambiguous, on_ambiguous),
            section.set("status_url", &mut self.status_url, |entry| {
                entry.parsed(|field, text| StatusUrl::parse(field, text, rules.locality)).map(Some)
            }),
            section.set("statuses", &mut self.statuses, statuses),
            section.set("keep_result", &mut self.keep_result, Entry::as_bool),
            section.set("headers", &mut self.headers, |entry| headers(entry, rules)),
            self.suspension.read(section),
        ];
        !outcomes.contains(&false)
            && self.asks_somewhere(section)
            && self.suspension.settle(section, &mut self.statuses)
    }
}

impl Optional {
    /// A look-up needs an address, and an address that nobody asks at is a mistake.
    fn asks_somewhere(&self, section: &Section<'_, '_>) -> bool {
        let queries = self.on_ambiguous == OnAmbiguous::Query;
        let invalid = match (queries, self.status_url.is_some()) {
            (true, false) => {
                InvalidField::new("status_url", "is missing", "on_ambiguous = \"query\" asks there")
            }
            (false, true) => InvalidField::new(
                "status_url",
                "is never asked",
                "only together with on_ambiguous = \"query\"",
            ),
            _ => return true,
        };
        section.refuse(invalid);
        false
    }
}

fn event_types(entry: &Entry<'_, '_>) -> Option<Vec<EventPattern>> {
    entry.parsed_list(0, usize::MAX, "each event type once", |item| {
        item.parsed(|_, text| EventPattern::parse(text))
    })
}

/// What only the switch for local trials would take is refused with its name.
fn url(field: &str, text: &str, locality: Locality) -> Result<RecipientUrl, InvalidField> {
    RecipientUrl::parse(field, text, locality).map_err(|mut invalid| {
        if RecipientUrl::parse(field, text, Locality::AllowLocal).is_ok() {
            invalid.rule.push_str("; plain HTTP and this machine for local trials only, with --allow-local");
        }
        invalid
    })
}

/// `tenants`, at least one.
pub(super) fn tenants(section: &Section<'_, '_>) -> Option<Vec<TenantId>> {
    section.require("tenants", TENANTS_RULE)?.parsed_list(1, usize::MAX, TENANTS_RULE, |item| {
        item.parsed(|field, text| TenantId::parse(text).map_err(|invalid| invalid.of(field)))
    })
}

/// A reference to a secret. The text is never echoed: it may be the secret itself.
pub(super) fn secret(item: &Entry<'_, '_>, rules: Rules) -> Option<SecretRef> {
    let reference = item.parsed(SecretRef::parse)?;
    if rules.secrets == SecretStores::Environment && !matches!(reference, SecretRef::Env(_)) {
        item.refuse("is known on AWS alone: this backend resolves only env: references", "env:NAME");
        return None;
    }
    Some(reference)
}

fn owner(field: &str, text: &str) -> Result<String, InvalidField> {
    if text.is_empty() || text.len() > 256 || text.chars().any(char::is_control) {
        return Err(InvalidField::new(field, "is not a name or an address", OWNER_RULE));
    }
    Ok(text.to_owned())
}

fn timeout(field: &str, text: &str) -> Result<DurationMs, InvalidField> {
    let timeout = DurationMs::parse(field, text)?;
    if (SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&timeout) {
        return Ok(timeout);
    }
    Err(InvalidField::new(field, format!("is {timeout}"), TIMEOUT_RULE))
}

/// Whether a worker has the time for one attempt; reports it if not, also where nothing is written.
fn fits(section: &Section<'_, '_>, timeout: DurationMs, runs: DurationMs) -> bool {
    let longest = longest_timeout(runs);
    if timeout <= longest {
        return true;
    }
    let rule = format!("at most {longest}: the consumer runs for {runs}, with its beginning and its answer");
    match section.get("timeout") {
        Some(entry) => entry.refuse(format!("is {timeout}, and would never be sent to"), rule),
        None => section.missing("timeout", &rule),
    }
    false
}

fn concurrency(entry: &Entry<'_, '_>) -> Option<u32> {
    let read = entry.as_u32()?;
    if !(1..=Budget::MOST_CONCURRENCY).contains(&read) {
        entry.refuse(format!("is {read}"), CONCURRENCY_RULE);
        return None;
    }
    Some(read)
}

fn on_ambiguous(entry: &Entry<'_, '_>) -> Option<OnAmbiguous> {
    match entry.as_text()? {
        "retry" => return Some(OnAmbiguous::Retry),
        "hold" => return Some(OnAmbiguous::Hold),
        "query" => return Some(OnAmbiguous::Query),
        other => entry.refuse(format!("is {other:?}"), AMBIGUOUS_RULE),
    }
    None
}

/// `{ "x-api-key" = "env:ACME_API_KEY" }`: each name once, each value a reference.
fn headers(entry: &Entry<'_, '_>, rules: Rules) -> Option<Vec<StaticHeader>> {
    let entries = entry.as_entries()?;
    if entries.len() > MOST_HEADERS {
        entry.refuse(format!("has {}", entries.len()), HEADERS_RULE);
        return None;
    }
    let mut read: Vec<StaticHeader> = Vec::with_capacity(entries.len());
    for entry in &entries {
        let name = entry.parsed_name(|name| StaticHeaderName::parse("headers", name));
        let value = secret(entry, rules);
        match name.zip(value) {
            Some((name, _)) if read.iter().any(|known| known.name == name) => {
                entry.refuse("is listed twice", "each header once, in upper or lower case");
            }
            Some((name, value)) => read.push(StaticHeader { name, value }),
            None => {}
        }
    }
    (read.len() == entries.len()).then_some(read)
}

fn statuses(entry: &Entry<'_, '_>) -> Option<StatusOverrides> {
    let entries = entry.as_entries()?;
    let written = entries.len();
    let read: StatusOverrides = entries
        .iter()
        .filter_map(|entry| {
            let status = entry.name().parse::<u16>().ok().filter(|_| entry.name().len() == 3);
            let status = status.filter(|status| (100..=599).contains(status));
            if status.is_none() {
                entry.refuse("is not a status", "a status from 100 to 599");
            }
            let meaning = match entry.as_text()? {
                "retryable" => StatusOverride::Retryable,
                "permanent" => StatusOverride::Permanent,
                "delivered" => StatusOverride::Delivered,
                other => {
                    entry.refuse(format!("is {other:?}"), STATUSES_RULE);
                    return None;
                }
            };
            Some((status?, meaning))
        })
        .collect();
    (read.len() == written).then_some(read)
}
