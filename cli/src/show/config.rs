//! A configuration in short.

use std::path::Path;

use waybill_domain::destination::Destination;
use waybill_domain::source::Source;
use waybill_domain::time::DurationMs;
use waybill_domain::verify::Scheme;
use waybill_service::config::Config;

use super::counted;

/// What `config check` says of a good file.
pub(crate) fn summary(file: &Path, config: &Config) -> String {
    let mut lines = vec![format!("{} is good (revision {})", file.display(), config.revision)];
    for destination in config.destinations.values() {
        lines.push(of_destination(destination));
    }
    for (name, producer) in &config.producers {
        lines.push(format!("producer {name}: for {}", list(&producer.tenants)));
    }
    for (name, source) in &config.sources {
        lines.push(of_source(name, source));
    }
    for (pattern, rules) in &config.event_types {
        let asked = if rules.require_deadline { "no deadline, no send" } else { "nothing special" };
        lines.push(format!("event type {pattern}: {asked}"));
    }
    for schedule in &config.schedules {
        let (name, timing, tenants) = (&schedule.name, &schedule.timing, list(&schedule.tenants));
        let policy = schedule.policy.as_ref().map_or_else(String::new, |name| format!(", policy {name}"));
        lines.push(format!("schedule {name}: {timing}, for {tenants} to {}{policy}", schedule.destination));
    }
    lines.join("\n")
}

fn of_destination(destination: &Destination) -> String {
    let subscribed = match destination.event_types.as_slice() {
        [] => "only what names it".to_owned(),
        types => list(types),
    };
    format!(
        "destination {}: {} of {} to {}, {} within {}, {} each",
        destination.name,
        subscribed,
        list(&destination.tenants),
        destination.url.origin(),
        counted(destination.policy.max_attempts, "attempt"),
        span(destination.policy.horizon),
        span(destination.timeout),
    )
}

fn of_source(name: &str, source: &Source) -> String {
    let signed = match &source.scheme {
        Scheme::StandardWebhooks => "Standard Webhooks".to_owned(),
        Scheme::Github => "GitHub's scheme".to_owned(),
        Scheme::Stripe => "Stripe's scheme".to_owned(),
        Scheme::Hmac(rules) => format!("an HMAC in {}", rules.header),
    };
    let to = source.destination.as_ref().map_or_else(|| "every subscriber".to_owned(), ToString::to_string);
    format!("source {name}: for {}, verified by {signed}, to {to}", source.tenant)
}

pub(super) fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A span as a configuration would write it: `24h`, not `1d00h`.
pub(super) fn span(span: DurationMs) -> String {
    let ms = span.as_ms();
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    match units.into_iter().find(|(_, unit)| ms >= *unit && ms.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_they_are_in_the_file() {
        let rows = [(86_400_000, "24h"), (5_400_000, "90m"), (15_000, "15s"), (1_500, "1500ms"), (0, "0ms")];
        for (ms, shown) in rows {
            assert_eq!(span(DurationMs::from_ms(ms)), shown);
        }
    }
}
