//! The metrics of a function: CloudWatch's embedded metric format, lines on standard output that Lambda
//! puts into the log and CloudWatch turns into metrics, at no request of ours.
//!
//! Each metric stands under its labels and, for alarms over all of them, under none; what has a reason
//! stands under that alone, too.
//!
//! Written at the end of each invocation. A metric takes 100 measured values of one invocation and label:
//! of a reconciler's round that ends more deliveries than that, the distribution is of the first hundred.
//! What is counted is exact.

use std::{env, io};

use metrics_cloudwatch_embedded::{Builder, Collector, Error};
use serde_json::{Value, json};
use waybill_service::instruments;

/// The namespace of every metric, unless `WAYBILL_METRICS_NAMESPACE` names another: two installations in
/// one account must not count into one another's metrics.
pub const NAMESPACE: &str = "Waybill";

/// The metrics of this process.
#[derive(Clone, Copy)]
pub struct Emf(&'static Collector);

/// Starts the instruments of this process. Fails where somebody started others before.
pub fn start() -> Result<Emf, Error> {
    let named = env::var("WAYBILL_METRICS_NAMESPACE").ok().filter(|name| !name.is_empty());
    let namespace = named.unwrap_or_else(|| NAMESPACE.to_owned());
    let collector = Builder::new().cloudwatch_namespace(namespace).init()?;
    instruments::describe();
    Ok(Emf(collector))
}

impl Emf {
    /// Writes what was counted and measured since the last time.
    pub fn flush(self) {
        if let Err(error) = self.write(&mut io::stdout().lock()) {
            tracing::warn!(%error, "metrics are not written");
        }
    }

    fn write(self, to: &mut impl io::Write) -> io::Result<()> {
        let mut lines = Vec::new();
        self.0.flush(&mut lines)?;
        for line in serde_json::Deserializer::from_slice(&lines).into_iter::<Value>() {
            let mut line = line?;
            also_summed_up(&mut line);
            writeln!(to, "{line}")?;
        }
        Ok(())
    }
}

/// Adds the sets of dimensions under which an alarm finds the sum: none, and the reason alone.
fn also_summed_up(line: &mut Value) {
    let sets = line.pointer_mut("/_aws/CloudWatchMetrics/0/Dimensions").and_then(Value::as_array_mut);
    let Some(sets) = sets else { return };
    let has_reason = sets.iter().filter_map(Value::as_array).any(|set| set.contains(&json!("reason")));
    for sum in [json!([]), json!(["reason"])] {
        let is_meant = sum == json!([]) || has_reason;
        if is_meant && !sets.contains(&sum) {
            sets.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_instrument_is_written_with_its_unit_and_its_labels_as_dimensions_and_over_all() {
        let emf = start().expect("the only test that starts instruments");
        instruments::ALL.iter().for_each(instruments::Instrument::touch);
        let mut written = Vec::new();
        emf.write(&mut written).expect("written");
        let text = String::from_utf8(written).expect("text");
        let mut seen = BTreeSet::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("a JSON line");
            let told = &line["_aws"]["CloudWatchMetrics"][0];
            assert_eq!(told["Namespace"], NAMESPACE);
            let sets = told["Dimensions"].as_array().expect("sets");
            let times = |sum: Value| sets.iter().filter(|set| **set == sum).count();
            assert_eq!(times(json!([])), 1, "{line}");
            assert_eq!(times(json!(["reason"])), usize::from(line["reason"].is_string()), "{line}");
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
