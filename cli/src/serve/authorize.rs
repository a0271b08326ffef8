//! Who may publish what: bearer tokens of the configured producers.
//!
//! Every configured token is compared, each in constant time, whatever the others came to. With
//! `--allow-local` a caller on this machine needs no token; one that it presents must be right.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, FORWARDED};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;
use waybill_domain::address::Locality;
use waybill_domain::identity::TenantId;
use waybill_service::config::Config;

use super::secrets;
use crate::refusal::{Code, Refusal};

/// For whom a caller may publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// For everybody: somebody on this machine, during local development.
    Local,
    /// For these tenants.
    Producer(Vec<TenantId>),
}

impl Caller {
    /// Whether the caller may publish for `tenant`.
    pub(crate) fn may_publish_for(&self, tenant: &TenantId) -> bool {
        match self {
            Caller::Local => true,
            Caller::Producer(tenants) => tenants.contains(tenant),
        }
    }
}

/// Who calls, by what the request brings along.
pub(crate) async fn identify(
    config: &Config,
    locality: Locality,
    peer: SocketAddr,
    headers: &HeaderMap,
) -> Result<Caller, Refusal> {
    let Some(header) = headers.get(AUTHORIZATION) else {
        return match locality {
            Locality::AllowLocal if is_on_this_machine(peer, headers) => Ok(Caller::Local),
            _ => Err(refuse("a producer's bearer token is missing")),
        };
    };
    let presented =
        bearer(header.as_bytes()).ok_or_else(|| refuse("the authorization is not a bearer token"))?;
    let presented = Sha256::digest(presented);
    let mut tenants = Vec::new();
    let mut is_known = false;
    for producer in config.producers.values() {
        for reference in &producer.tokens {
            let Ok(token) = secrets::token(reference).await else { continue };
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

/// A caller that a proxy speaks for is not on this machine, wherever the proxy is.
fn is_on_this_machine(peer: SocketAddr, headers: &HeaderMap) -> bool {
    let ip = match peer.ip() {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4),
        v4 @ IpAddr::V4(_) => v4,
    };
    ip.is_loopback() && !headers.contains_key(FORWARDED) && !headers.contains_key("x-forwarded-for")
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

    #[test]
    fn a_caller_behind_a_proxy_is_not_on_this_machine() {
        let none = HeaderMap::new();
        let mut forwarded = HeaderMap::new();
        forwarded.insert("x-forwarded-for", "203.0.113.9".parse().unwrap());
        let rows = [
            ("127.0.0.1:5000", &none, true),
            ("[::1]:5000", &none, true),
            ("[::ffff:127.0.0.1]:5000", &none, true),
            ("127.0.0.1:5000", &forwarded, false),
            ("192.168.1.9:5000", &none, false),
        ];
        for (peer, headers, expected) in rows {
            assert_eq!(is_on_this_machine(peer.parse().unwrap(), headers), expected, "{peer}");
        }
    }
}
