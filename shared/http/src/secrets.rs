//! Where secrets come from, those that sign and those that header fields carry: resolved at use, never stored, never printed.
//!
//! [`Secrets`] turns a reference into the secret's text; the texts become keys and header fields here,
//! and live as long as one attempt.

use std::env;
use std::future::Future;

use http::header::{HeaderName, HeaderValue};
use thiserror::Error;
use waybill_domain::attempt::Phase;
use waybill_domain::destination::{Destination, SecretRef};
use waybill_domain::outcome::Seen;
use waybill_domain::signature::SigningKey;
use waybill_domain::static_header::{self, StaticHeader};

use crate::budget::{Budget, Elapsed};
use crate::report::Fault;

/// A store of secrets.
pub trait Secrets: Send + Sync {
    /// The secret's text.
    fn resolve(&self, reference: &SecretRef) -> impl Future<Output = Result<String, SecretError>> + Send;
}

/// A secret could not be had. Neither text nor cause may hold any part of it: both are shown.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The store has nothing under this reference.
    #[error("there is no such secret")]
    Missing,
    /// What is stored is not text.
    #[error("it is not text")]
    NotText,
    /// The store cannot be asked right now.
    #[error("the store of secrets cannot be asked: {0}")]
    Unavailable(String),
}

/// Secrets in environment variables of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvSecrets;

impl Secrets for EnvSecrets {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        match reference {
            SecretRef::Env(name) => env::var(name).map_err(|error| match error {
                env::VarError::NotPresent => SecretError::Missing,
                env::VarError::NotUnicode(_) => SecretError::NotText,
            }),
            SecretRef::Ssm(_) | SecretRef::SecretsManager(_) => {
                Err(SecretError::Unavailable("this backend resolves only env: references".to_owned()))
            }
        }
    }
}

/// What signs one attempt and opens the recipient's door. Has no `Debug`: nothing of it may be shown.
pub(crate) struct Signing {
    /// One key, or two while rotating.
    pub(crate) keys: Vec<SigningKey>,
    /// The destination's own header fields.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    texts: Vec<String>,
}

impl Signing {
    /// The secrets as they are written, for the redaction of answers that echo them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

/// Every secret of a destination. One that cannot be had stops the attempt: a recipient in the
/// middle of a rotation verifies with the one key that would be missing, and one that wants a header
/// would refuse what comes without it.
pub(crate) async fn signing<S: Secrets>(
    secrets: &S,
    destination: &Destination,
    budget: &Budget,
) -> Result<Signing, Fault> {
    let mut signing = Signing { keys: Vec::new(), headers: Vec::new(), texts: Vec::new() };
    for reference in &destination.secrets {
        let text = text(secrets, reference, budget).await?;
        let key = SigningKey::parse("the secret", &text).map_err(|invalid| {
            unavailable(format!(
                "the secret {reference} cannot sign: it {} ({})",
                invalid.fault, invalid.rule
            ))
        })?;
        signing.keys.push(key);
        signing.texts.push(text);
    }
    if signing.keys.is_empty() {
        return Err(unavailable("the destination has no signing secret, and nothing is sent unsigned"));
    }
    for header in &destination.headers {
        let text = text(secrets, &header.value, budget).await?;
        signing.headers.push(field(header, &text)?);
        // A recipient may echo the token alone, without the scheme before it.
        signing.texts.extend(text.rsplit_once(' ').map(|(_, token)| token.to_owned()));
        signing.texts.push(text);
    }
    Ok(signing)
}

async fn text<S: Secrets>(secrets: &S, reference: &SecretRef, budget: &Budget) -> Result<String, Fault> {
    match budget.within(secrets.resolve(reference)).await {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(unavailable(format!("the secret {reference} is missing: {error}"))),
        Err(Elapsed) => Err(unavailable(format!("the secret {reference} was not had {}", budget.in_words()))),
    }
}

/// A header field of the destination's. No tool that shows headers shows its value.
fn field(header: &StaticHeader, text: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    let StaticHeader { name, value: reference } = header;
    let refused = |fault: &str, rule: &str| {
        unavailable(format!(
            "the secret {reference} cannot be sent as the header {name}: it {fault} ({rule})"
        ))
    };
    static_header::check_value("the secret", text)
        .map_err(|invalid| refused(&invalid.fault, &invalid.rule))?;
    let (Ok(name), Ok(mut value)) =
        (HeaderName::from_bytes(name.as_str().as_bytes()), HeaderValue::from_str(text))
    else {
        return Err(refused("is not a header", "a name and a value that HTTP can write"));
    };
    value.set_sensitive(true);
    Ok((name, value))
}

fn unavailable(note: impl Into<String>) -> Fault {
    Fault::saw(Seen::SecretUnavailable, Phase::Prepare, note)
}
