//! From names to addresses: a resolver's failure, a forbidden address, and what is dialled.

use std::net::{IpAddr, Ipv4Addr};

use waybill_domain::address::Locality;
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_http::{ResolveError, SystemResolver};
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

async fn good_server() -> ScriptedServer {
    ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap()
}

fn url_of(server: &ScriptedServer) -> String {
    format!("http://hook.example.test:{}/", server.address().port())
}

#[tokio::test]
async fn c65_a_failing_resolver_is_neither_a_forbidden_address_nor_a_way_around_the_check() {
    let server = good_server().await;
    let resolver = TestResolver::saying(|n, _| match n {
        1 => Err(ResolveError("server failure".to_owned())),
        2 => Err(ResolveError("no such name".to_owned())),
        3 => Ok(Vec::new()),
        4 => Ok(vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5))]),
        _ => Ok(vec![HERE]),
    });
    let recipient = recipient().with_resolver(resolver);
    for (outcome, connections) in [
        (retryable(FailureClass::Dns, Applied::No), 0),
        (retryable(FailureClass::Dns, Applied::No), 0),
        (retryable(FailureClass::Dns, Applied::No), 0),
        (permanent(FailureClass::ForbiddenAddress, Applied::No), 0),
        (Outcome::Delivered, 1),
    ] {
        let report = attempt_by(&recipient, request_to(&url_of(&server)), PLENTY).await;
        assert_eq!(report.outcome, outcome, "{}", report.note);
        assert_eq!(server.connections(), connections);
        assert_eq!(report.phase, if connections == 0 { Phase::Resolve } else { Phase::Answer });
    }
}

/// A resolver that never answers.
struct Silent;

impl waybill_http::Resolver for Silent {
    async fn resolve(&self, _host: &str, _port: u16) -> Result<Vec<IpAddr>, ResolveError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn c65_a_resolver_that_does_not_answer_costs_no_more_than_the_attempts_time() {
    let recipient = recipient().with_resolver(Silent);
    let report = attempt_by(&recipient, request_to("https://hook.example.test/"), SHORT).await;
    assert_eq!(report.outcome, retryable(FailureClass::Dns, Applied::No));
}

#[tokio::test]
async fn c73_each_attempt_looks_up_once_and_connects_only_to_what_it_judged() {
    let server = good_server().await;
    let resolver = TestResolver::saying(|n, _| Ok(vec![if n % 2 == 1 { HERE } else { METADATA }]));
    let recipient = recipient().with_resolver(resolver.clone());
    for n in 1..=20 {
        let report = attempt_by(&recipient, request_to(&url_of(&server)), PLENTY).await;
        let expected = match n % 2 {
            1 => Outcome::Delivered,
            _ => permanent(FailureClass::ForbiddenAddress, Applied::No),
        };
        assert_eq!(report.outcome, expected, "attempt {n}");
        assert_eq!(resolver.asked(), n);
    }
    assert_eq!(server.connections(), 10);
}

#[tokio::test]
async fn c73_one_forbidden_address_among_good_ones_is_enough() {
    let server = good_server().await;
    for addresses in [vec![HERE, METADATA], vec![METADATA, HERE]] {
        let recipient = recipient().with_resolver(TestResolver::always(addresses));
        let report = attempt_by(&recipient, request_to(&url_of(&server)), PLENTY).await;
        assert_eq!(report.outcome, permanent(FailureClass::ForbiddenAddress, Applied::No));
        let note = "hook.example.test is at 169.254.169.254, a link-local address: nothing was connected to";
        assert_eq!(report.note, note);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn c69_a_name_at_a_forbidden_address_is_refused_at_send_however_it_is_written() {
    for address in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:7f00:1",
        "::ffff:a9fe:a9fe",
        "::",
        "0.0.0.0",
        "fe80::1",
        "fec0::1",
        "fd00:ec2::254",
        "169.254.169.254",
        "10.0.0.5",
        "100.64.0.1",
        "255.255.255.255",
    ] {
        refused_at_send(address).await;
    }
}

#[tokio::test]
async fn c71_a_name_at_an_address_that_carries_a_private_one_is_refused_at_send() {
    for address in ["64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::", "::ffff:10.0.0.1"] {
        refused_at_send(address).await;
    }
}

async fn refused_at_send(address: &str) {
    let resolver = TestResolver::always(vec![address.parse().unwrap()]);
    let recipient = recipient_at(TestClock::at(T0), Locality::PublicOnly).with_resolver(resolver);
    let report = attempt_by(&recipient, request_to("https://hook.example.test/"), PLENTY).await;
    assert_eq!(report.outcome, permanent(FailureClass::ForbiddenAddress, Applied::No), "{address}");
    assert_eq!(report.phase, Phase::Resolve);
}

#[tokio::test]
async fn c69_an_address_in_the_url_is_judged_at_send_like_any_other() {
    let server = good_server().await;
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"] {
        // Configured where loopback was allowed, sent where it is not.
        let request = request_to(&format!("https://{host}:{}/", server.address().port()));
        let recipient = recipient_at(TestClock::at(T0), Locality::PublicOnly);
        let report = attempt_by(&recipient, request, PLENTY).await;
        assert_eq!(report.outcome, permanent(FailureClass::ForbiddenAddress, Applied::No), "{host}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn nothing_is_sent_in_the_clear_unless_that_is_allowed() {
    let server = good_server().await;
    let resolver = TestResolver::always(vec!["2606:4700::1111".parse().unwrap()]);
    let recipient = recipient_at(TestClock::at(T0), Locality::PublicOnly).with_resolver(resolver.clone());
    let report = attempt_by(&recipient, request_to(&url_of(&server)), PLENTY).await;
    assert_eq!(report.outcome, permanent(FailureClass::ForbiddenAddress, Applied::No));
    assert_eq!((resolver.asked(), server.connections()), (0, 0));
}

#[tokio::test]
async fn c77_only_the_host_of_the_url_is_dialled() {
    let server = good_server().await;
    let resolver = TestResolver::saying(|_, host| {
        assert_eq!(host, "h.test");
        Ok(vec![HERE])
    });
    let recipient = recipient().with_resolver(resolver);
    let port = server.address().port();
    for (url, line) in [
        (format!("http://H.Test.:{port}/a?b=c"), "POST /a?b=c HTTP/1.1"),
        (format!("http://h.test:{port}"), "POST / HTTP/1.1"),
        (format!("http://h.test:{port}\\@127.0.0.1/"), "POST /@127.0.0.1/ HTTP/1.1"),
        (format!("http://h.test:{port}/ü|^?'x"), "POST /%C3%BC|^?%27x HTTP/1.1"),
    ] {
        let report = attempt_by(&recipient, request_to(&url), PLENTY).await;
        assert_eq!(report.outcome, Outcome::Delivered, "{url}");
        let request = server.requests().pop().unwrap();
        assert_eq!(request.header("host"), Some(format!("h.test:{port}").as_str()));
        assert_eq!(request.request_line, line);
    }
}

#[tokio::test]
async fn the_systems_resolver_finds_this_machine() {
    let server = good_server().await;
    let recipient = recipient().with_resolver(SystemResolver);
    let url = format!("http://localhost:{}/", server.address().port());
    let report = attempt_by(&recipient, request_to(&url), PLENTY).await;
    assert_eq!(report.outcome, Outcome::Delivered, "{}", report.note);
}
