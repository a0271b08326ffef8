//! Settings right at their bounds, names that are nearly right, and one fault that makes no second one.

use std::collections::BTreeMap;

use waybill_service::config_file::{bundle, nearest, parse_with_files};

use super::{DESTINATION, faults};

#[test]
fn what_is_at_a_bound_is_taken_and_what_is_beyond_it_is_not() {
    let headers = |count: usize| {
        let entries: Vec<String> = (0..count).map(|n| format!("x-{n} = \"env:H\"")).collect();
        format!("headers = {{ {} }}", entries.join(", "))
    };
    let owner = |bytes: usize| format!("owner = \"{}\"", "o".repeat(bytes));
    let rows = [
        (owner(256), None),
        (owner(257), Some("line 5: destinations.d.owner: is not a name or an address")),
        ("owner = \"a\\nb\"".to_owned(), Some("line 5: destinations.d.owner: is not a name or an address")),
        (headers(16), None),
        (headers(17), Some("line 5: destinations.d.headers: has 17")),
        ("[system]\nstale_after = \"1s\"".to_owned(), None),
        (
            "[system]\nstale_after = \"999ms\"".to_owned(),
            Some("line 6: system.stale_after: is 999ms (1s or longer)"),
        ),
        ("[policies.p]\nfactor = 2".to_owned(), None),
        ("[policies.p]\nfactor = 0x2".to_owned(), Some("line 6: policies.p.factor: is a number")),
    ];
    for (lines, fault) in rows {
        let said = faults(&format!("{DESTINATION}{lines}\n"));
        assert_eq!(said.len(), usize::from(fault.is_some()), "{lines}: {said:?}");
        assert!(
            said.iter().all(|said| fault.is_some_and(|fault| said.starts_with(fault))),
            "{lines}: {said:?}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_one_fault_and_not_another_by_its_default() {
    // By its default of 1 s the base would be longer than the maximum.
    for other in ["max_attempts = 3", "factor = 2", "horizon = \"1h\""] {
        let lines = format!("[policies.p]\nmax_delay = \"500ms\"\n{other}\nbase_delay = \"soon\"\n");
        let said = faults(&format!("{DESTINATION}{lines}"));
        assert_eq!(said.len(), 1, "{other}: {said:?}");
        assert!(said[0].starts_with("line 8: policies.p.base_delay: "), "{other}: {said:?}");
    }
}

#[test]
fn a_key_is_given_twice_whatever_stands_behind_it() {
    let said = faults(&format!("{DESTINATION}event_types = [\"a\"]\nevent_types = [\"a\"]\n"));
    assert_eq!(said, ["line 6: event_types: is given twice (every key once)"]);
}

#[test]
fn the_key_that_was_meant_is_one_slip_away_and_of_several_the_nearest() {
    let keys = ["url", "tenants", "timeout", "event_types", "max_attempts"];
    let rows = [
        ("url", Some("url")),
        ("ulr", Some("url")),
        ("ur", Some("url")),
        ("urll", Some("url")),
        ("lru", None),
        ("u", None),
        ("tenant", Some("tenants")),
        ("etnants", Some("tenants")),
        ("tenatns", Some("tenants")),
        ("tnants", Some("tenants")),
        ("etnanst", Some("tenants")),
        ("urlxxxxxx", None),
        ("tneant", Some("tenants")),
        ("tneatn", None),
        ("timeouts", Some("timeout")),
        ("time", None),
        ("max_attempt", Some("max_attempts")),
        ("maxattempt", Some("max_attempts")),
        ("max_tries", None),
        ("maxattmpts", Some("max_attempts")),
        ("axm_attempst", Some("max_attempts")),
        ("", None),
    ];
    for (written, meant) in rows {
        assert_eq!(nearest(written, keys), meant, "{written:?}");
    }
    assert_eq!(nearest("rate", ["date", "rates", "rate"]), Some("rate"));
}

#[test]
fn a_file_is_named_by_a_relative_path_of_plain_parts() {
    for (name, is_sound) in [
        ("s.json", true),
        ("a/s.json", true),
        ("a\\\\s.json", false),
        ("c:s.json", false),
        ("a\\u0007s.json", false),
        ("/s.json", false),
        ("../s.json", false),
        ("./s.json", false),
        ("", false),
    ] {
        let text = format!("{DESTINATION}schema = \"{name}\"\n");
        assert_eq!(bundle(&text, |_| Ok("{}".to_owned())).is_ok(), is_sound, "{name:?}");
    }
}

#[test]
fn what_a_file_says_stands_in_the_bundle_byte_for_byte() {
    for file in [
        "'''",
        "'''x",
        "'''🎉",
        "a'",
        "\n",
        "\t",
        "\r\n",
        "\u{1b}[0m",
        "\u{1}'''\u{2}",
        "\\",
        "\"",
        "ends'''",
    ] {
        let text = format!("{DESTINATION}schema = \"s.json\"\n");
        let one = bundle(&text, |_| Ok(file.to_owned())).unwrap();
        let table: toml::Table = one.parse().unwrap_or_else(|fault| panic!("{file:?}: {fault}"));
        assert_eq!(table["files"]["s.json"].as_str(), Some(file));
    }
}

#[test]
fn a_file_that_cannot_be_read_is_a_fault_beside_every_other() {
    let text = format!("{DESTINATION}schema = \"s.json\"\ncolour = 1\n");
    let files = BTreeMap::from([("s.json", "{}")]);
    let said = |text: &str, read: &dyn Fn(&str) -> Result<String, String>| -> Vec<String> {
        let locality = waybill_domain::address::Locality::PublicOnly;
        let faults = parse_with_files(text, read, locality).err().unwrap_or_default();
        faults.iter().map(|fault| fault.key.clone()).collect()
    };
    let found =
        |name: &str| files.get(name).map(|file| (*file).to_owned()).ok_or_else(|| "is gone".to_owned());
    let gone = |_: &str| Err("is gone".to_owned());
    assert_eq!(said(&text, &found), ["destinations.d.colour"]);
    assert_eq!(said(&text, &gone), ["destinations.d.schema", "destinations.d.colour"]);
    let alone = text.replace("colour = 1\n", "");
    assert_eq!(said(&alone, &found), Vec::<String>::new());
    assert_eq!(said(&alone, &gone), ["destinations.d.schema"]);
}
