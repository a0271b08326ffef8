//! `Retry-After`: what is a number of seconds is waited for, what is a date is waited for until then, and
//! everything else is nothing. One line of the input is one field.

use waybill_domain::retry_after::{parse, parse_fields};
use waybill_domain::time::{DurationMs, TimeMs};

/// 2026-01-01T00:00:00Z.
const NOW: TimeMs = TimeMs::from_unix_ms(1_767_225_600_000);
const SECOND: DurationMs = DurationMs::from_secs(1);

pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let fields: Vec<&str> = text.split('\n').collect();
    for field in &fields {
        check_field(field);
    }
    let longest = fields.iter().filter_map(|field| parse(field, NOW)).max();
    assert_eq!(parse_fields(fields, NOW), longest, "the longest of several");
}

fn check_field(field: &str) {
    let wait = parse(field, NOW);
    assert_eq!(parse(&format!(" \t{field}\t "), NOW), wait, "white space around {field:?}");
    assert!(wait.is_none_or(|wait| wait <= DurationMs::LONGEST), "{field:?}");
    let bare = field.trim_matches([' ', '\t']);
    if let Ok(seconds) = bare.parse::<u64>()
        && !bare.starts_with('+')
    {
        let asked = DurationMs::from_secs(seconds).min(DurationMs::LONGEST);
        assert_eq!(wait, Some(asked), "{field:?}");
    } else if let Ok(at) = httpdate::parse_http_date(bare) {
        let at = at.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let left = at.saturating_sub(NOW.as_unix_s().unsigned_abs());
        let asked = DurationMs::from_secs(left).min(DurationMs::LONGEST);
        assert_eq!(wait.unwrap_or_default(), asked, "{field:?}");
        let later = parse(field, NOW.plus(SECOND)).unwrap_or_default();
        assert!(later <= asked && asked <= later.plus(SECOND), "{field:?}: the same moment, a second later");
    } else if let Some(wait) = wait {
        // What is left are decimal fractions: never undercut, and never more than rounded up.
        let asked: f64 = bare.parse().expect("a decimal number");
        let given = wait.as_ms() as f64 / 1000.0;
        assert!(
            wait == DurationMs::LONGEST || (asked <= given && given <= asked + 1.0),
            "{field:?}: {given}"
        );
    }
}
