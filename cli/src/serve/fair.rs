//! One recipient that hangs must not take every worker from the others.

use std::num::NonZeroUsize;
use std::sync::Arc;

use waybill_domain::budget::Budget;
use waybill_domain::destination::Destination;
use waybill_service::config::Config;

/// Gives every destination without a budget of its own half of the workers, where there are others.
pub(super) fn share_workers(config: &mut Config, workers: NonZeroUsize) {
    if config.destinations.len() < 2 {
        return;
    }
    let half = u32::try_from(workers.get() / 2).unwrap_or(u32::MAX);
    for destination in config.destinations.values_mut().filter(|destination| destination.budget.is_none()) {
        let budget = Budget::of(Some(half), None);
        *destination = Arc::new(Destination { budget, ..Destination::clone(destination) });
    }
}

#[cfg(test)]
mod tests {
    use waybill_domain::address::Locality;
    use waybill_service::config_file;

    use super::*;

    fn shares(destinations: &[(&str, &str)], workers: usize) -> Vec<Option<u32>> {
        let of = |(name, more): &(&str, &str)| {
            format!(
                "[destinations.{name}]\ntenants = [\"acme\"]\nurl = \"https://{name}.example.com/\"\n\
                 secrets = [\"env:S\"]\n{more}\n"
            )
        };
        let written: String = destinations.iter().map(of).collect();
        let mut config = config_file::parse(&written, Locality::PublicOnly).unwrap();
        share_workers(&mut config, NonZeroUsize::new(workers).unwrap());
        config.destinations.values().map(|d| d.budget.map(|budget| budget.concurrency)).collect()
    }

    #[test]
    fn whoever_has_no_budget_gets_half_of_the_workers_where_there_are_others() {
        assert_eq!(shares(&[("a", "")], 256), [None]);
        assert_eq!(shares(&[("a", ""), ("b", "concurrency = 3")], 256), [Some(128), Some(3)]);
        assert_eq!(shares(&[("a", ""), ("b", "")], 1), [Some(1), Some(1)]);
    }
}
