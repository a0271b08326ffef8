//! A file that is not TOML: the first thing that is wrong, and every key that stands there twice.
//!
//! The parser goes on after a fault, and what it makes of the rest is mostly the same fault again
//! under other names. A doubled key is no such fault: reading goes on behind it.

use std::ops::Range;

use toml::de::Error;

use super::fault::Faults;

const DOUBLED: &str = "duplicate key";

/// Reports doubled keys up to the first other fault, and that one.
pub(super) fn report(text: &str, errors: &[Error], faults: &Faults<'_>) {
    let mut errors: Vec<(Range<usize>, &str)> =
        errors.iter().map(|error| (error.span().unwrap_or_default(), error.message())).collect();
    errors.sort_by_key(|(at, _)| at.start);
    for (at, message) in errors {
        if message != DOUBLED {
            faults.add(at.start, "", message.replace('\n', "; "), "TOML, see https://toml.io");
            return;
        }
        faults.add(at.start, key(text, at.clone()), "is given twice", "every key once");
    }
}

/// The key at a place: the whole of a table's header, `[destinations.d]`, otherwise as it is written.
fn key(text: &str, at: Range<usize>) -> &str {
    let begin = text.get(..at.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(begin..).and_then(|rest| rest.lines().next()).unwrap_or_default().trim();
    match line.find(']') {
        Some(end) if line.starts_with('[') => &line[..=end],
        _ => text.get(at).unwrap_or_default(),
    }
}
