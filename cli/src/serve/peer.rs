//! Who needs no token: with `--allow-local`, a caller on this machine.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;

/// A caller that a proxy speaks for is not on this machine, wherever the proxy is.
pub(super) fn is_on_this_machine(peer: SocketAddr, headers: &HeaderMap) -> bool {
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
