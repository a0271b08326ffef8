//! Who is asked when a destination fails: as the configuration says, if one is at hand. The ledger
//! does not know, and looking at it needs no configuration.

use std::path::Path;

use waybill_domain::address::Locality;
use waybill_domain::delivery::Record;
use waybill_service::config::Config;
use waybill_service::config_file::Rules;

use super::config::{DEFAULT_FILE, load, read};
use super::operator::Operator;
use crate::backend::Backend;
use crate::exit::Failure;

/// The owners that are known.
pub(super) struct Owners(Option<Config>);

impl Owners {
    /// From the file that is named, or else as [`Owners::at_hand`].
    pub(super) fn of(named: Option<&Path>, operator: &Operator, backend: &Backend) -> Result<Self, Failure> {
        match named {
            Some(file) => load(file, rules(backend)).map(|config| Self(Some(config))),
            None => Ok(Self::at_hand(operator, backend)),
        }
    }

    /// From the configuration in force, or else from the default file if that is there and good.
    pub(super) fn at_hand(operator: &Operator, backend: &Backend) -> Self {
        let in_force = operator.config_at_hand().cloned();
        Self(in_force.or_else(|| read(Path::new(DEFAULT_FILE), rules(backend)).ok()))
    }

    /// The owner of a delivery's destination.
    pub(super) fn owner(&self, record: &Record) -> Option<&str> {
        let delivery = &record.delivery;
        self.0.as_ref()?.destination(&delivery.destination, &delivery.tenant)?.owner.as_deref()
    }
}

/// Nothing is sent from here: any address will do.
fn rules(backend: &Backend) -> Rules {
    Rules { locality: Locality::AllowLocal, secrets: backend.secret_stores(), worker_runs: None }
}
