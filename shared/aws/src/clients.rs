//! The clients of AWS: one configuration, one HTTP client, every time bounded.
//!
//! Connecting, each attempt and the whole of a call have their limits, so that a call always ends
//! long before its function does. A connection that lay idle for a moment is not used again: after
//! a freeze the other side has closed it. Region, credentials and `AWS_ENDPOINT_URL` are taken from
//! the environment, as every tool for AWS takes them.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, SdkConfig};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

/// How long one call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection stands.
    pub connect: Duration,
    /// One attempt of the SDK, with its answer.
    pub attempt: Duration,
    /// All attempts of the SDK together.
    pub total: Duration,
    /// How many attempts the SDK makes. A write of ours that it repeats is recognised by its token.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(1000),
            attempt: Duration::from_millis(3000),
            total: Duration::from_millis(8000),
            attempts: 3,
        }
    }
}

/// How long a connection may lie idle and be used again.
const IDLE: Duration = Duration::from_secs(4);

/// Clients of every service that Waybill uses.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The ledger.
    pub dynamo: aws_sdk_dynamodb::Client,
    /// Wake-ups and dead letters.
    pub sqs: aws_sdk_sqs::Client,
    /// Large payloads and configuration documents.
    pub s3: aws_sdk_s3::Client,
    /// Secrets under `ssm:`.
    pub ssm: aws_sdk_ssm::Client,
    /// Secrets under `secretsmanager:`.
    pub secrets_manager: aws_sdk_secretsmanager::Client,
}

impl Clients {
    /// Clients as the environment says.
    pub async fn load(limits: Limits) -> Self {
        Self::of(&loader(limits).load().await)
    }

    /// Clients of a configuration that stands already.
    pub fn of(config: &SdkConfig) -> Self {
        // Emulators answer under one name for every bucket; AWS under a name for each.
        let s3 = aws_sdk_s3::config::Builder::from(config)
            .force_path_style(config.endpoint_url().is_some())
            .build();
        Self {
            dynamo: aws_sdk_dynamodb::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            s3: aws_sdk_s3::Client::from_conf(s3),
            ssm: aws_sdk_ssm::Client::new(config),
            secrets_manager: aws_sdk_secretsmanager::Client::new(config),
        }
    }
}

/// What every client shares, still to be loaded.
pub fn loader(limits: Limits) -> ConfigLoader {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .pool_idle_timeout(IDLE)
        .build_https();
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(limits.connect)
        .operation_attempt_timeout(limits.attempt)
        .operation_timeout(limits.total)
        .build();
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(limits.attempts))
}
