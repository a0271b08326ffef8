//! The headers of a signed request: trusted is only what HMAC-SHA256 itself confirms, and whatever is
//! signed is trusted, at its time, as long as no byte changes.
//!
//! The input is lines `name: value`, an empty line, and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use waybill_domain::signature::{SigningKey, header};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_domain::verify::custom::{Encoding, HmacRules, Input};
use waybill_domain::verify::headers::Headers;
use waybill_domain::verify::{Scheme, TOLERANCE, Untrusted, verify};

use crate::said::is_one_short_line;

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";
/// 2026-01-01T00:00:00Z.
const NOW_S: i64 = 1_767_225_600;
const NOW: TimeMs = TimeMs::from_unix_ms(NOW_S * 1000);

pub(crate) fn check(data: &[u8]) {
    let (lines, body) = parted(data);
    let headers: Headers = lines.iter().map(|(name, value)| (name.as_str(), value)).collect();
    for scheme in schemes() {
        let keys = keys(&scheme);
        assert_eq!(verify(&scheme, &[], &headers, body, NOW), Err(Untrusted::NoKey));
        match verify(&scheme, &keys, &headers, body, NOW) {
            Ok(()) => assert!(is_confirmed(&scheme, &headers, body), "{scheme:?} is trusted"),
            Err(untrusted) => {
                let said = untrusted.to_string();
                is_one_short_line(&said);
                assert!(!said.contains(&SECRET[6..]));
            }
        }
    }
    let id = headers.text("webhook-id").unwrap_or("dlv_001").to_owned();
    what_is_signed_is_trusted(&id, body);
}

/// Standard Webhooks is what Waybill signs itself with.
fn what_is_signed_is_trusted(id: &str, body: &[u8]) {
    let keys = keys(&Scheme::StandardWebhooks);
    let signed = header(&keys, id, NOW_S, body);
    let of = |id: &str| -> Headers {
        let lines = [
            ("Webhook-Id", id.to_owned()),
            ("webhook-timestamp", NOW_S.to_string()),
            ("webhook-signature", format!("v1a,AAAA {signed}")),
        ];
        lines.into_iter().collect()
    };
    let at = |seconds: i64| TimeMs::from_unix_ms(NOW.as_unix_ms() + seconds * 1000);
    let asked = |id: &str, body: &[u8], now| verify(&Scheme::StandardWebhooks, &keys, &of(id), body, now);
    let tolerance = i64::try_from(TOLERANCE.whole_secs_up()).expect("some minutes");
    if !id.is_empty() && !id.contains('.') {
        for near in [0, tolerance, -tolerance] {
            assert_eq!(asked(id, body, at(near)), Ok(()), "{near} s from when it was signed");
        }
    }
    assert!(asked(id, body, at(tolerance + 1)).is_err() && asked(id, body, at(-tolerance - 1)).is_err());
    let longer = [body, b" "].concat();
    assert!(asked(id, &longer, NOW).is_err(), "a byte more");
    assert!(asked(&format!("{id}x"), body, NOW).is_err(), "another ID");
    if let Some((_, shorter)) = body.split_last() {
        assert!(asked(id, shorter, NOW).is_err(), "a byte less");
    }
}

fn schemes() -> [Scheme; 4] {
    let rules = HmacRules {
        header: "x-signature".to_owned(),
        encoding: Encoding::Base64,
        prefix: "v0=".to_owned(),
        input: Input::parse("input", "v0:{timestamp}:{body}").expect("a template"),
        timestamp: Some(("x-timestamp".to_owned(), DurationMs::from_secs(60))),
    };
    [Scheme::StandardWebhooks, Scheme::Github, Scheme::Stripe, Scheme::Hmac(rules)]
}

fn keys(scheme: &Scheme) -> [SigningKey; 1] {
    let text = match scheme {
        Scheme::StandardWebhooks => SECRET,
        _ => std::str::from_utf8(KEY).expect("a text"),
    };
    [scheme.key("secrets", text).expect("a secret")]
}

/// Whether some part of the signature's header is the HMAC of some of what the scheme may have signed:
/// less than a verification asks for, and reckoned apart from it.
fn is_confirmed(scheme: &Scheme, headers: &Headers, body: &[u8]) -> bool {
    let text = |name: &str| headers.text(name).unwrap_or_default().to_owned();
    let (signature, before) = match scheme {
        Scheme::StandardWebhooks => {
            ("webhook-signature", format!("{}.{}.", text("webhook-id"), text("webhook-timestamp")))
        }
        Scheme::Github => ("x-hub-signature-256", String::new()),
        Scheme::Stripe => {
            let header = text("stripe-signature");
            let stamp = header.split(',').find_map(|item| item.trim().strip_prefix("t="));
            ("stripe-signature", format!("{}.", stamp.unwrap_or_default()))
        }
        Scheme::Hmac(_) => ("x-signature", format!("v0:{}:", text("x-timestamp"))),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(KEY).expect("a key of any length");
    mac.update(before.as_bytes());
    mac.update(body);
    let mac = mac.finalize().into_bytes();
    let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    let given = text(signature);
    given.contains(&STANDARD_NO_PAD.encode(mac)) || given.to_ascii_lowercase().contains(&hex)
}

/// Header lines up to the first empty one, and the body behind it.
fn parted(data: &[u8]) -> (Vec<(String, Vec<u8>)>, &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match end {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, &data[data.len()..]),
    };
    let line = |line: &[u8]| {
        let at = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..at], &line[at + 1..]);
        Some((String::from_utf8_lossy(name).into_owned(), value.to_vec()))
    };
    (head.split(|byte| *byte == b'\n').filter_map(line).collect(), body)
}
