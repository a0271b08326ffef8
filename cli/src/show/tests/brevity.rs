//! What is shown is what a reader needs: nothing twice, nothing that does not fit.

use waybill_domain::attempt::{Attempt, Excerpt, Phase};
use waybill_domain::identity::ConfigRevision;

use super::super::beside::Beside;
use super::super::facts::of_delivery;
use super::super::table::of_records;
use super::super::timeline::timeline;
use super::{at, attempted, check, record};

#[test]
fn what_the_line_above_says_is_not_said_again_and_what_differs_is() {
    let (record, attempt) = attempted(&record(None), 503, 100);
    let plain = attempt.unwrap();
    let other = Attempt {
        note: "answered 503 Service Unavailable: closed on Sundays".to_owned(),
        config_revision: ConfigRevision::parse("file-0").unwrap(),
        phase: Some(Phase::Connect),
        excerpt: Some(Excerpt { bytes: vec![b'x'; 300], full_length: 1, complete: true }),
        ..plain.clone()
    };
    let shown = timeline(&record, &[plain], None);
    assert!(!shown.contains("note") && shown.matches("revision").count() == 1, "{shown}");
    let indent = " ".repeat(28);
    check(
        &record,
        &[other],
        &[
            &format!("{indent}  took         35ms, stopped at connect"),
            &format!("{indent}  note         closed on Sundays"),
            &format!("{indent}  said         \"{}…\" (1 byte)", "x".repeat(100)),
            &format!("{indent}  revision     file-0"),
        ],
    );
}

#[test]
fn the_owner_is_named_where_it_is_known() {
    let (refused, _) = attempted(&record(None), 401, 100);
    let expected = "correct the credentials or the secret on both sides. The owner of acme-accounting is books@acme. \
                    To release it";
    assert!(timeline(&refused, &[], Some("books@acme")).contains(expected));
    let facts = of_delivery(&refused, &[], &Beside { owner: Some("books@acme"), ..Beside::default() });
    assert!(facts["for_you"].as_str().unwrap().starts_with(expected.trim_end_matches("To release it")));
}

#[test]
fn a_listing_fits_on_the_line_of_a_terminal() {
    let (failed, _) = attempted(&record(None), 500, 100);
    let (done, _) = attempted(&failed, 200, 2_000);
    let table = of_records(&[record(None), failed, done], at(200_000));
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0][5..], ["AGE", "ATTEMPTS", "LAST", "FAILURE"]);
    assert_eq!(words[2][5..], ["3m20s", "1/7", "server_error"]);
    assert_eq!((words[1].last(), words[3].last()), (Some(&"-"), Some(&"-")));
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
}
