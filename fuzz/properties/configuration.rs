//! A configuration: read alike each time, and of one that is refused every fault is told, in a line of its
//! own, without a secret that was written where its reference belongs. What is taken can be worked with.

use toml::Value;
use waybill_domain::address::Locality;
use waybill_domain::identity::AttemptNumber;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::{Config, Schedule};
use waybill_service::config_file::{bundle, parse};

use crate::said::is_one_line;

/// 2026-03-29T12:00:00Z: within two weeks of it the clocks of most zones that have a summer time jump.
const NOW: TimeMs = TimeMs::from_unix_ms(1_774_785_600_000);

pub(crate) fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(text) = bundle(text, |_| Ok("{}".to_owned())) else { return };
    for locality in [Locality::PublicOnly, Locality::AllowLocal] {
        let read = parse(&text, locality);
        assert_eq!(read, parse(&text, locality), "read twice");
        match read {
            Ok(config) => works(&config),
            Err(faults) => {
                assert!(!faults.is_empty(), "refused without a reason");
                assert!(faults.is_sorted_by_key(|fault| fault.line));
                let secrets = secrets(&text);
                for fault in faults {
                    let said = fault.to_string();
                    assert!((1..=text.lines().count() + 1).contains(&fault.line), "{said}");
                    is_one_line(&said);
                    assert!(!secrets.iter().any(|secret| said.contains(secret)), "a secret in {said:?}");
                }
            }
        }
    }
    assert_eq!(bundle(&text, |_| Err("there is no folder".to_owned())), Ok(text), "bundled once");
}

fn works(config: &Config) {
    assert!(!config.destinations.is_empty());
    for destination in config.destinations.values() {
        let policy = destination.policy;
        for attempt in [1, 2, policy.max_attempts] {
            let delay = policy.backoff.delay(AttemptNumber::after(attempt - 1), 0.999);
            assert!(delay <= policy.backoff.max, "{}", destination.name);
        }
        assert_eq!(destination.fingerprint().len(), 16);
    }
    for schedule in &config.schedules {
        assert!(config.destinations.contains_key(&schedule.destination));
        fires(schedule);
    }
}

/// Whatever pattern and zone: windows lie in order, each is closed when it is fired for, and a tick of
/// every few hours sees the same ones.
fn fires(schedule: &Schedule) {
    let span = DurationMs::from_secs(28 * 86_400);
    let windows = schedule.timing.closed_windows(span, NOW);
    for window in &windows {
        assert!(window.from < window.to && window.to <= window.fires_at && window.fires_at <= NOW);
        for tenant in &schedule.tenants {
            let event = schedule.event(tenant, window.day);
            assert_eq!(event, schedule.event(tenant, window.day));
        }
    }
    assert!(windows.windows(2).all(|pair| pair[0].to <= pair[1].from && pair[0].fires_at < pair[1].fires_at));
    let step = DurationMs::from_secs(7 * 3600);
    let ticks = (1..=96).map(|n| NOW.minus(span).plus(step.times(n)));
    let seen: Vec<_> = ticks.flat_map(|now| schedule.timing.closed_windows(step, now)).collect();
    assert_eq!(seen, windows, "{}", schedule.timing);
}

/// Texts that stand once in the file, where references to secrets belong, and are none.
fn secrets(text: &str) -> Vec<String> {
    fn walk(name: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Table(table) => table.iter().for_each(|(key, value)| walk(key, value, found)),
            Value::Array(items) => items.iter().for_each(|item| walk(name, item, found)),
            Value::String(text) if ["secrets", "tokens"].contains(&name) => found.push(text.clone()),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        table.iter().for_each(|(key, value)| walk(key, value, &mut found));
    }
    let is_reference =
        |text: &str| ["env:", "ssm:", "secretsmanager:"].iter().any(|kind| text.starts_with(kind));
    found.retain(|secret| {
        !is_reference(secret) && secret.len() >= 12 && text.matches(secret.as_str()).count() == 1
    });
    found
}
