//! The keys of `[destinations.NAME]`, their bounds, and what a fault says of them.

use waybill_domain::address::URL_RULE;
use waybill_domain::budget::RATE_RULE;
use waybill_domain::destination::PATTERN_RULE;
use waybill_domain::look_up::STATUS_URL_RULE;
use waybill_domain::time::DurationMs;

use super::files::NAME_RULE;
use super::policies::POLICY_RULE;
use super::reference::{Key, Kind, Table};
use super::suspending::{AFTER_RULE, GONE_RULE};

pub(super) const SHORTEST_TIMEOUT: DurationMs = DurationMs::from_ms(100);
pub(super) const LONGEST_TIMEOUT: DurationMs = DurationMs::from_secs(60);
pub(super) const TIMEOUT_RULE: &str = "from 100ms to 60s";

pub(super) const CONCURRENCY_RULE: &str = "from 1 to 1000";

pub(super) const MOST_HEADERS: usize = 16;
pub(super) const HEADERS_RULE: &str = "at most 16 headers";

pub(super) const TENANTS_RULE: &str = "at least one tenant, each once";
pub(super) const SECRETS_RULE: &str = "one reference such as \"env:ACME_WEBHOOK_SECRET\", two while rotating";
pub(super) const OWNER_RULE: &str =
    "who is asked when the destination fails: 1 to 256 bytes without control characters";
pub(super) const AMBIGUOUS_RULE: &str = "\"retry\", \"query\" or \"hold\"";
pub(super) const STATUSES_RULE: &str = "\"retryable\", \"permanent\" or \"delivered\"";

pub(super) const TABLE: Table = Table {
    path: "destinations.NAME",
    says: "A recipient. An event names its destination, or goes to every destination of its tenant that \
           subscribes to its type.",
    keys: &[
        Key::new("tenants", Kind::List, "who may send to it").required().rule(TENANTS_RULE),
        Key::new("owner", Kind::Text, "a person or a team; shown with what fails").rule(OWNER_RULE),
        Key::new("url", Kind::Text, "where requests go").required().rule(URL_RULE),
        Key::new("secrets", Kind::List, "sign every request").required().rule(SECRETS_RULE),
        Key::new("event_types", Kind::List, "what it subscribes to; for any other type an event must name it")
            .default("[]")
            .rule(PATTERN_RULE),
        Key::new("policy", Kind::Text, "its retry rules").default("\"default\"").rule(POLICY_RULE),
        Key::new("timeout", Kind::Duration, "the whole of one attempt").default("\"15s\"").rule(TIMEOUT_RULE),
        Key::new("concurrency", Kind::Whole, "requests at once, of all workers together; what finds no room waits")
            .rule(CONCURRENCY_RULE),
        Key::new(
            "rate",
            Kind::Text,
            "starts, on average; after a pause so many may start at once. Without concurrency: 16 at once",
        )
        .rule(RATE_RULE),
        Key::new(
            "on_ambiguous",
            Kind::Text,
            "what follows where the answer was lost: the same ID again, the recipient is asked at status_url \
             first, or a person decides",
        )
        .default("\"retry\"")
        .rule(AMBIGUOUS_RULE),
        Key::new(
            "status_url",
            Kind::Text,
            "with on_ambiguous = \"query\", and only then: a signed GET; 2xx means applied, 404 not applied, \
             anything else is asked again as the next attempt",
        )
        .rule(STATUS_URL_RULE),
        Key::new(
            "statuses",
            Kind::Table,
            "its own reading of single statuses, 100 to 599, such as { 404 = \"retryable\" }",
        )
        .default("{}")
        .rule(STATUSES_RULE),
        Key::new("keep_result", Kind::Truth, "whether 2 KiB of the recipient's answer are kept")
            .default("false"),
        Key::new(
            "schema",
            Kind::Text,
            "a JSON Schema that refers only to itself; a payload that it refuses is refused at publish",
        )
        .rule(NAME_RULE),
        Key::new(
            "headers",
            Kind::Table,
            "sent with every request, such as { \"x-api-key\" = \"env:ACME_API_KEY\" }: names that neither \
             Waybill nor HTTP writes itself, values by reference like the secrets",
        )
        .default("{}")
        .rule(HEADERS_RULE),
        Key::new("gone", Kind::Text, "what 410 does").default("\"dead_letter\"").rule(GONE_RULE),
        Key::new(
            "suspend_after",
            Kind::Whole,
            "after so many failures in a row that only a person can mend (401, 403, 407), or so many in a row \
             that nobody reaches it, it is suspended; without it, never",
        )
        .rule(AFTER_RULE),
        Key::new("metrics", Kind::Truth, "whether metrics name it; those without share the label \"other\"")
            .default("false"),
    ],
    later: &[],
};
