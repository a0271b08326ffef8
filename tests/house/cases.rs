//! Every fault that systems of this kind have had has its test here, found by its number.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Without a test, and why.
const EXCUSED: &[(&str, &str)] = &[(
    "C43",
    "decision 0007: a redrive copies no message, so there is no queue that could drop it as a duplicate",
)];

#[test]
fn every_known_fault_has_a_test_that_carries_its_number() {
    let known = known();
    let tested = tested();
    let excused: BTreeSet<&str> = EXCUSED.iter().map(|(number, _)| *number).collect();
    let missing: Vec<_> = known
        .iter()
        .filter(|(number, _)| !tested.contains(*number) && !excused.contains(number.as_str()))
        .collect();
    assert!(missing.is_empty(), "no test carries these numbers: {missing:#?}");
    let unknown: Vec<_> = tested.iter().filter(|number| !known.contains_key(*number)).collect();
    assert!(unknown.is_empty(), "tests carry numbers that no known fault has: {unknown:?}");
    for (number, why) in EXCUSED {
        assert!(!tested.contains(*number), "{number} has a test, although it is excused: {why}");
    }
    assert_eq!((known.len(), tested.len()), (65, 64));
}

#[test]
fn numbers_are_read_from_the_names_of_tests_alone() {
    let rows: &[(&str, &[&str])] = &[
        ("    fn c09_c121_an_event_goes()", &["C09", "C121"]),
        ("def test_c31_the_answer(self):", &["C31"]),
        ("async fn c63a_too_late() {", &["C63"]),
        (r#"run "c25_one_limit" {"#, &["C25"]),
        ("// fn c17: said in a comment", &[]),
        ("let c11_is = no_test();", &[]),
        ("fn count_c15()", &[]),
    ];
    for (line, expected) in rows {
        assert_eq!(numbers_in(line), *expected, "{line}");
    }
}

/// The known faults, by number.
fn known() -> BTreeMap<String, String> {
    serde_json::from_str(include_str!("../vectors/cases.json")).unwrap()
}

/// The numbers that tests carry, over all sources of the repository.
fn tested() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for folder in ["bench", "cli", "functions", "infra", "shared", "tests"] {
        for file in sources(&root.join(folder)) {
            let text = std::fs::read_to_string(&file).unwrap();
            found.extend(text.lines().flat_map(numbers_in));
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files = Vec::new();
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_source = [".rs", ".py", ".tftest.hcl"].iter().any(|ending| name.ends_with(ending));
        match entry.file_type().unwrap() {
            kind if kind.is_dir() && !name.starts_with('.') && name != "target" => {
                files.extend(sources(&path))
            }
            kind if kind.is_file() && is_source => files.push(path),
            _ => {}
        }
    }
    files
}

/// The numbers at the beginning of the name of the test that a line begins.
fn numbers_in(line: &str) -> Vec<String> {
    let line = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    let name = ["fn ", "def test_", "run \""].iter().find_map(|beginning| line.strip_prefix(beginning));
    let number = |part: &str| {
        let digits = part.strip_prefix('c')?.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| format!("C{digits}"))
    };
    name.into_iter().flat_map(|name| name.split('_').map_while(number)).collect()
}
