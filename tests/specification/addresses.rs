//! Which addresses may be a recipient's, to the edges of each range, and what is said of the others.

use std::net::IpAddr;

use waybill_domain::address::{Locality, RecipientUrl, judge};

/// The first and the last address of a range, and what kind they are; none: they are public.
#[track_caller]
fn check(from: &str, to: &str, kind: Option<&'static str>) {
    for text in [from, to] {
        let ip: IpAddr = text.parse().unwrap();
        assert_eq!(judge(ip, Locality::PublicOnly).err(), kind, "{text}");
        let url = if ip.is_ipv6() { format!("https://[{text}]/") } else { format!("https://{text}/") };
        let said = RecipientUrl::parse("url", &url, Locality::PublicOnly).err().map(|invalid| invalid.fault);
        assert_eq!(said, kind.map(|kind| format!("{ip} is {kind}")), "{url}");
    }
}

#[test]
fn an_ipv4_address_is_public_unless_it_is_set_aside() {
    check("0.0.0.0", "0.255.255.255", Some("an unspecified address"));
    check("1.0.0.0", "9.255.255.255", None);
    check("10.0.0.0", "10.255.255.255", Some("a private address"));
    check("11.0.0.0", "100.63.255.255", None);
    check("100.64.0.0", "100.127.255.255", Some("a carrier's private address"));
    check("100.128.0.0", "126.255.255.255", None);
    check("127.0.0.0", "127.255.255.255", Some("a loopback address"));
    check("128.0.0.0", "169.253.255.255", None);
    check("169.254.0.0", "169.254.255.255", Some("a link-local address"));
    check("169.255.0.0", "172.15.255.255", None);
    check("172.16.0.0", "172.31.255.255", Some("a private address"));
    check("172.32.0.0", "191.255.255.255", None);
    check("192.0.0.0", "192.0.0.255", Some("a protocol's own address"));
    check("192.0.1.0", "192.0.1.255", None);
    check("192.0.2.0", "192.0.2.255", Some("a documentation address"));
    check("192.0.3.0", "192.88.98.255", None);
    check("192.88.99.0", "192.88.99.255", Some("a protocol's own address"));
    check("192.88.100.0", "192.167.255.255", None);
    check("192.168.0.0", "192.168.255.255", Some("a private address"));
    check("192.169.0.0", "198.17.255.255", None);
    check("198.18.0.0", "198.19.255.255", Some("a benchmarking address"));
    check("198.20.0.0", "198.51.99.255", None);
    check("198.51.100.0", "198.51.100.255", Some("a documentation address"));
    check("198.51.101.0", "203.0.112.255", None);
    check("203.0.113.0", "203.0.113.255", Some("a documentation address"));
    check("203.0.114.0", "223.255.255.255", None);
    check("224.0.0.0", "239.255.255.255", Some("a multicast address"));
    check("240.0.0.0", "255.255.255.255", Some("a reserved address"));
}

#[test]
fn an_ipv6_address_is_public_within_2000_3_unless_it_is_set_aside() {
    check("::", "::", Some("an unspecified address"));
    check("::1", "::1", Some("a loopback address"));
    check("::2", "64:ff9a::1", Some("a reserved address"));
    check("64:ff9b::", "64:ff9b:1::", Some("a NAT64 address"));
    check("64:ff9c::", "1fff::", Some("a reserved address"));
    check("2000::", "2000:ffff::", None);
    check("2001::", "2001:0:ffff::", Some("a Teredo address"));
    check("2001:1::", "2001:1ff:ffff::", Some("a protocol's own address"));
    check("2001:200::", "2001:db7:ffff::", None);
    check("2001:db8::", "2001:db8:ffff::", Some("a documentation address"));
    check("2001:db9::", "2001:ffff::", None);
    check("2002::", "2002:ffff::", Some("a 6to4 address"));
    check("2003::", "3ffe:ffff::", None);
    check("3fff::", "3fff:fff:ffff::", Some("a documentation address"));
    check("3fff:1000::", "3fff:ffff::", None);
    check("4000::", "fbff:ffff::", Some("a reserved address"));
    check("fc00::", "fdff:ffff::", Some("a private address"));
    check("fe00::", "fe7f:ffff::", Some("a reserved address"));
    check("fe80::", "febf:ffff::", Some("a link-local address"));
    check("fec0::", "feff:ffff::", Some("a site-local address"));
    check("ff00::", "ffff:ffff::", Some("a multicast address"));
}

#[test]
fn one_switch_lets_this_machine_and_plain_http_through_and_nothing_else() {
    // The URL, and what is wrong with it as a public one and with the switch.
    let table = [
        ("https://hooks.example.com/in", None, None),
        ("http://hooks.example.com/in", Some("is not HTTPS"), None),
        (
            "ftp://hooks.example.com/in",
            Some("has another scheme than https"),
            Some("has another scheme than https"),
        ),
        ("hooks.example.com/in", Some("has no scheme"), Some("has no scheme")),
        ("https://localhost/", Some("names this machine"), None),
        ("https://localhost./", Some("names this machine"), None),
        ("https://api.localhost/", Some("names this machine"), None),
        ("https://notlocalhost/", None, None),
        ("https://127.0.0.1/", Some("127.0.0.1 is a loopback address"), None),
        ("https://[::1]/", Some("::1 is a loopback address"), None),
        ("https://10.0.0.1/", Some("10.0.0.1 is a private address"), Some("10.0.0.1 is a private address")),
        (
            "https://has blank.example/",
            Some("has a control character or a space"),
            Some("has a control character or a space"),
        ),
        ("https://", Some("has no host"), Some("has no host")),
        ("https:///in", Some("has no host"), Some("has no host")),
        ("https://../", Some("has no host"), Some("has no host")),
        ("https://maria@h.test/", Some("has credentials in it"), Some("has credentials in it")),
        ("https://:secret@h.test/", Some("has credentials in it"), Some("has credentials in it")),
        ("https://h.test:99999/", Some("is not a URL"), Some("is not a URL")),
    ];
    for (url, public, local) in table {
        for (locality, fault) in [(Locality::PublicOnly, public), (Locality::AllowLocal, local)] {
            let said = RecipientUrl::parse("url", url, locality).err().map(|invalid| invalid.fault);
            assert_eq!(said.as_deref(), fault, "{url} {locality:?}");
        }
    }
}

#[test]
fn a_log_shows_where_requests_go_and_neither_path_nor_query() {
    let rows = [
        ("https://hooks.example.com/in/S3CRET?token=S3CRET", "https://hooks.example.com"),
        ("https://hooks.example.com:8443/in", "https://hooks.example.com:8443"),
    ];
    for (url, origin) in rows {
        let read = RecipientUrl::parse("url", url, Locality::PublicOnly).unwrap();
        assert_eq!((read.origin(), read.as_url().as_str()), (origin.to_owned(), url));
    }
}
