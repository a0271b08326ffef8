//! A file that is not TOML: one slip, one fault; and keys that stand there twice.

use super::faults;

#[test]
fn one_slip_in_the_syntax_is_one_fault_with_its_line() {
    let rows: &[(&str, &str)] = &[
        ("a = \n", "line 1: "),
        ("[destinations.d\nurl = \"x\"\n", "line 1: unclosed table, expected `]`"),
        ("[destinations.d]\nurl = \"x\nsecrets = []\n", "line 2: invalid basic string"),
        ("[destinations.d]\nurl = \"x\nsecrets = [\"a]\n", "line 2: invalid basic string"),
        ("[destinations.d]\ntenants = [\"a\", \"b\"\nurl = \"x\"\n[policies.p]\n", "line 3: missing comma"),
        ("[destinations.d]\nurl x = http://x y = 3\n", "line 2: "),
    ];
    for (text, begins) in rows {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert!(found[0].starts_with(begins), "{text:?}: {found:?}");
        assert!(found[0].ends_with("(TOML, see https://toml.io)"), "{found:?}");
    }
}

#[test]
fn every_key_that_stands_there_twice_is_named() {
    let rows: &[(&str, &[&str])] = &[
        (
            "[destinations.d]\nurl = \"x\"\nurl = \"y\"\n[destinations.d]\n",
            &[
                "line 3: url: is given twice (every key once)",
                "line 4: [destinations.d]: is given twice (every key once)",
            ],
        ),
        (
            "[destinations.d]\nstatuses = { 404 = \"retryable\", 404 = \"permanent\" }\n",
            &["line 2: 404: is given twice (every key once)"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(faults(text), *expected, "{text:?}");
    }
    let found = faults("[system]\n[system]\na = \nb = \n[system]\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("line 2: [system]: ") && found[1].starts_with("line 3: "), "{found:?}");
}
