//! Who may publish what: bearer tokens of the configured producers.
//!
//! Every configured token is compared, each in constant time, whatever the others came to.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use waybill_domain::destination::SecretRef;
use waybill_domain::identity::TenantId;

use crate::config::Config;
use crate::refusal::{Code, Refusal};

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

/// Who calls, by the `authorization` that the request brings along. `tokens` answers the token behind
/// a reference; an empty one is none, so that nobody gets in by sending nothing.
pub async fn identify(
    config: &Config,
    authorization: Option<&[u8]>,
    tokens: impl AsyncFn(&SecretRef) -> Option<String>,
) -> Result<Caller, Refusal> {
    let Some(header) = authorization else { return Err(refuse("a producer's bearer token is missing")) };
    let presented = bearer(header).ok_or_else(|| refuse("the authorization is not a bearer token"))?;
    let presented = Sha256::digest(presented);
    let mut tenants = Vec::new();
    let mut is_known = false;
    for producer in config.producers.values() {
        for reference in &producer.tokens {
            let Some(token) = tokens(reference).await.filter(|token| !token.is_empty()) else { continue };
            if bool::from(Sha256::digest(token.as_bytes()).ct_eq(&presented)) {
                is_known = true;
                tenants.extend(producer.tenants.iter().cloned());
            }
        }
    }
    if is_known { Ok(Caller::Producer(tenants)) } else { Err(refuse("no producer has this bearer token")) }
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
