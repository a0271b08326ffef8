//! `infra/metrics.json`: what the code measures, for whoever is not code (the alarms of the Terraform, a
//! dashboard of one's own). Made by this test: `make metrics`.

use std::env;
use std::path::Path;

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use waybill_service::instruments::{ALL, Instrument, Kind, describe, saturated};

fn described(instrument: &Instrument) -> Value {
    let kind = match instrument.kind {
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        Kind::Gauge => "gauge",
    };
    json!({
        "name": instrument.name, "kind": kind, "unit": instrument.unit.as_str(),
        "labels": instrument.labels, "help": instrument.help,
    })
}

#[test]
fn the_list_of_metrics_is_what_the_code_measures() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/metrics.json");
    let list: Vec<Value> = ALL.iter().map(described).collect();
    let text = serde_json::to_string_pretty(&list).unwrap() + "\n";
    if env::var_os("WAYBILL_WRITE_METRICS").is_some() {
        std::fs::write(&file, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(written == text, "infra/metrics.json is not what the code measures: run `make metrics`");
}

/// A name means one thing, and a unit stands where CloudWatch knows it.
#[test]
fn every_instrument_has_a_name_of_its_own_and_says_what_it_tells() {
    let mut names: Vec<&str> = ALL.iter().map(|instrument| instrument.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.iter().all(|one| one.help.len() > 20 && one.name.chars().all(|c| c.is_ascii_alphanumeric())));
}

#[test]
fn a_recorder_is_told_of_every_instrument_and_takes_each_with_its_labels() {
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        describe();
        ALL.iter().for_each(Instrument::touch);
    });
    let text = recorder.handle().render();
    for Instrument { name, help, labels, .. } in ALL {
        assert!(text.contains(&format!("# HELP {name} {help}\n")), "{name}");
        let used = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
        assert!(text.lines().any(|line| used(&line)), "{name}");
    }
}

#[test]
fn a_workers_saturation_is_the_share_of_its_room_that_is_in_use() {
    for (busy, room, percent) in [(0, 4, 0.0), (3, 4, 75.0), (4, 4, 100.0), (0, 0, 0.0), (1, 0, 100.0)] {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || saturated(busy, room));
        let text = recorder.handle().render();
        assert!(text.contains(&format!("WorkerSaturation_sum {percent}\n")), "{busy} of {room}: {text}");
    }
}
