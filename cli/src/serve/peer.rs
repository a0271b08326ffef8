//! Who needs no token: with `--allow-local`, a caller on this machine.

use std::net::{IpAddr, SocketAddr};

use waybill_domain::verify::headers::Headers;

/// A caller that a proxy speaks for is not on this machine, wherever the proxy is. Nor is a page in a
/// browser on this machine: it may have come from anywhere, and let its own name lead here (DNS
/// rebinding). Such a page names itself in `host`, and in `origin`.
pub(super) fn is_on_this_machine(peer: SocketAddr, headers: &Headers) -> bool {
    let is_forwarded = headers.get("forwarded").is_some() || headers.get("x-forwarded-for").is_some();
    if !is_loopback(peer.ip()) || is_forwarded {
        return false;
    }
    let Some(host) = headers.text("host").filter(|host| is_this_machine(host)) else { return false };
    match headers.get("origin") {
        None => true,
        Some(origin) => origin.strip_prefix(b"http://").is_some_and(|from| from == host.as_bytes()),
    }
}

/// Whether a host, with or without a port, can only be this machine.
fn is_this_machine(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, port)) => (name, port.strip_prefix(':').or(port.is_empty().then_some("0"))),
        None => host.split_once(':').map_or((host, Some("0")), |(name, port)| (name, Some(port))),
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    is_port && (name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_loopback))
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_behind_a_proxy_is_not_on_this_machine() {
        let (none, proxy) = (("x-nothing", "1"), ("x-forwarded-for", "203.0.113.9"));
        let rows = [
            ("127.0.0.1:5000", none, true),
            ("[::1]:5000", none, true),
            ("[::ffff:127.0.0.1]:5000", none, true),
            ("127.0.0.1:5000", proxy, false),
            ("127.0.0.1:5000", ("forwarded", "for=203.0.113.9"), false),
            ("192.168.1.9:5000", none, false),
        ];
        for (peer, header, expected) in rows {
            let headers = [("host", "localhost:8787"), header].into_iter().collect();
            assert_eq!(is_on_this_machine(peer.parse().unwrap(), &headers), expected, "{peer} {header:?}");
        }
    }

    #[test]
    fn a_page_whose_own_name_leads_here_is_not_on_this_machine() {
        let rows: [(&[(&str, &str)], bool); 17] = [
            (&[("host", "localhost:8787")], true),
            (&[("Host", "LOCALHOST")], true),
            (&[("host", "127.0.0.1:8787")], true),
            (&[("host", "127.1.2.3")], true),
            (&[("host", "[::1]:8787")], true),
            (&[("host", "[::1]")], true),
            (&[("host", "localhost:8787"), ("origin", "http://localhost:8787")], true),
            (&[], false),
            (&[("host", "")], false),
            (&[("host", "evil.example:8787")], false),
            (&[("host", "localhost.evil.example:8787")], false),
            (&[("host", "localhost:8787.evil.example")], false),
            (&[("host", "[::1].evil.example")], false),
            (&[("host", "localhost:8787"), ("host", "evil.example")], false),
            (&[("host", "localhost:8787"), ("origin", "http://evil.example")], false),
            (&[("host", "localhost:8787"), ("origin", "http://localhost:3000")], false),
            (&[("host", "localhost:8787"), ("origin", "null")], false),
        ];
        let peer = "127.0.0.1:5000".parse().unwrap();
        for (headers, expected) in rows {
            assert_eq!(is_on_this_machine(peer, &headers.iter().copied().collect()), expected, "{headers:?}");
        }
    }
}
