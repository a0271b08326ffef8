//! Which URLs and which addresses a recipient may have: public ones, over HTTPS.
//!
//! `tests/vectors/addresses.json` is the oracle. A name is judged again by the addresses that it
//! resolves to, at every attempt.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::fault::InvalidField;

/// What is allowed beyond the rules of production.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locality {
    /// HTTPS to public addresses, and nothing else.
    #[default]
    PublicOnly,
    /// For local development: also `http`, and also loopback. One explicit switch.
    AllowLocal,
}

/// A URL that may be a recipient's, normalised: lower-case host without trailing dot, no default
/// port, no credentials, no fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecipientUrl(Url);

/// The rule that [`RecipientUrl::parse`] holds, for error texts.
pub const URL_RULE: &str = "https:// and a public host, without credentials or a fragment";

impl RecipientUrl {
    /// Judges the text of a URL. Credentials in it are refused and not echoed.
    pub fn parse(field: &str, text: &str, locality: Locality) -> Result<Self, InvalidField> {
        let refuse = |fault: &str| Err(InvalidField::new(field, fault, URL_RULE));
        // The parser would drop tabs and line breaks without a word, and take `https:///in` for a host.
        if text.chars().any(|c| c.is_control() || c == ' ') {
            return refuse("has a control character or a space");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse("has no scheme");
        };
        match (scheme.to_ascii_lowercase().as_str(), locality) {
            ("https", _) | ("http", Locality::AllowLocal) => {}
            ("http", _) => return refuse("is not HTTPS"),
            _ => return refuse("has another scheme than https"),
        }
        if rest.starts_with(['/', '\\', '?', '#']) || rest.is_empty() {
            return refuse("has no host");
        }
        let Ok(mut url) = Url::parse(text) else {
            return refuse("is not a URL");
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("has credentials in it");
        }
        if url.fragment().is_some() {
            return refuse("has a fragment, which is never sent");
        }
        if url.port() == Some(0) {
            return refuse("has port 0");
        }
        match url.host() {
            Some(Host::Domain(name)) => {
                let bare = name.strip_suffix('.').unwrap_or(name).to_owned();
                if bare.is_empty() || bare.ends_with('.') {
                    return refuse("has no host");
                }
                let local = bare == "localhost" || bare.ends_with(".localhost");
                if local && locality == Locality::PublicOnly {
                    return refuse("names this machine");
                }
                if bare.len() != name.len() && url.set_host(Some(&bare)).is_err() {
                    return refuse("is not a URL");
                }
            }
            Some(Host::Ipv4(ip)) => judge_for_url(field, ip.into(), locality)?,
            Some(Host::Ipv6(ip)) => judge_for_url(field, ip.into(), locality)?,
            None => return refuse("has no host"),
        }
        Ok(Self(url))
    }

    /// The URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// Scheme, host and port: what may stand in a log. Paths and queries may hold secrets.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

impl fmt::Display for RecipientUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_str().fmt(f)
    }
}

fn judge_for_url(field: &str, ip: IpAddr, locality: Locality) -> Result<(), InvalidField> {
    judge(ip, locality).map_err(|kind| InvalidField::new(field, format!("{ip} is {kind}"), URL_RULE))
}

/// Whether a connection to `ip` may be made; if not, what kind of address it is.
pub fn judge(ip: IpAddr, locality: Locality) -> Result<(), &'static str> {
    let ip = match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, IpAddr::V4),
        IpAddr::V4(_) => ip,
    };
    if ip.is_loopback() && locality == Locality::AllowLocal {
        return Ok(());
    }
    let kind = match ip {
        IpAddr::V4(v4) => v4_not_public(v4),
        IpAddr::V6(v6) => v6_not_public(v6),
    };
    kind.map_or(Ok(()), Err)
}

/// IANA's special-purpose registry for IPv4.
fn v4_not_public(ip: Ipv4Addr) -> Option<&'static str> {
    match ip.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("a carrier's private address"),
        [169, 254, ..] => Some("a link-local address"),
        [192, 0, 0, _] | [192, 88, 99, _] => Some("a protocol's own address"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("a documentation address"),
        [198, 18..=19, ..] => Some("a benchmarking address"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

/// Public is what IANA gave out for public use, 2000::/3, less what is set aside within it. Forms
/// that carry an IPv4 address within (NAT64, 6to4, Teredo) are refused whatever they carry.
fn v6_not_public(ip: Ipv6Addr) -> Option<&'static str> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2002, ..] => Some("a 6to4 address"),
        [0x2001, 0, ..] => Some("a Teredo address"),
        [0x2001, 0..=0x1ff, ..] => Some("a protocol's own address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("a documentation address"),
        [0x64, 0xff9b, ..] => Some("a NAT64 address"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}
