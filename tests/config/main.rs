//! The configuration file: what it is read as, and every fault that it can have.

mod accepted;
mod edges;
mod example;
mod files;
mod headers;
mod reference;
mod refused;
mod required;
mod schedules;
mod sources;
mod suspending;
mod syntax;
mod worker;

use waybill_domain::address::Locality;
use waybill_service::config::Config;
use waybill_service::config_file::parse;

/// A destination that has all it needs; rows put their own lines below it.
const DESTINATION: &str = r#"[destinations.d]
tenants = ["acme"]
url = "https://hooks.example.com/in"
secrets = ["env:D_SECRET"]
"#;

fn read(text: &str) -> Config {
    parse(text, Locality::PublicOnly).unwrap_or_else(|faults| panic!("{text}\nis refused: {faults:#?}"))
}

fn faults(text: &str) -> Vec<String> {
    match parse(text, Locality::PublicOnly) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}
