//! A configuration in short.

use waybill_domain::destination::Destination;
use waybill_service::config::Config;

/// What `config check` says of a good file.
pub(crate) fn summary(config: &Config) -> String {
    let mut lines = vec![format!("{} is good", config.revision)];
    for destination in config.destinations.values() {
        lines.push(of_destination(destination));
    }
    for (name, producer) in &config.producers {
        lines.push(format!("producer {name}: for {}", list(&producer.tenants)));
    }
    for (pattern, rules) in &config.event_types {
        let asked = if rules.require_deadline { "no deadline, no send" } else { "nothing special" };
        lines.push(format!("event type {pattern}: {asked}"));
    }
    lines.join("\n")
}

fn of_destination(destination: &Destination) -> String {
    let subscribed = match destination.event_types.as_slice() {
        [] => "only what names it".to_owned(),
        types => list(types),
    };
    format!(
        "destination {}: {} of {} to {}, {} attempts within {}, {} each",
        destination.name,
        subscribed,
        list(&destination.tenants),
        destination.url.origin(),
        destination.policy.max_attempts,
        destination.policy.horizon,
        destination.timeout,
    )
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
