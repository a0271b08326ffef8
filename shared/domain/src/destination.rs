//! A configured recipient of a tenant: where, how, and what it subscribes to.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::address::RecipientUrl;
use crate::budget::Budget;
use crate::fault::InvalidField;
use crate::identity::{DestinationName, EventType, TenantId};
use crate::look_up::StatusUrl;
use crate::outcome::{StatusOverride, StatusOverrides};
use crate::policy::Policy;
use crate::static_header::StaticHeader;
use crate::suspension::SuspendRules;
use crate::time::DurationMs;

/// The status that may suspend a destination; its reading then is not the operator's own.
const GONE: u16 = 410;

/// Where and how one recipient wants its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Destination {
    /// Its name in the configuration.
    pub name: DestinationName,
    /// The tenants that may send to it.
    pub tenants: Vec<TenantId>,
    /// Who is asked when it fails.
    pub owner: Option<String>,
    /// Where requests go.
    pub url: RecipientUrl,
    /// What signs them: one reference, or two while rotating.
    pub secrets: Vec<SecretRef>,
    /// What it wants with every request beside Waybill's own header fields.
    pub headers: Vec<StaticHeader>,
    /// The types it subscribes to, for events that name no destination.
    pub event_types: Vec<EventPattern>,
    /// Retry rules.
    pub policy: Policy,
    /// The whole budget of one attempt, from connecting to the last byte that is read.
    pub timeout: DurationMs,
    /// What it may be asked to bear; whatever comes, where there is none.
    pub budget: Option<Budget>,
    /// When it is suspended; never, where there are no rules.
    pub suspension: Option<SuspendRules>,
    /// What follows an attempt whose effect nobody knows.
    pub on_ambiguous: OnAmbiguous,
    /// Where it is asked what became of a request, with [`OnAmbiguous::Query`].
    pub status_url: Option<StatusUrl>,
    /// Its own reading of single statuses.
    pub statuses: StatusOverrides,
    /// Whether the recipient's answer is kept as the delivery's result.
    pub keep_result: bool,
}

impl Destination {
    /// The same under other retry rules.
    pub fn under(&self, policy: Policy) -> Self {
        Self { policy, ..self.clone() }
    }

    /// Whether `tenant` may send to it.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenants.contains(tenant)
    }

    /// Tells configurations of it apart, in sixteen hexadecimal digits: where its requests go, what
    /// signs them, which header fields go with them, and how its answers are read. Retry rules, names
    /// and owners do not count, nor does when it is suspended: they mend nothing that a recipient refused
    /// for good.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        part(self.url.as_url().as_str());
        for secret in &self.secrets {
            part(&secret.to_string());
        }
        for header in &self.headers {
            part(&header.to_string());
        }
        let is_gone_read = self.suspension.as_ref().is_some_and(|rules| rules.on_gone);
        let read = self.statuses.iter().filter(|(status, _)| !(is_gone_read && **status == GONE));
        for (status, reading) in read {
            let reading = match reading {
                StatusOverride::Delivered => "delivered",
                StatusOverride::Retryable => "retryable",
                StatusOverride::Permanent => "permanent",
            };
            part(&format!("{status}={reading}"));
        }
        hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether an event of this type that names no destination goes here.
    pub fn subscribes_to(&self, event_type: &EventType) -> bool {
        self.event_types.iter().any(|pattern| pattern.matches(event_type))
    }
}

/// What follows an attempt that the recipient may have applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnAmbiguous {
    /// The same request again: its deduplication by `idempotency-key` keeps the effect single.
    #[default]
    Retry,
    /// The recipient is asked first, at its status URL.
    Query,
    /// A dead letter: a person decides.
    Hold,
}

/// One event type, or all that begin alike: `lease.payment_recorded`, `lease.*`, `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventPattern(String);

/// The rule that [`EventPattern::parse`] holds, for error texts.
pub const PATTERN_RULE: &str = "an event type, or the beginning of one and a final *, such as lease.*";

impl EventPattern {
    /// Reads a pattern. Only a final `*` is one.
    pub fn parse(text: &str) -> Result<Self, InvalidField> {
        let prefix = text.strip_suffix('*').unwrap_or(text);
        if !(prefix.is_empty() && text == "*") {
            EventType::parse(prefix)
                .map_err(|invalid| InvalidField::new("event_types", invalid.fault, PATTERN_RULE))?;
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether the pattern covers `event_type`.
    pub fn matches(&self, event_type: &EventType) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => event_type.as_str().starts_with(prefix),
            None => event_type.as_str() == self.0,
        }
    }

    /// Whether some type is of both.
    pub fn meets(&self, other: &Self) -> bool {
        match (self.0.strip_suffix('*'), other.0.strip_suffix('*')) {
            (None, None) => self == other,
            (Some(begin), None) => other.0.starts_with(begin),
            (None, Some(begin)) => self.0.starts_with(begin),
            (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
        }
    }
}

impl TryFrom<String> for EventPattern {
    type Error = InvalidField;
    fn try_from(text: String) -> Result<Self, InvalidField> {
        Self::parse(&text)
    }
}

impl From<EventPattern> for String {
    fn from(pattern: EventPattern) -> String {
        pattern.0
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Where a secret is kept; never the secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretRef {
    /// An environment variable of this process: `env:NAME`.
    Env(String),
    /// A parameter of SSM's: `ssm:/path/name`.
    Ssm(String),
    /// A secret of Secrets Manager's, by name or ARN: `secretsmanager:name`.
    SecretsManager(String),
}

impl SecretRef {
    /// Reads a reference. The text is not echoed: people paste secrets where references belong.
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidField> {
        let rule = "a reference to a secret, such as env:ACME_WEBHOOK_SECRET";
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, rule));
        match text.split_once(':') {
            Some(("env", name)) if is_variable_name(name) => Ok(Self::Env(name.to_owned())),
            Some(("env", _)) => refuse("names no environment variable (A-Z a-z 0-9 _)"),
            Some(("ssm", name)) if is_name_on_aws(name) => Ok(Self::Ssm(name.to_owned())),
            Some(("ssm", _)) => refuse("names no parameter (A-Z a-z 0-9 . _ - / :)"),
            Some(("secretsmanager", name)) if is_name_on_aws(name) => {
                Ok(Self::SecretsManager(name.to_owned()))
            }
            Some(("secretsmanager", _)) => refuse("names no secret (A-Z a-z 0-9 / _ + = . @ : -)"),
            _ => refuse("is not a reference; a secret itself must not stand here"),
        }
    }
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Names and ARNs alike; what exactly is allowed is for the service to say.
fn is_name_on_aws(name: &str) -> bool {
    (1..=2048).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+=.@:-".contains(&b))
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::Ssm(name) => write!(f, "ssm:{name}"),
            SecretRef::SecretsManager(name) => write!(f, "secretsmanager:{name}"),
        }
    }
}
