//! The status look-up of `on_ambiguous = "query"`: before an attempt that follows one which the
//! recipient may have applied, the recipient is asked what became of that one.

use std::fmt;

use crate::address::{Locality, RecipientUrl};
use crate::attempt::{NotSent, SendReport, Sending};
use crate::delivery::Record;
use crate::destination::{Destination, OnAmbiguous};
use crate::fault::InvalidField;
use crate::identity::{DeliveryId, EventId};
use crate::outcome::{Applied, Failure, FailureClass, Outcome, Seen, StatusOverrides, Verdict, classify};
use crate::placeholder;

/// Where a recipient is asked: a URL with `{delivery_id}` or `{event_id}` in its path or query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUrl {
    template: String,
    locality: Locality,
    /// How many segments the path has, whatever is filled in.
    segments: usize,
}

const PLACES: [&str; 2] = ["{delivery_id}", "{event_id}"];

/// The rule that [`StatusUrl::parse`] holds, for error texts.
pub const STATUS_URL_RULE: &str = "a URL as for url, with {delivery_id} or {event_id} in its path or query";

impl StatusUrl {
    /// Judges the text of a template as a recipient's URL is judged, whatever is filled in.
    pub fn parse(field: &str, text: &str, locality: Locality) -> Result<Self, InvalidField> {
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, STATUS_URL_RULE));
        if !PLACES.iter().any(|place| text.contains(place)) {
            return refuse("has neither {delivery_id} nor {event_id} in it");
        }
        let filled = fill(text, "x", "x");
        if filled.contains(['{', '}']) {
            return refuse("has a brace that belongs to neither {delivery_id} nor {event_id}");
        }
        let url = RecipientUrl::parse(field, &filled, locality)?;
        let authority = text.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        if authority.contains('{') {
            return refuse("has a placeholder in its host");
        }
        Ok(Self { template: text.to_owned(), locality, segments: segments(&url) })
    }

    /// The URL for one delivery, everything but letters, digits and `-._~` percent-encoded. An event
    /// ID of dots alone that would climb in the path is refused.
    pub fn fill(&self, delivery_id: &DeliveryId, event_id: &EventId) -> Result<RecipientUrl, InvalidField> {
        let filled = fill(&self.template, delivery_id.as_str(), event_id.as_str());
        let url = RecipientUrl::parse("status_url", &filled, self.locality)?;
        if segments(&url) == self.segments {
            return Ok(url);
        }
        Err(InvalidField::new("status_url", "would change its path for this event ID", STATUS_URL_RULE))
    }

    /// Scheme, host and port: what may stand in a log.
    pub fn origin(&self) -> String {
        let url = RecipientUrl::parse("status_url", &fill(&self.template, "x", "x"), self.locality);
        url.map(|url| url.origin()).unwrap_or_default()
    }
}

impl fmt::Display for StatusUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.template)
    }
}

/// An event ID that looks like a placeholder is none.
fn fill(template: &str, delivery_id: &str, event_id: &str) -> String {
    let [of_delivery, of_event] = PLACES;
    placeholder::fill(template, &[(of_delivery, &encoded(delivery_id)), (of_event, &encoded(event_id))])
}

/// RFC 3986, 2.3: what is not unreserved is encoded.
fn encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn segments(url: &RecipientUrl) -> usize {
    url.as_url().path_segments().map_or(0, Iterator::count)
}

/// Whether the recipient is asked before the record's next attempt is sent: its last one may have
/// been applied, by whatever path the delivery came here (a retry, a lapsed claim, a redrive).
pub fn is_owed(record: &Record, destination: &Destination) -> bool {
    let in_doubt = record.last_failure.as_ref().is_some_and(|last| last.failure.applied == Applied::Unknown);
    in_doubt && destination.on_ambiguous == OnAmbiguous::Query
}

/// What a look-up came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// 404: the recipient knows nothing of it, so it may be sent.
    NotApplied,
    /// The attempt is settled by this report, and nothing is sent: confirmed, or still in doubt.
    Settles(SendReport),
    /// The right to ask had run out, as the right to send would have.
    NotAsked(NotSent),
}

impl Finding {
    /// What the attempt comes to without a request; `None` where the request may be sent.
    pub fn instead_of_sending(self) -> Option<Sending> {
        match self {
            Finding::NotApplied => None,
            Finding::Settles(report) => Some(Sending::Attempted(report)),
            Finding::NotAsked(why) => Some(Sending::NotSent(why)),
        }
    }
}

/// The one reading of what a look-up saw: 2xx is applied, 404 is not (`None`: send), and anything
/// else leaves the doubt, so that the look-up is made again. Status overrides are for requests, and
/// do not count here.
pub fn judge(seen: Seen) -> Option<Outcome> {
    match seen {
        Seen::Status(200..300) => Some(Outcome::Delivered),
        Seen::Status(404) => None,
        _ => Some(Outcome::Failed(Failure {
            verdict: Verdict::Retryable,
            class: match classify(seen, &StatusOverrides::new()) {
                Outcome::Failed(failure) => failure.class,
                Outcome::Delivered => FailureClass::Protocol,
            },
            applied: Applied::Unknown,
        })),
    }
}
