//! The headers of one request, as every door hands them over.

use std::collections::BTreeMap;

/// Headers by name, in any case. Several lines of one name are one value, joined by commas, as
/// gateways join them: a signature that stands there twice is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, Vec<u8>>);

impl Headers {
    /// The value of a header, as bytes, without white space around it. `name` is in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|value| value.trim_ascii())
    }

    /// The value of a header that is visible ASCII (blanks within are fine).
    pub fn text(&self, name: &str) -> Option<&str> {
        let text = str::from_utf8(self.get(name)?).ok()?;
        text.bytes().all(|byte| (0x20..0x7f).contains(&byte)).then_some(text)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(lines: I) -> Self {
        let mut headers = BTreeMap::<String, Vec<u8>>::new();
        for (name, value) in lines {
            let joined = headers.entry(name.as_ref().to_ascii_lowercase()).or_default();
            if !joined.is_empty() {
                joined.push(b',');
            }
            joined.extend_from_slice(value.as_ref());
        }
        Self(headers)
    }
}

/// Whether `name` can be a header's name: 1 to 64 of the characters that HTTP allows in one.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}
