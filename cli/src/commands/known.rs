//! Names on the line that nothing has: a slip of the fingers must not read as an empty answer.
//!
//! Only what found nothing is looked into, so that a destination which was removed from the
//! configuration stays selectable for as long as the ledger has anything of it. An operator of some
//! tenants is told of what is theirs: another tenant's name is answered as one that nobody has.

use std::collections::BTreeSet;
use std::fmt::Display;

use waybill_domain::destination::EventPattern;
use waybill_domain::identity::{DestinationName, TenantId};
use waybill_domain::redrive::Selection;
use waybill_service::config::Config;
use waybill_service::config_file::nearest;
use waybill_service::ports::{Catalogue, Filter};
use waybill_service::redrive::plan::filter;

use super::operator::Operator;
use crate::exit::Failure;

/// How many deliveries are looked at for the types that there are.
const MOST_LOOKED_AT: usize = 200;

/// How many names are listed where none is near.
const MOST_LISTED: usize = 10;

/// Refuses names that the configuration in force does not know, of a command that found nothing of them.
/// Without a configuration nobody knows.
pub(super) fn check(
    operator: &Operator,
    tenant: Option<&TenantId>,
    destination: Option<&DestinationName>,
) -> Result<(), Failure> {
    let Some(config) = operator.config_at_hand() else { return Ok(()) };
    if let Some(tenant) = tenant {
        let known = tenants(config, operator);
        if !known.contains(tenant.as_str()) {
            return Err(unknown("--tenant", tenant, &known));
        }
    }
    destination.map_or(Ok(()), |name| check_destination(config, operator, name))
}

/// Refuses a destination that the configuration does not know, or none of the operator's.
pub(super) fn check_destination(
    config: &Config,
    operator: &Operator,
    name: &DestinationName,
) -> Result<(), Failure> {
    let known = destinations(config, operator);
    match known.contains(name.as_str()) {
        true => Ok(()),
        false => Err(unknown("--destination", name, &known)),
    }
}

/// The failure of a command about one destination that there is not, or that is none of the operator's.
pub(super) fn no_destination(config: &Config, operator: &Operator, name: &DestinationName) -> Failure {
    unknown("destination", name, &destinations(config, operator))
}

/// Every destination that serves a tenant whose matters the operator may know of.
fn destinations<'c>(config: &'c Config, operator: &Operator) -> BTreeSet<&'c str> {
    let is_own = |tenants: &[TenantId]| tenants.iter().any(|tenant| operator.may_see(tenant));
    let own = config.destinations.values().filter(|known| is_own(&known.tenants));
    own.map(|known| known.name.as_str()).collect()
}

/// Refuses a type that is next to one which the configuration speaks of, and that no delivery of late is
/// of. Any other may be right: an event that names its destination may be of any type.
pub(super) async fn check_type(
    ledger: &impl Catalogue,
    operator: &Operator,
    tenant: Option<&TenantId>,
    wanted: &EventPattern,
) -> Result<(), Failure> {
    let Some(config) = operator.config_at_hand() else { return Ok(()) };
    let is_meant = |of: &TenantId| operator.may_see(of) && tenant.is_none_or(|tenant| tenant == of);
    let own = config.destinations.values().filter(|known| known.tenants.iter().any(is_meant));
    let taken: Vec<&EventPattern> = own.flat_map(|known| &known.event_types).collect();
    let known: BTreeSet<String> = taken.iter().map(ToString::to_string).collect();
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let is_taken = taken.iter().any(|taken| taken.meets(wanted));
    if is_taken || nearest(&wanted.to_string(), known.iter().copied()).is_none() {
        return Ok(());
    }
    let filter = Filter { tenant: tenant.cloned(), ..Filter::default() };
    let of_late = ledger.list(&filter, MOST_LOOKED_AT, None).await?.items;
    match of_late.iter().any(|record| wanted.matches(&record.delivery.event_type)) {
        true => Ok(()),
        false => Err(unknown("--type", wanted, &known)),
    }
}

/// Refuses a type of which there is no dead letter, where there are some of others.
pub(super) async fn check_type_of_dead(
    ledger: &impl Catalogue,
    selection: &Selection,
) -> Result<(), Failure> {
    let Some(wanted) = &selection.event_type else { return Ok(()) };
    let others = Selection { event_type: None, ..selection.clone() };
    let page = ledger.dead_letters(&filter(&others), MOST_LOOKED_AT, None).await?;
    let meant = page.items.iter().filter(|record| others.matches(record));
    let known: BTreeSet<&str> = meant.map(|record| record.delivery.event_type.as_str()).collect();
    match known.is_empty() {
        true => Ok(()),
        false => Err(unknown("--type", wanted, &known)),
    }
}

/// Every tenant that the configuration names and the operator may know of.
fn tenants<'c>(config: &'c Config, operator: &Operator) -> BTreeSet<&'c str> {
    let destinations = config.destinations.values().flat_map(|known| &known.tenants);
    let producers = config.producers.values().flat_map(|known| &known.tenants);
    let sources = config.sources.values().map(|known| &known.tenant);
    let all = destinations.chain(producers).chain(sources);
    all.filter(|tenant| operator.may_see(tenant)).map(TenantId::as_str).collect()
}

/// The sentence, with the name that was probably meant, or else what there is.
pub(super) fn unknown(option: &str, name: &impl Display, known: &BTreeSet<&str>) -> Failure {
    let name = name.to_string();
    let hint = match nearest(&name, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => {
            let listed: Vec<&str> = known.iter().copied().take(MOST_LISTED).collect();
            let more = if known.len() > MOST_LISTED { ", …" } else { "" };
            format!("there are {}{more}", listed.join(", "))
        }
    };
    Failure::wrong_input(format!("{option} {name}: nothing here has that name; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_told_or_else_what_there_is() {
        let known = BTreeSet::from(["books", "crm"]);
        let said = |name: &str| unknown("--destination", &name, &known).to_string();
        assert_eq!(said("boks"), "--destination boks: nothing here has that name; did you mean books?");
        assert_eq!(
            said("warehouse"),
            "--destination warehouse: nothing here has that name; there are books, crm"
        );
    }
}
