//! From a host name to the addresses that may be connected to: asked once, every answer judged.
//!
//! What is connected to is what was judged. A name that is asked a second time may answer
//! differently, so nobody asks a second time within an attempt, and every attempt asks afresh.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;
use url::{Host, Url};
use waybill_domain::address::{Locality, judge};
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::Seen;

use crate::budget::{Budget, Elapsed};
use crate::report::Fault;

/// Looks up host names.
pub trait Resolver: Send + Sync {
    /// Every address of `host`, in the order in which they should be tried.
    fn resolve(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = Result<Vec<IpAddr>, ResolveError>> + Send;
}

/// The name could not be looked up. This is never taken for a forbidden address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ResolveError(
    /// Why, in words that may stand in a log.
    pub String,
);

/// The resolver of the operating system. Its look-ups run on threads of their own; one that is not
/// waited for any longer ends there by itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<IpAddr>, ResolveError> {
        let found = tokio::net::lookup_host((host, port)).await;
        found
            .map(|addresses| addresses.map(|address| address.ip()).collect())
            .map_err(|error| ResolveError(error.to_string()))
    }
}

/// The addresses of the URL's host, all of them allowed. A single forbidden one stops the attempt:
/// which of them a connection would reach is the name's owner's choice, not ours.
pub(crate) async fn judged<R: Resolver>(
    resolver: &R,
    url: &Url,
    locality: Locality,
    budget: &Budget,
) -> Result<Vec<SocketAddr>, Fault> {
    let host = url.host().ok_or_else(|| unresolved("the destination's URL has no host".to_owned()))?;
    let port = url.port_or_known_default().unwrap_or(443);
    let mut addresses = match host {
        Host::Ipv4(ip) => vec![IpAddr::V4(ip)],
        Host::Ipv6(ip) => vec![IpAddr::V6(ip)],
        Host::Domain(name) => match budget.within(resolver.resolve(name, port)).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                return Err(unresolved(format!("the name {name} could not be resolved: {error}")));
            }
            Err(Elapsed) => {
                return Err(unresolved(format!("the name {name} was not resolved {}", budget.in_words())));
            }
        },
    };
    if addresses.is_empty() {
        return Err(unresolved(format!("the name {host} has no address")));
    }
    for ip in &addresses {
        if let Err(kind) = judge(*ip, locality) {
            let note = format!("{host} is at {ip}, {kind}: nothing was connected to");
            return Err(Fault::saw(Seen::AddressForbidden, Phase::Resolve, note));
        }
    }
    let mut seen = Vec::new();
    addresses.retain(|ip| !seen.contains(ip) && (seen.push(*ip), true).1);
    Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

fn unresolved(note: String) -> Fault {
    Fault::saw(Seen::NameNotResolved, Phase::Resolve, note)
}
