//! `[sources.NAME]`: whose webhooks come in, how they are verified, and where in a request stands what
//! Waybill must know of its event.

use std::collections::BTreeMap;
use std::sync::Arc;

use waybill_domain::destination::Destination;
use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DestinationName, EventType, TenantId};
use waybill_domain::source::{PLACE_RULE, Place, Source, TypeFrom};
use waybill_domain::verify::Scheme;

use super::Rules;
use super::destinations::secret;
use super::reader::{Entry, Section};
use super::reference::{Key, Kind, Table};
use super::schemes;

const SECRETS_RULE: &str = "at least one reference such as \"env:STRIPE_SECRET\", two while rotating: \
                            without one nothing is accepted";

const ID_RULE: &str = "\"header:NAME\", or a JSON pointer such as \"/id\": an ID is never made up";

const TYPE_RULE: &str = "\"header:NAME\", a JSON pointer such as \"/type\", or an event type";

const TENANT_RULE: &str = "the tenant for which its events are published";
const SCHEME_RULE: &str = "\"standard-webhooks\", \"github\", \"stripe\" or \"hmac\"";
const DESTINATION_RULE: &str = "a destination that serves the source's tenant";

pub(super) const TABLE: Table = Table {
    path: "sources.NAME",
    says: "Somebody else's webhooks: taken at `POST /v1/sources/NAME` once their signature is verified over the \
           raw bytes, and forwarded as they are.",
    keys: &[
        Key::new("tenant", Kind::Text, "one for all its events").required().rule(TENANT_RULE),
        Key::new("scheme", Kind::Text, "how the sender signs").required().rule(SCHEME_RULE),
        Key::new(
            "signature",
            Kind::Table,
            "with scheme = \"hmac\", and only then: see `sources.NAME.signature`",
        ),
        Key::new("secrets", Kind::List, "verify its signatures").required().rule(SECRETS_RULE),
        Key::new(
            "destination",
            Kind::Text,
            "to this one alone, instead of to every destination of the tenant that subscribes to the type",
        )
        .rule(DESTINATION_RULE),
        Key::new("event_id", Kind::Text, "where the sender's ID stands").required().rule(ID_RULE),
        Key::new("event_type", Kind::Text, "where the type stands, or which one it always is")
            .required()
            .rule(TYPE_RULE),
        Key::new("deadline", Kind::Text, "where the deadline stands: RFC 3339 with an offset")
            .rule(PLACE_RULE),
        Key::new("scope", Kind::Text, "where the scope stands").rule(PLACE_RULE),
        Key::new("payload_version", Kind::Whole, "the version of its payloads, which a hold may name"),
    ],
    later: &[],
};

/// The destinations of the file: their names, and those that were read without a fault.
pub(super) struct Destinations<'a> {
    pub(super) written: Vec<&'a str>,
    pub(super) read: &'a BTreeMap<DestinationName, Arc<Destination>>,
}

pub(super) fn read(
    entry: &Entry<'_, '_>,
    destinations: &Destinations<'_>,
    rules: Rules,
) -> Option<(String, Source)> {
    // Sources and destinations are named by the same rule.
    let name = entry.parsed_name(|name| DestinationName::parse(name).map_err(|i| i.of("source")));
    let section = entry.as_section(&TABLE)?;
    let tenant = section
        .require("tenant", TENANT_RULE)
        .and_then(|entry| entry.parsed(|field, text| TenantId::parse(text).map_err(|i| i.of(field))));
    let scheme = scheme(&section);
    let secrets = section
        .require("secrets", SECRETS_RULE)
        .and_then(|entry| entry.parsed_list(1, 2, SECRETS_RULE, |item| secret(item, rules)));
    let event_id = section.require("event_id", ID_RULE).and_then(|entry| entry.parsed(Place::parse));
    let event_type = section.require("event_type", TYPE_RULE).and_then(|entry| entry.parsed(type_from));
    let (mut to, mut deadline, mut scope, mut payload_version) = (None, None, None, None);
    let sound = [
        section.set("destination", &mut to, |entry| destination(entry, tenant.as_ref(), destinations)),
        section.set("deadline", &mut deadline, |entry| entry.parsed(Place::parse).map(Some)),
        section.set("scope", &mut scope, |entry| entry.parsed(Place::parse).map(Some)),
        section.set("payload_version", &mut payload_version, |entry| entry.as_u32().map(Some)),
    ];
    let source = Source {
        tenant: tenant?,
        scheme: scheme?,
        secrets: secrets?,
        destination: to,
        event_id: event_id?,
        event_type: event_type?,
        deadline,
        scope,
        payload_version,
    };
    (!sound.contains(&false)).then_some((name?.as_str().to_owned(), source))
}

fn scheme(section: &Section<'_, '_>) -> Option<Scheme> {
    let entry = section.require("scheme", SCHEME_RULE)?;
    let written = section.get("signature");
    let scheme = match entry.as_text()? {
        "standard-webhooks" => Scheme::StandardWebhooks,
        "github" => Scheme::Github,
        "stripe" => Scheme::Stripe,
        "hmac" => {
            let Some(signature) = written else {
                section.missing("signature", "scheme \"hmac\" needs it: header, encoding, input");
                return None;
            };
            return schemes::hmac(&signature).map(Scheme::Hmac);
        }
        other => {
            entry.refuse(format!("is {other:?}"), SCHEME_RULE);
            return None;
        }
    };
    if let Some(signature) = written {
        signature.refuse("is for the scheme \"hmac\" alone", "the other schemes say how they sign");
        return None;
    }
    Some(scheme)
}

fn destination(
    entry: &Entry<'_, '_>,
    tenant: Option<&TenantId>,
    destinations: &Destinations<'_>,
) -> Option<Option<DestinationName>> {
    let name = entry.parsed(|field, text| DestinationName::parse(text).map_err(|i| i.of(field)))?;
    if !destinations.written.contains(&name.as_str()) {
        entry.refuse(format!("no destination is named {:?}", name.as_str()), DESTINATION_RULE);
        return None;
    }
    if let (Some(found), Some(tenant)) = (destinations.read.get(&name), tenant)
        && !found.serves(tenant)
    {
        entry.refuse(format!("{:?} does not serve {tenant}", name.as_str()), DESTINATION_RULE);
        return None;
    }
    Some(Some(name))
}

/// A place, or a type that it always is.
fn type_from(field: &str, text: &str) -> Result<TypeFrom, InvalidField> {
    if text.starts_with('/') || text.starts_with("header:") {
        return Place::parse(field, text).map(TypeFrom::Place);
    }
    let typed = EventType::parse(text).map(TypeFrom::Always);
    typed.map_err(|invalid| InvalidField::new(field, invalid.fault, TYPE_RULE))
}
