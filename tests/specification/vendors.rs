//! What is trusted of what comes in, by the schemes of vendors: by signatures of GitHub's own
//! documentation, and of Stripe's and Python's code.

use waybill_domain::time::DurationMs;
use waybill_domain::verify::Scheme;
use waybill_domain::verify::custom::{Encoding, HmacRules, Input, Part};

use super::signatures::{OWN_KEY, STRIPE_KEY, T0, at, check, said};

const PAID: &[u8] = br#"{"id":"evt_1","type":"invoice.paid"}"#;
/// PAID under STRIPE_KEY at T0, made by Stripe's own package.
const STRIPE: &str = "3f87fe82ba7eaa7ce5fbd24bca4f094bda01c327b1db1ec646c9476ffb123630";
/// `v0:{T0}:PAID` and PAID alone under OWN_KEY, made by Python's hmac.
const OWN_HEX: &str = "f631feec52ccb47832381a06c0db1bbc25a1d96d5244fa0372605499f4043824";
const OWN_BASE64: &str = "K3PrCcopPWgFACpAAjt1ORHTO4MsSc5Zpn3zSg1mksM=";

#[test]
fn github_signs_the_body_alone() {
    // The example of GitHub's documentation, "Validating webhook deliveries".
    const SECRET: &str = "It's a Secret to Everybody";
    const RIGHT: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let upper = RIGHT.to_ascii_uppercase().replace("SHA", "sha");
    let twice = format!("{RIGHT},{RIGHT}");
    check(
        &Scheme::Github,
        &[
            ("documented", &[SECRET], &[("X-Hub-Signature-256", RIGHT)], b"Hello, World!", ""),
            ("upper case", &[SECRET], &[("x-hub-signature-256", &upper)], b"Hello, World!", ""),
            (
                "other body",
                &[SECRET],
                &[("x-hub-signature-256", RIGHT)],
                b"Hello, World",
                "x-hub-signature-256: does not fit",
            ),
            (
                "other secret",
                &[OWN_KEY],
                &[("x-hub-signature-256", RIGHT)],
                b"Hello, World!",
                "x-hub-signature-256: does not fit",
            ),
            (
                "half of it",
                &[SECRET],
                &[("x-hub-signature-256", &RIGHT[..39])],
                b"Hello, World!",
                "x-hub-signature-256: does not fit",
            ),
            (
                "no prefix",
                &[SECRET],
                &[("x-hub-signature-256", &RIGHT[7..])],
                b"Hello, World!",
                "x-hub-signature-256: cannot be read",
            ),
            (
                "no hexadecimal",
                &[SECRET],
                &[("x-hub-signature-256", "sha256=zz")],
                b"Hello, World!",
                "x-hub-signature-256: cannot be read",
            ),
            (
                "odd",
                &[SECRET],
                &[("x-hub-signature-256", "sha256=757")],
                b"Hello, World!",
                "x-hub-signature-256: cannot be read",
            ),
            (
                "twice",
                &[SECRET],
                &[("x-hub-signature-256", &twice)],
                b"Hello, World!",
                "x-hub-signature-256: cannot be read",
            ),
            (
                "SHA-1 alone",
                &[SECRET],
                &[("x-hub-signature", "sha1=00")],
                b"Hello, World!",
                "x-hub-signature-256: is missing",
            ),
        ],
    );
}

#[test]
fn stripe_signs_timestamp_and_body_with_the_text_of_its_secret() {
    let right = format!("t={T0},v1={STRIPE}");
    let rotating = format!("t={T0},v1={},v1={STRIPE},v0={STRIPE}", "0".repeat(64));
    let old_scheme = format!("t={T0},v0={STRIPE}");
    let two_times = format!("t={T0},t={T0},v1={STRIPE}");
    let other_time = format!("t={},v1={STRIPE}", T0 + 1);
    check(
        &Scheme::Stripe,
        &[
            ("plain", &[STRIPE_KEY], &[("Stripe-Signature", &right)], PAID, ""),
            ("rotating", &[OWN_KEY, STRIPE_KEY], &[("stripe-signature", &rotating)], PAID, ""),
            (
                "other body",
                &[STRIPE_KEY],
                &[("stripe-signature", &right)],
                b"{}",
                "stripe-signature: does not fit",
            ),
            (
                "other time",
                &[STRIPE_KEY],
                &[("stripe-signature", &other_time)],
                PAID,
                "stripe-signature: does not fit",
            ),
            (
                "v0 alone",
                &[STRIPE_KEY],
                &[("stripe-signature", &old_scheme)],
                PAID,
                "stripe-signature: cannot be read",
            ),
            (
                "two times",
                &[STRIPE_KEY],
                &[("stripe-signature", &two_times)],
                PAID,
                "stripe-signature: cannot be read",
            ),
            (
                "no time",
                &[STRIPE_KEY],
                &[("stripe-signature", &right[13..])],
                PAID,
                "stripe-signature: cannot be read",
            ),
            (
                "noise",
                &[STRIPE_KEY],
                &[("stripe-signature", ",,=,t,v1")],
                PAID,
                "stripe-signature: cannot be read",
            ),
            ("nothing", &[STRIPE_KEY], &[], PAID, "stripe-signature: is missing"),
        ],
    );
    let lines = [("stripe-signature", right.as_str())];
    assert!(said(&Scheme::Stripe, &[STRIPE_KEY], &lines, PAID, at(T0 + 301)).contains("too far from now"));
}

#[test]
fn what_a_sender_signs_is_its_body_once_its_timestamp_and_text_around_them() {
    let text = |text: &str| Part::Text(text.to_owned());
    let good = [
        ("{body}", vec![Part::Body], false),
        ("{timestamp}.{body}", vec![Part::Timestamp, text("."), Part::Body], true),
        (
            "v0:{body};{timestamp}!",
            vec![text("v0:"), Part::Body, text(";"), Part::Timestamp, text("!")],
            true,
        ),
    ];
    for (template, parts, has_timestamp) in good {
        let input = Input::parse("input", template).unwrap();
        assert_eq!((input.parts(), input.has_timestamp()), (&*parts, has_timestamp), "{template}");
    }
    let bad = [
        ("", "has no {body}: anybody could send another one"),
        ("{timestamp}", "has no {body}: anybody could send another one"),
        ("{body}{body}", "has a place twice"),
        ("{timestamp}{timestamp}{body}", "has a place twice"),
        ("{id}.{body}", "\"{id}\" is nothing to put there"),
        ("{body", "\"{body\" is nothing to put there"),
        ("body}", "\"}\" is nothing to put there"),
    ];
    for (template, fault) in bad {
        assert_eq!(Input::parse("input", template).unwrap_err().fault, fault, "{template}");
    }
}

#[test]
fn any_other_hmac_is_verified_as_it_is_described() {
    let rules = |encoding, prefix: &str, input: &str, timestamp: Option<u64>| {
        Scheme::Hmac(HmacRules {
            header: "x-signature".to_owned(),
            encoding,
            prefix: prefix.to_owned(),
            input: Input::parse("input", input).unwrap(),
            timestamp: timestamp.map(|s| ("x-timestamp".to_owned(), DurationMs::from_secs(s))),
        })
    };
    let timed = rules(Encoding::Hex, "v0=", "v0:{timestamp}:{body}", Some(60));
    let right = format!("v0={OWN_HEX}");
    let time = ("X-Timestamp", "1767225600");
    check(
        &timed,
        &[
            ("plain", &[OWN_KEY], &[("x-signature", &right), time], PAID, ""),
            ("other body", &[OWN_KEY], &[("x-signature", &right), time], b"{}", "x-signature: does not fit"),
            ("no prefix", &[OWN_KEY], &[("x-signature", OWN_HEX), time], PAID, "x-signature: cannot be read"),
            ("no time", &[OWN_KEY], &[("x-signature", &right)], PAID, "x-timestamp: is missing"),
            (
                "no number",
                &[OWN_KEY],
                &[("x-signature", &right), ("x-timestamp", "now")],
                PAID,
                "x-timestamp: cannot be read",
            ),
        ],
    );
    let lines = [("x-signature", right.as_str()), time];
    assert_eq!(said(&timed, &[OWN_KEY], &lines, PAID, at(T0 + 60)), "");
    assert!(
        said(&timed, &[OWN_KEY], &lines, PAID, at(T0 + 61))
            .starts_with("x-timestamp: is too far from now (at most 60 s")
    );
    let untimed = rules(Encoding::Base64, "", "{body}", None);
    check(
        &untimed,
        &[
            ("base64", &[OWN_KEY], &[("x-signature", OWN_BASE64)], PAID, ""),
            ("no base64", &[OWN_KEY], &[("x-signature", "*")], PAID, "x-signature: cannot be read"),
            ("empty", &[OWN_KEY], &[("x-signature", "=")], PAID, "x-signature: cannot be read"),
        ],
    );
}
