//! What a destination must say, and how it is judged: what is missing, secrets, URLs.

use super::{DESTINATION, faults};

#[test]
fn what_a_destination_needs_is_missed_where_it_should_stand() {
    assert_eq!(
        faults("\n[destinations.d]\ntimeout = \"1s\"\n"),
        [
            "line 2: destinations.d.url: is missing (https:// and a public host, without credentials or a fragment)",
            "line 2: destinations.d.tenants: is missing (at least one tenant, each once)",
            "line 2: destinations.d.secrets: is missing \
             (one reference such as \"env:ACME_WEBHOOK_SECRET\", two while rotating)",
        ]
    );
    let none = "line 1: destinations: is missing (at least one [destinations.NAME])";
    assert_eq!(faults(""), [none]);
    assert_eq!(faults("[destinations]\n"), [none]);
    assert_eq!(faults("destinations = 3\n"), ["line 1: destinations: is a number (a table)"]);
}

#[test]
fn secrets_are_references_one_or_two_and_never_echoed() {
    let rule = "one reference such as \"env:ACME_WEBHOOK_SECRET\", two while rotating";
    let reference = "a reference to a secret, such as env:ACME_WEBHOOK_SECRET";
    let rows: &[(&str, String)] = &[
        ("[]", format!("secrets: is empty ({rule})")),
        ("[\"env:A\", \"env:B\", \"env:C\"]", format!("secrets: has 3 ({rule})")),
        ("[\"env:A\", \"env:A\"]", format!("secrets[1]: is listed twice ({rule})")),
        ("[3]", "secrets[0]: is a number (a text in quotes)".to_owned()),
        (
            "[\"whsec_c2VjcmV0\"]",
            format!("secrets[0]: is not a reference; a secret itself must not stand here ({reference})"),
        ),
        (
            "[\"env:not a name\"]",
            format!("secrets[0]: names no environment variable (A-Z a-z 0-9 _) ({reference})"),
        ),
    ];
    for (list, fault) in rows {
        let text = DESTINATION.replace("[\"env:D_SECRET\"]", list);
        assert_eq!(faults(&text), [format!("line 4: destinations.d.{fault}")]);
    }
}

#[test]
fn urls_are_judged_and_credentials_in_them_are_not_echoed() {
    let rule = "https:// and a public host, without credentials or a fragment";
    let switch = "; plain HTTP and this machine for local trials only, with --allow-local";
    let rows = [
        ("http://hooks.example.com/", "is not HTTPS", switch),
        ("https://127.0.0.1/", "127.0.0.1 is a loopback address", switch),
        ("https://10.0.0.8/", "10.0.0.8 is a private address", ""),
        ("https://localhost/", "names this machine", switch),
        ("https://user:p%40ss@hooks.example.com/", "has credentials in it", ""),
        ("hooks.example.com", "has no scheme", ""),
    ];
    for (url, fault, more) in rows {
        let text = DESTINATION.replace("https://hooks.example.com/in", url);
        assert_eq!(faults(&text), [format!("line 3: destinations.d.url: {fault} ({rule}{more})")]);
    }
}
