//! The metrics of a function: CloudWatch's embedded metric format, lines on standard output that Lambda
//! puts into the log and CloudWatch turns into metrics, at no request of ours.
//!
//! Written at the end of each invocation. A metric takes 100 measured values of one invocation and label:
//! of a reconciler's round that ends more deliveries than that, the distribution is of the first hundred.
//! What is counted is exact.

use std::io;

use metrics_cloudwatch_embedded::{Builder, Collector, Error};
use waybill_service::instruments;

/// The namespace of every metric.
pub const NAMESPACE: &str = "Waybill";

/// The metrics of this process.
#[derive(Clone, Copy)]
pub struct Emf(&'static Collector);

/// Starts the instruments of this process. Fails where somebody started others before.
pub fn start() -> Result<Emf, Error> {
    let collector = Builder::new().cloudwatch_namespace(NAMESPACE).init()?;
    instruments::describe();
    Ok(Emf(collector))
}

impl Emf {
    /// Writes what was counted and measured since the last time.
    pub fn flush(self) {
        self.write(io::stdout().lock());
    }

    fn write(self, to: impl io::Write) {
        if let Err(error) = self.0.flush(to) {
            tracing::warn!(%error, "metrics are not written");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_instrument_is_written_with_its_unit_and_its_labels_as_dimensions_and_once() {
        let emf = start().expect("the only test that starts instruments");
        instruments::ALL.iter().for_each(instruments::Instrument::touch);
        let mut written = Vec::new();
        emf.write(&mut written);
        let text = String::from_utf8(written).expect("text");
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a JSON line");
            let told = &line["_aws"]["CloudWatchMetrics"][0];
            assert_eq!(told["Namespace"], NAMESPACE);
            for metric in told["Metrics"].as_array().expect("metrics") {
                let name = metric["Name"].as_str().expect("a name");
                let of = instruments::ALL.iter().find(|one| one.name == name).expect("one of ours");
                let dimensions: Vec<&str> = told["Dimensions"][0]
                    .as_array()
                    .expect("a set")
                    .iter()
                    .filter_map(Value::as_str)
                    .collect();
                assert_eq!(dimensions, of.labels, "{name}");
                assert!(dimensions.iter().all(|dimension| line[dimension].is_string()), "{line}");
                assert!(metric["Unit"].is_string() && !line[name].is_null(), "{line}");
                assert!(seen.insert(of.name), "{name} twice");
            }
        }
        assert_eq!(seen.len(), instruments::ALL.len(), "{seen:?}");
    }
}
