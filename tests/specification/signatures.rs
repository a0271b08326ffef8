//! What is trusted of what comes in: Standard Webhooks, by signatures that were made elsewhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use waybill_domain::signature::SigningKey;
use waybill_domain::time::TimeMs;
use waybill_domain::verify::headers::Headers;
use waybill_domain::verify::{Scheme, TOLERANCE, Untrusted, verify};

pub(super) const T0: i64 = 1_767_225_600;
const K1: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const K2: &str = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
/// `{}` under K1, as dlv_001 at T0.
const EMPTY: &str = "v1,mBxUHrZGLrldbIF4h3/D7iK02XN8UAqeo+4D0OqLQa8=";
pub(super) const STRIPE_KEY: &str = "whsec_0123456789abcdef0123456789abcdef";
pub(super) const OWN_KEY: &str = "0123456789abcdef0123456789abcdef";

pub(super) type Lines<'l> = &'l [(&'l str, &'l str)];

pub(super) fn at(unix_s: i64) -> TimeMs {
    TimeMs::from_unix_ms(unix_s * 1000)
}

/// What is said of a request: nothing, where it is trusted.
pub(super) fn said(scheme: &Scheme, secrets: &[&str], lines: Lines<'_>, body: &[u8], now: TimeMs) -> String {
    let keys: Vec<SigningKey> = secrets.iter().map(|text| scheme.key("secret", text).unwrap()).collect();
    let headers: Headers = lines.iter().copied().collect();
    verify(scheme, &keys, &headers, body, now)
        .map_or_else(|untrusted| untrusted.to_string(), |()| String::new())
}

/// Name, secrets, headers, body, and how what is said begins.
type Row<'r> = (&'r str, &'r [&'r str], Lines<'r>, &'r [u8], &'r str);

pub(super) fn check(scheme: &Scheme, rows: &[Row<'_>]) {
    for (name, secrets, lines, body, expected) in rows {
        let said = said(scheme, secrets, lines, body, at(T0));
        assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{name}: {said:?}");
    }
}

#[test]
fn c79_every_signature_of_the_vectors_is_trusted_and_none_once_a_bit_is_turned() {
    let document: Value = serde_json::from_str(include_str!("../vectors/signatures.json")).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert!(rows.len() >= 5);
    for row in rows {
        let text = |name: &str| row[name].as_str().unwrap();
        let body = STANDARD.decode(text("body_base64")).unwrap();
        let timestamp = row["timestamp"].as_i64().unwrap();
        let written = timestamp.to_string();
        let lines = [
            ("webhook-id", text("id")),
            ("webhook-timestamp", written.as_str()),
            ("webhook-signature", text("signature")),
        ];
        let trusted = |lines: Lines<'_>, body: &[u8]| {
            said(&Scheme::StandardWebhooks, &[text("secret")], lines, body, at(timestamp)).is_empty()
        };
        assert!(trusted(&lines, &body), "{row}");
        let mut longer = body.clone();
        longer.push(b'\n');
        assert!(!trusted(&lines, &longer), "{row}");
        if let Some(last) = longer.len().checked_sub(2) {
            let mut turned = body.clone();
            turned[last] ^= 1;
            assert!(!trusted(&lines, &turned), "{row}");
        }
        let later = (timestamp + 1).to_string();
        assert!(!trusted(&[lines[0], ("webhook-timestamp", &later), lines[2]], &body), "{row}");
        assert!(!trusted(&[("webhook-id", "another"), lines[1], lines[2]], &body), "{row}");
    }
}

#[test]
fn standard_webhooks_are_trusted_by_any_signature_and_any_secret() {
    const ID: (&str, &str) = ("webhook-id", "dlv_001");
    const TIME: (&str, &str) = ("webhook-timestamp", "1767225600");
    let of_two = format!("v1,AAAA v1a,{} {EMPTY}", &EMPTY[3..]);
    let unpadded = EMPTY.trim_end_matches('=');
    let doubled = [ID, TIME, ("webhook-signature", EMPTY), ("Webhook-Signature", EMPTY)];
    check(
        &Scheme::StandardWebhooks,
        &[
            ("plain", &[K1], &[ID, TIME, ("webhook-signature", EMPTY)], b"{}", ""),
            (
                "names in any case",
                &[K1],
                &[
                    ("Webhook-Id", "dlv_001"),
                    ("WEBHOOK-TIMESTAMP", "1767225600"),
                    ("Webhook-Signature", EMPTY),
                ],
                b"{}",
                "",
            ),
            ("second secret", &[K2, K1], &[ID, TIME, ("webhook-signature", EMPTY)], b"{}", ""),
            ("among several", &[K1], &[ID, TIME, ("webhook-signature", &of_two)], b"{}", ""),
            ("without padding", &[K1], &[ID, TIME, ("webhook-signature", unpadded)], b"{}", ""),
            (
                "wrong secret",
                &[K2],
                &[ID, TIME, ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-signature: does not fit",
            ),
            (
                "wrong body",
                &[K1],
                &[ID, TIME, ("webhook-signature", EMPTY)],
                b"{ }",
                "webhook-signature: does not fit",
            ),
            (
                "cut short",
                &[K1],
                &[ID, TIME, ("webhook-signature", &EMPTY[..7])],
                b"{}",
                "webhook-signature: does not fit",
            ),
            ("c87 no secret", &[], &[ID, TIME, ("webhook-signature", EMPTY)], b"{}", "there is no secret"),
            ("no signature", &[K1], &[ID, TIME], b"{}", "webhook-signature: is missing"),
            (
                "empty signature",
                &[K1],
                &[ID, TIME, ("webhook-signature", "")],
                b"{}",
                "webhook-signature: is missing",
            ),
            ("no id", &[K1], &[TIME, ("webhook-signature", EMPTY)], b"{}", "webhook-id: is missing"),
            (
                "no timestamp",
                &[K1],
                &[ID, ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-timestamp: is missing",
            ),
            (
                "another version",
                &[K1],
                &[ID, TIME, ("webhook-signature", &EMPTY.replace("v1", "v2"))],
                b"{}",
                "webhook-signature: cannot be read",
            ),
            ("twice", &[K1], &doubled, b"{}", "webhook-signature: cannot be read"),
            (
                "a timestamp with a sign",
                &[K1],
                &[ID, ("webhook-timestamp", "+1767225600"), ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-timestamp: cannot be read",
            ),
            (
                "a fraction",
                &[K1],
                &[ID, ("webhook-timestamp", "1767225600.0"), ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-timestamp: cannot be read",
            ),
            (
                "no number",
                &[K1],
                &[ID, ("webhook-timestamp", "inf"), ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-timestamp: cannot be read",
            ),
            (
                "a huge one",
                &[K1],
                &[ID, ("webhook-timestamp", "9999999999999999999999"), ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-timestamp: cannot be read",
            ),
            (
                "a full stop in the ID",
                &[K1],
                &[("webhook-id", "dlv.001"), TIME, ("webhook-signature", EMPTY)],
                b"{}",
                "webhook-id: cannot be read (without a full stop)",
            ),
        ],
    );
}

#[test]
fn a_timestamp_is_good_for_five_minutes_both_ways_and_judged_after_the_signature() {
    const LINES: Lines<'_> =
        &[("webhook-id", "dlv_001"), ("webhook-timestamp", "1767225600"), ("webhook-signature", EMPTY)];
    let stale = "webhook-timestamp: is too far from now (at most 300 s; signed afresh for every request)";
    let unsigned =
        "webhook-signature: does not fit the body and a secret (signed over the bytes as they are sent)";
    let rows: [(i64, &[u8], &str); 7] = [
        (300_000, b"{}", ""),
        (300_001, b"{}", stale),
        (-300_000, b"{}", ""),
        (-300_001, b"{}", stale),
        (86_400_000, b"{}", stale),
        (i64::MAX - T0 * 1000, b"{}", stale),
        (300_001, b"[]", unsigned),
    ];
    for (late_ms, body, expected) in rows {
        let now = TimeMs::from_unix_ms(T0 * 1000 + late_ms);
        assert_eq!(said(&Scheme::StandardWebhooks, &[K1], LINES, body, now), expected, "{late_ms} ms");
    }
}

#[test]
fn whoever_is_refused_is_told_which_header_it_is_about() {
    let header = || "x-signature".to_owned();
    let rows = [
        (Untrusted::NoKey, None),
        (Untrusted::Missing { header: header() }, Some("x-signature")),
        (Untrusted::Malformed { header: header(), rule: "in hexadecimal".to_owned() }, Some("x-signature")),
        (Untrusted::NoMatch { header: header() }, Some("x-signature")),
        (Untrusted::Stale { header: header(), tolerance: TOLERANCE }, Some("x-signature")),
    ];
    for (untrusted, header) in rows {
        assert_eq!(untrusted.header(), header, "{untrusted}");
        assert_eq!(untrusted.to_string().starts_with("x-signature: "), header.is_some(), "{untrusted}");
    }
}

#[test]
fn c87_a_secret_that_is_short_or_no_secret_is_refused() {
    let short = "has 23 bytes (24 to 256 bytes without white space around them)";
    let rows = [
        (Scheme::Github, "", "has 0 bytes"),
        (Scheme::Github, &OWN_KEY[..23], short),
        (Scheme::Stripe, &STRIPE_KEY[..23], short),
        (Scheme::Github, "0123456789abcdef0123456789\n", "begins or ends with white space"),
        (Scheme::StandardWebhooks, "", "does not begin with whsec_"),
        (Scheme::StandardWebhooks, "whsec_", "has 0 bytes"),
        (Scheme::StandardWebhooks, "whsec_AAA=", "has 2 bytes"),
        (Scheme::StandardWebhooks, "whsec_!", "is not base64"),
        (Scheme::StandardWebhooks, OWN_KEY, "does not begin with whsec_"),
    ];
    for (scheme, text, fault) in rows {
        let said = scheme.key("secret", text).unwrap_err().to_string();
        assert!(said.starts_with(&format!("secret: {fault}")), "{said}");
        assert!(text.len() < 8 || !said.contains(text), "{said} echoes the secret");
    }
    assert!(Scheme::Github.key("secret", &OWN_KEY[..24]).is_ok());
}

#[test]
fn c129_header_bytes_that_are_no_text_harm_nothing_and_are_no_signature() {
    let lines: [(&str, &[u8]); 4] = [
        ("user-agent", b"Beno\xEEt"),
        ("webhook-id", b"dlv_001"),
        ("webhook-timestamp", b"1767225600"),
        ("webhook-signature", EMPTY.as_bytes()),
    ];
    let key = [SigningKey::parse("secret", K1).unwrap()];
    let scheme = Scheme::StandardWebhooks;
    assert!(verify(&scheme, &key, &lines.into_iter().collect(), b"{}", at(T0)).is_ok());
    let mut odd = lines;
    odd[3].1 = b"v1,\xEE";
    let refused = verify(&scheme, &key, &odd.into_iter().collect(), b"{}", at(T0)).unwrap_err();
    assert_eq!(refused.to_string(), "webhook-signature: cannot be read (visible ASCII)");
}
