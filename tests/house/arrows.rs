//! The dependency arrows of the house, read from the manifests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn manifest(path: &Path) -> toml::Table {
    std::fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap()
}

/// Every member's own dependencies (not those of its tests), by member folder.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let workspace = manifest(&root());
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let of = |member: &toml::Value| {
        let member = member.as_str().unwrap();
        let manifest = manifest(&root().join(member));
        let names = manifest.get("dependencies").and_then(toml::Value::as_table).map(|t| t.keys().cloned());
        (member.to_owned(), names.into_iter().flatten().collect())
    };
    members.iter().map(of).collect()
}

/// What a function may depend on.
const FUNCTION: &[&str] =
    &["waybill-domain", "waybill-service", "waybill-http", "waybill-system", "waybill-aws"];

#[test]
fn arrows_point_from_the_edge_to_the_domain() {
    // Who may depend on which of ours. `cli` has the test kit for `waybill rehearse`, which runs
    // recipients of its own.
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("shared/domain", [].as_slice()),
        ("shared/service", &["waybill-domain"]),
        ("shared/http", &["waybill-domain", "waybill-service"]),
        ("shared/embedded", &["waybill-domain", "waybill-service"]),
        ("shared/aws", &["waybill-domain", "waybill-service", "waybill-http"]),
        ("shared/testkit", &["waybill-domain", "waybill-service"]),
        ("shared/system", &["waybill-domain", "waybill-service"]),
        ("functions/ingest", FUNCTION),
        ("functions/consumer", FUNCTION),
        ("functions/reconciler", FUNCTION),
        (
            "cli",
            // `waybill-aws` only with the feature `aws`.
            &[
                "waybill-aws",
                "waybill-domain",
                "waybill-service",
                "waybill-http",
                "waybill-system",
                "waybill-embedded",
                "waybill-testkit",
            ],
        ),
        ("bench", &["waybill-domain", "waybill-service", "waybill-embedded", "waybill-testkit"]),
        ("tests", &[]),
        (
            "tests/aws",
            // All but the first only for the consumer of the next version.
            &[
                "waybill-aws",
                "waybill-consumer",
                "waybill-service",
                "waybill-http",
                "waybill-system",
                "waybill-testkit",
            ],
        ),
    ]);
    for (member, names) in dependencies() {
        let allowed = allowed.get(member.as_str()).unwrap_or_else(|| panic!("{member} has no rule here"));
        for name in names.iter().filter(|name| name.starts_with("waybill-")) {
            assert!(allowed.contains(&name.as_str()), "{member} must not depend on {name}");
        }
    }
}

#[test]
fn domain_and_service_know_no_runtime_no_network_and_no_store() {
    let foreign = ["tokio", "hyper", "reqwest", "rusqlite", "aws", "rand", "getrandom", "axum", "rustls"];
    let dependencies = dependencies();
    for member in ["shared/domain", "shared/service"] {
        for name in &dependencies[member] {
            assert!(!foreign.iter().any(|bad| name.starts_with(bad)), "{member} must not depend on {name}");
        }
    }
}

#[test]
fn domain_is_kept_from_clock_chance_and_environment_by_clippy() {
    let bans = std::fs::read_to_string(root().join("shared/domain/clippy.toml")).unwrap();
    for banned in ["SystemTime::now", "Instant::now", "Timestamp::now", "std::env::var", "RandomState"] {
        assert!(bans.contains(banned), "shared/domain/clippy.toml does not ban {banned}");
    }
}
