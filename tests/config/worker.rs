//! Where a worker is ended after a fixed time, a destination's timeout must fit into it.

use waybill_domain::address::Locality;
use waybill_domain::time::DurationMs;
use waybill_service::config_file::{Rules, SecretStores, parse};

use crate::DESTINATION;

fn faults(lines: &str, runs_s: Option<u64>) -> Vec<String> {
    let rules = Rules {
        locality: Locality::PublicOnly,
        secrets: SecretStores::Aws,
        worker_runs: runs_s.map(DurationMs::from_secs),
    };
    match parse(&format!("{DESTINATION}{lines}"), rules) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_timeout_that_does_not_fit_is_refused_with_its_line_and_the_rule() {
    let rows: [(&str, Option<u64>, &[&str]); 7] = [
        ("timeout = \"57s\"", Some(60), &[]),
        ("timeout = \"60s\"", None, &[]),
        ("", Some(60), &[]),
        (
            "timeout = \"58s\"",
            Some(60),
            &["line 5: destinations.d.timeout: is 58s, and would never be sent to \
               (at most 57s: the consumer runs for 1m00s, with its beginning and its answer)"],
        ),
        (
            "owner = \"x\"\ntimeout = \"3s\"",
            Some(5),
            &["line 6: destinations.d.timeout: is 3s, and would never be sent to \
               (at most 2s: the consumer runs for 5s, with its beginning and its answer)"],
        ),
        // What is not written is 15 s.
        (
            "",
            Some(10),
            &["line 1: destinations.d.timeout: is missing \
               (at most 7s: the consumer runs for 10s, with its beginning and its answer)"],
        ),
        // Another fault of the same key is told alone.
        ("timeout = \"61s\"", Some(60), &["line 5: destinations.d.timeout: is 1m01s (from 100ms to 60s)"]),
    ];
    for (lines, runs_s, expected) in rows {
        assert_eq!(faults(lines, runs_s), expected, "{lines:?} where the worker runs for {runs_s:?}");
    }
}
