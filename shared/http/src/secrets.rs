//! Where signing secrets come from: resolved at use, never stored, never printed.
//!
//! [`Secrets`] turns a reference into the secret's text; the texts become keys here, and live as
//! long as one attempt.

use std::env;
use std::future::Future;

use thiserror::Error;
use waybill_domain::attempt::Phase;
use waybill_domain::destination::SecretRef;
use waybill_domain::outcome::Seen;
use waybill_domain::signature::SigningKey;

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

/// What signs one attempt. Has no `Debug`: nothing of it may be shown.
pub(crate) struct Signing {
    /// One key, or two while rotating.
    pub(crate) keys: Vec<SigningKey>,
    texts: Vec<String>,
}

impl Signing {
    /// The secrets as they are written, for the redaction of answers that echo them.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }
}

/// Every secret of a destination. One that cannot be had stops the attempt: a recipient in the
/// middle of a rotation verifies with the one key that would be missing.
pub(crate) async fn signing<S: Secrets>(
    secrets: &S,
    references: &[SecretRef],
    budget: &Budget,
) -> Result<Signing, Fault> {
    let mut signing = Signing { keys: Vec::new(), texts: Vec::new() };
    for reference in references {
        let text = match budget.within(secrets.resolve(reference)).await {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => return Err(unavailable(format!("the secret {reference} is missing: {error}"))),
            Err(Elapsed) => {
                return Err(unavailable(format!("the secret {reference} was not had {}", budget.in_words())));
            }
        };
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
    Ok(signing)
}

fn unavailable(note: impl Into<String>) -> Fault {
    Fault::saw(Seen::SecretUnavailable, Phase::Prepare, note)
}
