//! A destination's own header fields: sent with every request and look-up, and kept nowhere.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::attempt::Phase;
use waybill_domain::destination::{Destination, SecretRef};
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_domain::static_header::{StaticHeader, StaticHeaderName};
use waybill_service::ports::{Recipient as _, Request};
use waybill_testkit::server::{Answer, Received, Script, ScriptedServer};

use crate::setting::*;

const STORE: [(&str, &str); 10] = [
    ("K1", K1),
    ("KEY", "SENTINEL-7f3a"),
    ("AUTH", "Bearer SENTINEL/8b4c+="),
    ("EMPTY", ""),
    ("BREAK", "SENTINEL\r\nx-injected: 1"),
    ("LINE", "SENTINEL\n"),
    ("TAB", "SENTINEL\tx"),
    ("NUL", "SENTINEL\0"),
    ("UMLAUT", "SENTINEL-\u{fc}"),
    ("SPACE", " SENTINEL"),
];

fn header(name: &str, variable: &str) -> StaticHeader {
    StaticHeader {
        name: StaticHeaderName::parse("headers", name).unwrap(),
        value: SecretRef::Env(variable.to_owned()),
    }
}

fn to(url: &str, headers: &[(&str, &str)]) -> Request {
    with_destination(request_to(url), |destination: &mut Destination| {
        destination.headers = headers.iter().map(|(name, variable)| header(name, variable)).collect();
    })
}

#[tokio::test]
async fn they_go_with_requests_and_look_ups_and_replace_nothing() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let recipient = recipient().with_secrets(TestSecrets::of(&STORE));
    let request = to(&server.url("/"), &[("X-Api-Key", "KEY"), ("Authorization", "AUTH")]);
    let plain = request_to(&server.url("/"));
    assert_eq!(attempt_by(&recipient, plain, PLENTY).await.outcome, Outcome::Delivered);
    assert_eq!(attempt_by(&recipient, request.clone(), PLENTY).await.outcome, Outcome::Delivered);
    let at = RecipientUrl::parse("status_url", &server.url("/status"), Locality::AllowLocal).unwrap();
    recipient.look_up(request, at, window(PLENTY)).await;
    let [plain, request, look_up] = &server.requests()[..] else { panic!("{:?}", server.requests()) };
    let more = |received: &Received| {
        received.headers.iter().filter(|field| !plain.headers.contains(field)).cloned().collect::<Vec<_>>()
    };
    let own = [("x-api-key", "SENTINEL-7f3a"), ("authorization", "Bearer SENTINEL/8b4c+=")];
    let mut expected = own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    expected.sort();
    let mut sent = more(request);
    sent.sort();
    assert_eq!(sent, expected);
    assert_eq!(request.headers.len(), plain.headers.len() + 2);
    for (name, value) in own {
        assert_eq!(look_up.header(name), Some(value));
    }
}

#[tokio::test]
async fn c117_header_values_that_a_recipient_echoes_are_not_kept() {
    let as_it_is: fn(&str) -> String = str::to_owned;
    let as_json: fn(&str) -> String = |text| text.replace('/', "\\/");
    let as_url: fn(&str) -> String = |text| text.replace('/', "%2F").replace('+', "%2b");
    // Some echo the token without the scheme before it.
    let bare: fn(&str) -> String = |text| text.replace("Bearer ", "token ");
    for write in [as_it_is, as_json, as_url, bare] {
        let echo = move |request: &Received| {
            let fields = request.headers.iter().map(|(name, value)| format!("{name}: {}\n", write(value)));
            let echoed = request.header("x-blue").unwrap_or_default().to_owned();
            let fields: String = fields.collect();
            Answer::with_body(500, &[("location", &echoed), ("retry-after", &echoed)], fields)
        };
        let server = ScriptedServer::start(Script::decided_by(echo)).await.unwrap();
        let request = to(&server.url("/"), &[("X-Blue", "KEY"), ("authorization", "AUTH")]);
        let recipient = recipient().with_secrets(TestSecrets::of(&STORE));
        let report = attempt_by(&recipient, request, PLENTY).await;
        let excerpt = String::from_utf8(report.excerpt.clone().unwrap().bytes).unwrap();
        assert!(excerpt.contains("x-blue: [redacted]") && excerpt.contains("authorization: "), "{excerpt}");
        let kept = format!("{excerpt}\n{:?}\n{}", report.retry_after, report.note);
        assert!(!kept.contains("SENTINEL") && !kept.contains("8b4c"), "{kept}");
        assert_eq!(server.requests()[0].header("x-blue"), Some("SENTINEL-7f3a"));
    }
}

#[tokio::test]
async fn without_every_value_or_with_one_that_could_begin_another_header_nothing_is_sent() {
    let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
    let rule = "(1 to 4096 printable characters of ASCII)";
    let unsendable = |variable: &str, fault: &str| {
        format!("the secret env:{variable} cannot be sent as the header x-api-key: it {fault} {rule}")
    };
    let control = "has a control character, such as a line break at its end";
    for (variable, note) in [
        ("GONE", "the secret env:GONE is missing: there is no such secret".to_owned()),
        ("EMPTY", unsendable("EMPTY", "is empty")),
        ("BREAK", unsendable("BREAK", control)),
        ("LINE", unsendable("LINE", control)),
        ("TAB", unsendable("TAB", control)),
        ("NUL", unsendable("NUL", control)),
        ("UMLAUT", unsendable("UMLAUT", "is not ASCII")),
        ("SPACE", unsendable("SPACE", "begins or ends with a space")),
    ] {
        let request = to(&server.url("/"), &[("x-api-key", variable)]);
        let recipient = recipient().with_secrets(TestSecrets::of(&STORE));
        let report = attempt_by(&recipient, request, PLENTY).await;
        assert_eq!(report.outcome, retryable(FailureClass::SecretUnavailable, Applied::No));
        assert_eq!((report.phase, report.note), (Phase::Prepare, note));
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn another_name_or_reference_is_another_configuration_of_the_destination() {
    let fingerprint =
        |headers: &[(&str, &str)]| to("https://hooks.example.com/", headers).destination.fingerprint();
    let all = [
        fingerprint(&[]),
        fingerprint(&[("x-api-key", "KEY")]),
        fingerprint(&[("x-api-key", "KEY_2")]),
        fingerprint(&[("x-api-token", "KEY")]),
        fingerprint(&[("x-api-key", "KEY"), ("authorization", "AUTH")]),
    ];
    for (n, one) in all.iter().enumerate() {
        assert!(!all[..n].contains(one), "{n}");
    }
}
