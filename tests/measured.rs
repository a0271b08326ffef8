//! What the instruments tell while something is done: for the tests of every folder here.

use std::collections::BTreeMap;

use metrics_exporter_prometheus::PrometheusBuilder;

/// Every series and its value, once `work` is done.
pub(crate) fn measured(work: impl FnOnce()) -> BTreeMap<String, f64> {
    let recorder = PrometheusBuilder::new().set_buckets(&[1e9]).unwrap().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, work);
    let text = handle.render();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, n)| (name.to_owned(), n.parse().unwrap()))
        .collect()
}
