//! What is known of secrets before anything is sent: whether they are there and can sign.

use waybill_domain::destination::SecretRef;
use waybill_domain::signature::SigningKey;
use waybill_http::{EnvSecrets, Secrets as _};
use waybill_service::config::Config;

/// Warns of every reference that would fail at use. Names the reference, never what is behind it.
pub(super) async fn warn_of_missing(config: &Config) {
    for destination in config.destinations.values() {
        for reference in &destination.secrets {
            if let Err(why) = signing(reference).await {
                tracing::warn!(destination = %destination.name, secret = %reference, why,
                    "a secret does not resolve: nothing is sent to this destination without it");
            }
        }
    }
    for (producer, settings) in &config.producers {
        for reference in &settings.tokens {
            if let Err(why) = token(reference).await {
                tracing::warn!(producer, secret = %reference, why,
                    "a token does not resolve: nobody can publish with it");
            }
        }
    }
}

async fn signing(reference: &SecretRef) -> Result<(), String> {
    let text = EnvSecrets.resolve(reference).await.map_err(|error| error.to_string())?;
    SigningKey::parse("the secret", &text).map(drop).map_err(|invalid| format!("it {}", invalid.fault))
}

/// A producer's token. An empty one is none: nobody gets in by sending nothing.
async fn token(reference: &SecretRef) -> Result<String, String> {
    match EnvSecrets.resolve(reference).await {
        Ok(text) if text.is_empty() => Err("it is empty".to_owned()),
        Ok(text) => Ok(text),
        Err(error) => Err(error.to_string()),
    }
}
