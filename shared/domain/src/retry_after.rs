//! `Retry-After`: what a recipient asks for, never undercut and never a panic.
//!
//! Delta-seconds (a decimal fraction is rounded up) or one of the three date forms of RFC 9110;
//! everything else is ignored. A wait is held to 366 days. `tests/vectors/retry_after.json` is the
//! oracle.

use crate::time::{DurationMs, TimeMs};

/// The wait that the fields ask for at `now`: of several, the longest valid one.
pub fn parse_fields<'a>(fields: impl IntoIterator<Item = &'a str>, now: TimeMs) -> Option<DurationMs> {
    fields.into_iter().filter_map(|field| parse(field, now)).max()
}

/// The wait that one field asks for at `now`, or nothing where the field is not understood.
///
/// ```
/// use waybill_domain::retry_after::parse;
/// use waybill_domain::time::{DurationMs, TimeMs};
///
/// let now = TimeMs::from_unix_ms(784_111_777_000);
/// assert_eq!(parse("120", now), Some(DurationMs::from_secs(120)));
/// assert_eq!(parse("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(DurationMs::from_secs(60)));
/// assert_eq!(parse("soon", now), None);
/// ```
pub fn parse(field: &str, now: TimeMs) -> Option<DurationMs> {
    let field = field.trim_matches([' ', '\t']);
    let wait = match field.as_bytes().first()? {
        b'0'..=b'9' => seconds(field)?,
        _ => until(field, now)?,
    };
    Some(wait.min(DurationMs::LONGEST))
}

/// `120`, `007`, `1.5`: digits, and perhaps a point and more digits.
fn seconds(field: &str) -> Option<DurationMs> {
    let (whole, fraction) = match field.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (field, ""),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let round_up = u64::from(fraction.bytes().any(|b| b != b'0'));
    // More digits than a u64 holds are still a number: one that is longer than anybody may ask for.
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX);
    Some(DurationMs::from_secs(whole.saturating_add(round_up)))
}

/// An HTTP-date; one in the past asks for no wait.
fn until(field: &str, now: TimeMs) -> Option<DurationMs> {
    let at = httpdate::parse_http_date(field).ok()?;
    let since_epoch = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    let at = TimeMs::from_unix_ms(i64::try_from(since_epoch.as_millis()).ok()?);
    Some(at.since(now))
}
