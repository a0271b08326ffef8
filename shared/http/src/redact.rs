//! Takes our own secrets and signatures, and the payload as a whole, out of what a recipient echoes.
//!
//! Many recipients answer a refusal with the request's headers, written as JSON or HTML. A secret is
//! therefore recognised in the spellings that those use for single characters (`\/`, `\u002b`,
//! `%2B`, `&#x2F;`), and also where what was read ends in the middle of it. A recipient that encodes
//! the whole text anew (base64, compression), or writes the payload's JSON in another way, is not seen
//! through; and what it quotes of a payload stays, for it explains a refusal.

use std::collections::BTreeSet;

use bytes::Bytes;

/// What stands in the place of what was taken out.
const REDACTED: &[u8] = b"[redacted]";

/// A beginning of a secret shorter than this, at the very end, says nothing.
const TELLING: usize = 8;

/// Knows what must not be kept. Has no `Debug`: nothing of it may be shown.
pub(crate) struct Redactor {
    secrets: Vec<Vec<u8>>,
    payload: Bytes,
}

/// A payload shorter than this may stand in any answer.
const SHORTEST_PAYLOAD: usize = 16;

impl Redactor {
    /// Takes out the secrets' texts and every signature in `signatures`, each with and without its
    /// prefix and padding.
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = &'a str>, signatures: &'a str) -> Self {
        let cores = secrets
            .map(|secret| secret.strip_prefix("whsec_").unwrap_or(secret))
            .chain(signatures.split(' ').map(|signature| signature.strip_prefix("v1,").unwrap_or(signature)))
            .map(|text| text.trim_end_matches('=').as_bytes().to_vec())
            .filter(|core| !core.is_empty());
        let secrets = cores.collect::<BTreeSet<_>>().into_iter().collect();
        Self { secrets, payload: Bytes::new() }
    }

    /// Takes out the whole payload, too.
    pub(crate) fn and_payload(self, payload: Bytes) -> Self {
        Self { payload, ..self }
    }

    /// How many bytes of what comes now must not be kept.
    fn found(&self, rest: &[u8]) -> Option<usize> {
        let payload = Some(&self.payload[..]).filter(|payload| payload.len() >= SHORTEST_PAYLOAD);
        let known = self.secrets.iter().map(Vec::as_slice).chain(payload);
        known.filter_map(|text| spelled(rest, text)).max()
    }

    /// `text` without them.
    pub(crate) fn clean(&self, text: &[u8]) -> Vec<u8> {
        let mut cleaned = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((first, after)) = rest.split_first() {
            match self.found(rest) {
                Some(length) => {
                    cleaned.extend_from_slice(REDACTED);
                    rest = &rest[length..];
                }
                None => {
                    cleaned.push(*first);
                    rest = after;
                }
            }
        }
        cleaned
    }
}

/// How many bytes of `text` spell `secret`, or all of them where `text` ends within it.
fn spelled(text: &[u8], secret: &[u8]) -> Option<usize> {
    let mut rest = text;
    for (matched, byte) in secret.iter().enumerate() {
        match character(rest, *byte) {
            Spelling::Whole(length) => rest = &rest[length..],
            Spelling::Begun if matched >= TELLING => return Some(text.len()),
            Spelling::Begun | Spelling::Not => return None,
        }
    }
    Some(text.len() - rest.len())
}

/// How a text begins, with one character in mind.
enum Spelling {
    /// It begins with the character, spelled in so many bytes.
    Whole(usize),
    /// It ends before the character is spelled out, perhaps at once.
    Begun,
    /// It begins with something else.
    Not,
}

fn character(text: &[u8], byte: u8) -> Spelling {
    match text.first() {
        None => return Spelling::Begun,
        Some(first) if *first == byte => return Spelling::Whole(1),
        Some(b'\\' | b'%' | b'&') => {}
        Some(_) => return Spelling::Not,
    }
    let escapes = [
        format!("\\{}", char::from(letter(byte))),
        format!("\\u00{byte:02x}"),
        format!("%{byte:02x}"),
        format!("&#x{byte:x};"),
        format!("&#{byte};"),
    ];
    for escape in &escapes {
        let seen = text.len().min(escape.len());
        if text[..seen].eq_ignore_ascii_case(&escape.as_bytes()[..seen]) {
            return if seen == escape.len() { Spelling::Whole(seen) } else { Spelling::Begun };
        }
    }
    Spelling::Not
}

/// What JSON writes behind a backslash for a byte that it does not write as it is.
fn letter(byte: u8) -> u8 {
    match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFi/2RlZjAxMjM0NTY3ODlhYmNkZW+=";
    const SIGNATURES: &str = "v1,aaaaaaaaaaaaaaaaaaaa= v1,bbbbbbbbbbbbbbbbbbbb=";

    #[test]
    fn what_we_know_is_taken_out_in_every_spelling() {
        for (echoed, kept) in [
            ("nothing of ours", "nothing of ours"),
            (
                "{\"s\":\"whsec_MDEyMzQ1Njc4OWFi/2RlZjAxMjM0NTY3ODlhYmNkZW+=\"}",
                "{\"s\":\"whsec_[redacted]=\"}",
            ),
            ("MDEyMzQ1Njc4OWFi\\/2RlZjAxMjM0NTY3ODlhYmNkZW\\u002B!", "[redacted]!"),
            ("MDEyMzQ1Njc4OWFi%2F2RlZjAxMjM0NTY3ODlhYmNkZW%2b", "[redacted]"),
            ("MDEyMzQ1Njc4OWFi&#x2F;2RlZjAxMjM0NTY3ODlhYmNkZW&#43;", "[redacted]"),
            ("a v1,bbbbbbbbbbbbbbbbbbbb= b", "a v1,[redacted]= b"),
            ("v1,aaaaaaaaaaaaaaaaaaaa= v1,bbbbbbbbbbbbbbbbbbbb=", "v1,[redacted]= v1,[redacted]="),
            ("cut off: MDEyMzQ1", "cut off: [redacted]"),
            ("cut off: MDEyMzQ1Njc4OWFi\\u00", "cut off: [redacted]"),
            ("cut off: MDEyMzQ", "cut off: MDEyMzQ"),
            ("MDEyMzQ1 and then something else", "MDEyMzQ1 and then something else"),
        ] {
            let cleaned = Redactor::new([SECRET].into_iter(), SIGNATURES).clean(echoed.as_bytes());
            assert_eq!(String::from_utf8(cleaned).unwrap(), kept, "{echoed}");
        }
    }
    #[test]
    fn a_payload_that_is_echoed_as_a_whole_is_taken_out_and_what_is_quoted_of_it_stays() {
        const PAYLOAD: &str = "{\"iban\":\"AT61\",\n \"n\":1}";
        for (echoed, kept) in [
            ("bad: {\"iban\":\"AT61\",\n \"n\":1}!", "bad: [redacted]!"),
            ("{\"body\":\"{\\\"iban\\\":\\\"AT61\\\",\\n \\\"n\\\":1}\"}", "{\"body\":\"[redacted]\"}"),
            ("cut off: {\"iban\":\"AT61\",", "cut off: [redacted]"),
            ("iban: AT61 is not one", "iban: AT61 is not one"),
        ] {
            let redactor =
                Redactor::new([].into_iter(), "").and_payload(Bytes::from_static(PAYLOAD.as_bytes()));
            let cleaned = redactor.clean(echoed.as_bytes());
            assert_eq!(String::from_utf8(cleaned).unwrap(), kept, "{echoed}");
        }
        let short = Redactor::new([].into_iter(), "").and_payload(Bytes::from_static(b"{}"));
        assert_eq!(short.clean(b"{} is empty"), b"{} is empty");
    }
}
