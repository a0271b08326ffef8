//! Secrets from SSM (`ssm:NAME`), Secrets Manager (`secretsmanager:NAME or ARN`) and the environment
//! (`env:NAME`): resolved at use, held for at most five minutes, never stored, never printed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use waybill_domain::destination::SecretRef;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_http::secrets::{EnvSecrets, SecretError, Secrets};
use waybill_service::ports::Clock;

use crate::clients::Clients;

/// How long a secret is held: after a rotation the old one is used for no longer.
pub const HOLD: DurationMs = DurationMs::from_secs(300);

/// The secrets of an account.
pub struct AwsSecrets<C> {
    clients: Clients,
    clock: C,
    held: Mutex<HashMap<SecretRef, Held>>,
}

struct Held {
    text: String,
    until: TimeMs,
}

impl<C: Clock> AwsSecrets<C> {
    /// Asked through these clients.
    pub fn new(clients: Clients, clock: C) -> Self {
        Self { clients, clock, held: Mutex::default() }
    }

    fn held(&self, reference: &SecretRef, now: TimeMs) -> Option<String> {
        let held = self.held.lock().ok()?;
        held.get(reference).filter(|held| now < held.until).map(|held| held.text.clone())
    }

    async fn ssm(&self, name: &str) -> Result<String, SecretError> {
        let asking = self.clients.ssm.get_parameter().name(name).with_decryption(true);
        match asking.send().await {
            Ok(answer) => answer.parameter.and_then(|found| found.value).ok_or(SecretError::Missing),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_parameter_not_found()) => {
                Err(SecretError::Missing)
            }
            Err(error) => Err(unavailable(&error)),
        }
    }

    async fn secrets_manager(&self, name: &str) -> Result<String, SecretError> {
        let asking = self.clients.secrets_manager.get_secret_value().secret_id(name);
        match asking.send().await {
            Ok(answer) => answer.secret_string.ok_or(SecretError::NotText),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_not_found_exception()) => {
                Err(SecretError::Missing)
            }
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl<C: Clock> Secrets for AwsSecrets<C> {
    async fn resolve(&self, reference: &SecretRef) -> Result<String, SecretError> {
        let now = self.clock.now();
        if let Some(text) = self.held(reference, now) {
            return Ok(text);
        }
        let text = match reference {
            SecretRef::Env(_) => return EnvSecrets.resolve(reference).await,
            SecretRef::Ssm(name) => self.ssm(name).await?,
            SecretRef::SecretsManager(name) => self.secrets_manager(name).await?,
        };
        if let Ok(mut held) = self.held.lock() {
            held.insert(reference.clone(), Held { text: text.clone(), until: now.plus(HOLD) });
        }
        Ok(text)
    }
}

/// What went wrong, by its code alone: messages of services repeat what they were asked.
fn unavailable<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> SecretError {
    SecretError::Unavailable(match error {
        SdkError::ServiceError(refusal) => refusal.err().code().unwrap_or("refused").to_owned(),
        SdkError::TimeoutError(_) => "timed out".to_owned(),
        SdkError::DispatchFailure(_) => "not reached".to_owned(),
        _ => "not understood".to_owned(),
    })
}

impl<C> fmt::Debug for AwsSecrets<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsSecrets").finish_non_exhaustive()
    }
}
