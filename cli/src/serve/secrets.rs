//! What is known of secrets before anything is sent: whether they are there and can sign.

use std::fmt;

use waybill_domain::destination::SecretRef;
use waybill_domain::signature::SigningKey;
use waybill_domain::static_header::{self, StaticHeader};
use waybill_domain::verify::Scheme;
use waybill_http::secrets::SecretError;
use waybill_http::{EnvSecrets, Secrets as _};
use waybill_service::config::Config;

/// A reference that would fail at use. Names the reference, never what is behind it.
pub(crate) struct Unusable {
    reference: SecretRef,
    /// What is wrong with it: `is not set here`.
    why: String,
    /// What that stops.
    without: String,
}

impl Unusable {
    /// Says it to the log.
    pub(super) fn log(&self) {
        tracing::warn!(secret = %self.reference, why = self.why, "a secret does not resolve: {}", self.without);
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.reference, self.why, self.without)
    }
}

/// Every reference of the configuration that would fail at use, in this environment.
pub(crate) async fn unusable(config: &Config) -> Vec<Unusable> {
    let mut found = Vec::new();
    for destination in config.destinations.values() {
        for reference in &destination.secrets {
            if let Err(why) = signing(reference).await {
                let without = format!("nothing is sent to {} without it", destination.name);
                found.push(Unusable { reference: reference.clone(), why, without });
            }
        }
    }
    for destination in config.destinations.values() {
        for StaticHeader { name, value: reference } in &destination.headers {
            if let Err(why) = header(reference).await {
                let without = format!("nothing is sent to {} without its header {name}", destination.name);
                found.push(Unusable { reference: reference.clone(), why, without });
            }
        }
    }
    for (producer, settings) in &config.producers {
        for reference in &settings.tokens {
            if let Err(why) = token(reference).await {
                let without = format!("{producer} cannot publish over HTTP with it");
                found.push(Unusable { reference: reference.clone(), why, without });
            }
        }
    }
    for (producer, settings) in &config.producers {
        for reference in &settings.secrets {
            if let Err(why) = key(&Scheme::StandardWebhooks, reference).await {
                let without = format!("no signature of {producer} is verified with it");
                found.push(Unusable { reference: reference.clone(), why, without });
            }
        }
    }
    for (name, source) in &config.sources {
        for reference in &source.secrets {
            if let Err(why) = key(&source.scheme, reference).await {
                let without = format!("nothing of the source {name} is accepted with it");
                found.push(Unusable { reference: reference.clone(), why, without });
            }
        }
    }
    found
}

/// A secret that verifies what comes in.
async fn key(scheme: &Scheme, reference: &SecretRef) -> Result<(), String> {
    let parsed = scheme.key("the secret", &resolve(reference).await?);
    parsed.map(drop).map_err(|invalid| format!("cannot verify, it {} ({})", invalid.fault, invalid.rule))
}

async fn signing(reference: &SecretRef) -> Result<(), String> {
    let text = resolve(reference).await?;
    let parsed = SigningKey::parse("the secret", &text);
    parsed.map(drop).map_err(|invalid| format!("cannot sign, it {} ({})", invalid.fault, invalid.rule))
}

/// A value of a header field.
async fn header(reference: &SecretRef) -> Result<(), String> {
    let checked = static_header::check_value("the secret", &resolve(reference).await?);
    checked.map_err(|invalid| format!("cannot be sent, it {} ({})", invalid.fault, invalid.rule))
}

/// A producer's token. An empty one is none: nobody gets in by sending nothing.
async fn token(reference: &SecretRef) -> Result<String, String> {
    match resolve(reference).await {
        Ok(text) if text.is_empty() => Err("is empty".to_owned()),
        resolved => resolved,
    }
}

async fn resolve(reference: &SecretRef) -> Result<String, String> {
    EnvSecrets.resolve(reference).await.map_err(|error| match error {
        SecretError::Missing => "is not set here".to_owned(),
        SecretError::NotText => "is not text".to_owned(),
        SecretError::Unavailable(why) => format!("cannot be looked up: {why}"),
    })
}
