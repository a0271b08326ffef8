//! One `waybill serve` per data file, whatever name the file is called by, and only while it is there.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use support::{Home, text};

const EVENT: &str = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{}}"#;

/// A start on `data` that is expected to fail; what it says.
fn refused(home: &Home, data: &str) -> String {
    let ran = home.run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 1, "{data}: {}", ran.err);
    ran.err
}

#[test]
fn a_data_file_that_is_served_is_refused_under_every_other_name() {
    type Rename = fn(&Path);
    let rows: [(&str, Rename); 5] = [
        ("./waybill.db", |_| ()),
        ("hard.db", |dir| fs::hard_link(dir.join("waybill.db"), dir.join("hard.db")).unwrap()),
        ("soft.db", |dir| symlink("waybill.db", dir.join("soft.db")).unwrap()),
        ("waybill.db", |dir| fs::remove_file(dir.join("waybill.db.lock")).unwrap()),
        ("folder/waybill.db", |dir| symlink(".", dir.join("folder")).unwrap()),
    ];
    for (name, rename) in rows {
        let home = Home::new();
        let mut serving = home.serve(&[]);
        rename(home.dir.path());
        let said = refused(&home, name);
        assert!(said.contains("another waybill serve works on it"), "{name}: {said}");
        assert_eq!(serving.publish(EVENT).status, 202, "{name}");
        assert!(serving.is_alive(), "{name}");
    }
}

#[test]
fn a_data_file_that_is_not_there_yet_is_one_file_under_the_name_that_leads_to_it() {
    let home = Home::new();
    symlink("real.db", home.path("soft.db")).unwrap();
    let serving = home.serve(&["--data", "soft.db"]);
    let said = refused(&home, "real.db");
    assert!(said.contains("another waybill serve works on it"), "{said}");
    assert_eq!(serving.stop(), 0);
}

#[test]
fn a_data_file_of_two_names_is_not_served() {
    let home = Home::new();
    assert_eq!(home.serve(&[]).stop(), 0);
    fs::hard_link(home.path("waybill.db"), home.path("other.db")).unwrap();
    for name in ["waybill.db", "other.db"] {
        let said = refused(&home, name);
        assert!(said.contains(&format!("{name}: the file has 2 names")), "{said}");
    }
    assert!(!home.path("other.db.lock").exists());
    fs::remove_file(home.path("other.db")).unwrap();
    assert_eq!(home.serve(&[]).stop(), 0);
}

#[test]
fn serve_ends_when_its_data_file_is_removed_or_replaced() {
    type Take = fn(&Path);
    let rows: [(&str, Take); 3] = [
        ("removed", |data| fs::remove_file(data).unwrap()),
        ("renamed", |data| fs::rename(data, data.with_extension("away")).unwrap()),
        ("replaced", |data| {
            fs::copy(data, data.with_extension("copy")).unwrap();
            fs::rename(data.with_extension("copy"), data).unwrap();
        }),
    ];
    for (what, take) in rows {
        let home = Home::new();
        let serving = home.serve(&[]);
        assert_eq!(serving.publish(EVENT).status, 202, "{what}");
        take(&home.path("waybill.db"));
        assert_eq!(serving.ended(), 1, "{what}");
        let log = home.log();
        assert!(log.contains("waybill.db: it was removed or replaced"), "{what}: {log}");
    }
}

#[test]
fn the_lock_of_the_data_file_keeps_no_other_command_from_it() {
    let home = Home::new();
    let serving = home.serve(&[]);
    assert_eq!(home.run_with(&["publish"], EVENT.as_bytes()).code, 0);
    assert_eq!(text(&home.deliveries()[0], "event_id"), "e1");
    assert_eq!(serving.stop(), 0);
}
