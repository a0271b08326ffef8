//! Who may publish what: bearer tokens of the configured producers, or their signatures.
//!
//! Every configured token and secret is compared, each in constant time, whatever the others came to.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use waybill_domain::destination::SecretRef;
use waybill_domain::identity::TenantId;
use waybill_domain::signature::SigningKey;
use waybill_domain::verify::{Scheme, Untrusted, verify};

use crate::config::Config;
use crate::ingest::Head;
use crate::refusal::{Code, Refusal};

/// Where the secrets are that verify what comes in.
pub trait Vault: Sync {
    /// The secret behind a reference, if it can be had.
    fn secret(&self, reference: &SecretRef) -> impl Future<Output = Option<String>> + Send;
}

/// For whom a caller may publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// For everybody: somebody on this machine, during local development.
    Local,
    /// For these tenants.
    Producer(Vec<TenantId>),
}

impl Caller {
    /// Whether the caller may publish for `tenant`.
    pub fn may_publish_for(&self, tenant: &TenantId) -> bool {
        match self {
            Caller::Local => true,
            Caller::Producer(tenants) => tenants.contains(tenant),
        }
    }
}

/// Who calls, by the `authorization` that the request brings along. An empty token is none, so that
/// nobody gets in by sending nothing.
pub async fn by_token(
    config: &Config,
    authorization: Option<&[u8]>,
    vault: &impl Vault,
) -> Result<Caller, Refusal> {
    let Some(header) = authorization else {
        return Err(refuse("a producer's bearer token is missing, and there is no signature"));
    };
    let presented = bearer(header).ok_or_else(|| refuse("the authorization is not a bearer token"))?;
    let presented = Sha256::digest(presented);
    let mut tenants = Vec::new();
    let mut is_known = false;
    for producer in config.producers.values() {
        for reference in &producer.tokens {
            let Some(token) = vault.secret(reference).await.filter(|token| !token.is_empty()) else {
                continue;
            };
            if bool::from(Sha256::digest(token.as_bytes()).ct_eq(&presented)) {
                is_known = true;
                tenants.extend(producer.tenants.iter().cloned());
            }
        }
    }
    if is_known { Ok(Caller::Producer(tenants)) } else { Err(refuse("no producer has this bearer token")) }
}

/// Who signed `body`, by the Standard Webhooks signature that the request brings along.
pub async fn by_signature(
    config: &Config,
    head: Head<'_>,
    body: &[u8],
    vault: &impl Vault,
) -> Result<Caller, Refusal> {
    let mut tenants = None;
    let mut fault = Untrusted::NoKey;
    for producer in config.producers.values() {
        let keys = keys(&Scheme::StandardWebhooks, &producer.secrets, vault).await;
        match verify(&Scheme::StandardWebhooks, &keys, head.headers, body, head.now) {
            Ok(()) => tenants.get_or_insert_with(Vec::new).extend(producer.tenants.iter().cloned()),
            Err(Untrusted::NoKey) => {}
            // Whoever signed well is told what is wrong with the time.
            Err(found) if !matches!(fault, Untrusted::Stale { .. }) => fault = found,
            Err(_) => {}
        }
    }
    tenants.map(Caller::Producer).ok_or_else(|| Refusal::untrusted(&fault))
}

/// The keys behind references, as far as they can be had. A secret that is too short is none.
pub(crate) async fn keys(scheme: &Scheme, references: &[SecretRef], vault: &impl Vault) -> Vec<SigningKey> {
    let mut keys = Vec::with_capacity(references.len());
    for reference in references {
        let Some(text) = vault.secret(reference).await else { continue };
        match scheme.key("the secret", &text) {
            Ok(key) => keys.push(key),
            Err(invalid) => {
                tracing::warn!(secret = %reference, fault = invalid.fault, "a secret cannot verify signatures");
            }
        }
    }
    keys
}

fn refuse(message: &str) -> Refusal {
    Refusal::new(Code::Unauthorized, message)
}

/// The token of `Bearer TOKEN`; the scheme in any case.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_read_from_its_header_and_nothing_else_is() {
        let rows: [(&[u8], Option<&[u8]>); 7] = [
            (b"Bearer abc", Some(b"abc")),
            (b"bearer  abc ", Some(b"abc")),
            (b"Bearer a b", Some(b"a b")),
            (b"Bearer ", None),
            (b"Bearer", None),
            (b"Basic abcdef", None),
            (b"", None),
        ];
        for (header, token) in rows {
            assert_eq!(bearer(header), token, "{header:?}");
        }
    }
}
