//! Configurations: put in force with a diff, who and why; and back.

use waybill_domain::authority::{Authority, Book};
use waybill_domain::hold::HoldRule;
use waybill_domain::time::DurationMs;
use waybill_service::config_file::{Rules, SecretStores};
use waybill_service::office::Revisions as _;
use waybill_service::operators::authority_of;
use waybill_service::revisions::{ApplyError, Difference, differences};
use waybill_service::source::{ConfigError, ConfigSource};

use crate::world::{World, tenant};

const RULES: Rules = Rules {
    locality: waybill_domain::address::Locality::PublicOnly,
    secrets: SecretStores::Environment,
    worker_runs: None,
};

fn document(url: &str) -> String {
    format!(
        r#"
[destinations.books]
tenants = ["acme"]
url = "{url}"
secrets = ["env:S"]

[operators.maria]
tenants = ["acme"]

[operators.otto]
tenants = ["*"]
"#
    )
}

#[test]
fn a_configuration_is_put_in_force_with_its_diff_and_back() {
    let world = World::new();
    let (a, b) = (document("https://a.example.com/x?token=s3cret"), document("https://b.example.com/x"));
    let first = world.block(world.desk().apply(&a, RULES, "maria", "the first")).unwrap();
    assert_eq!((first.revision.number, first.already), (1, false));
    let second = world.block(world.desk().apply(&b, RULES, "maria", "host moved")).unwrap();
    assert_eq!(
        second.diff,
        [Difference {
            key: "destinations.books.url".to_owned(),
            before: Some("\"https://a.example.com/x\" and a query".to_owned()),
            after: Some("\"https://b.example.com/x\"".to_owned()),
        }]
    );
    let again = world.block(world.desk().apply(&b, RULES, "maria", "host moved")).unwrap();
    assert!(again.already);
    let back =
        world.block(world.desk().roll_back(&first.revision.revision, RULES, "otto", "wrong host")).unwrap();
    assert_eq!((back.revision.number, &back.revision.revision), (3, &first.revision.revision));
    assert_eq!(world.block(world.office.in_force()).unwrap(), Some(back.revision));
    assert_eq!(
        world.acts(&Book::Across),
        ["config_applied by maria", "config_applied by maria", "config_rolled_back by otto"]
    );
    let history = world.block(world.office.history(10, None)).unwrap().items;
    assert_eq!(history.iter().map(|r| r.number).collect::<Vec<_>>(), [3, 2, 1]);
    let audit = format!(
        "{:?}",
        world.block(waybill_service::office::Office::entries(&world.office, &Book::Across, 9, None))
    );
    assert!(!audit.contains("s3cret"), "the query of a URL stands in the audit");
}

/// What is shown of a setting that was added: its key and its value, as far as it may be shown.
#[test]
fn a_diff_shows_settings_but_no_query_no_payload_and_nothing_that_is_long() {
    let sha = |text: &str| {
        use sha2::Digest as _;
        let hex = sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{} bytes, sha256 {hex}", text.len())
    };
    let text_of = |chars: usize| format!("\"{}\"", "x".repeat(chars - 2));
    let rows = [
        ("a = 1", "a", "1".to_owned()),
        ("[a.b]\nc = true", "a.b.c", "true".to_owned()),
        ("[a]", "a", "{}".to_owned()),
        ("[a.\"b.c\"]\nd = 1", "a.\"b.c\".d", "1".to_owned()),
        ("[a.\"\"]\nd = 1", "a.\"\".d", "1".to_owned()),
        ("[a.b_c-d]\ne = 1", "a.b_c-d.e", "1".to_owned()),
        ("url = \"https://a/b\"", "url", "\"https://a/b\"".to_owned()),
        ("url = \"https://a/b?c\"", "url", "\"https://a/b\" and a query".to_owned()),
        ("status_url = \"https://a/b?c\"", "status_url", "\"https://a/b\" and a query".to_owned()),
        ("why = \"who? me\"", "why", "\"who? me\"".to_owned()),
        ("[s.payload]\na = 1", "s.payload.a", sha("1")),
        ("payloads = 1", "payloads", "1".to_owned()),
        (&format!("t = {}", text_of(200)), "t", text_of(200)),
        (&format!("t = {}", text_of(201)), "t", sha(&text_of(201))),
    ];
    for (document, key, after) in rows {
        let added = Difference { key: key.to_owned(), before: None, after: Some(after.clone()) };
        assert_eq!(differences("", document), [added], "{document}");
        let removed = Difference { key: key.to_owned(), before: Some(after), after: None };
        assert_eq!(differences(document, ""), [removed], "{document}");
        assert_eq!(differences(document, document), [], "{document}");
    }
}

#[test]
fn what_has_faults_changes_nothing_and_says_all_of_them() {
    let world = World::new();
    let faulty = "[destinations.books]\nurl = \"http://x\"\ntenants = []\n";
    match world.block(world.desk().apply(faulty, RULES, "maria", "try")) {
        Err(ApplyError::Faulty(faults)) => assert!(faults.len() >= 3, "{faults:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.block(world.office.in_force()).unwrap(), None);
    assert!(world.acts(&Book::Across).is_empty());
}

#[test]
fn a_process_sees_a_change_and_a_hold_within_ten_seconds() {
    let world = World::new();
    let source =
        ConfigSource::new(world.office.clone(), RULES, world.clock.clone(), DurationMs::from_secs(60));
    assert!(matches!(world.block(source.current()), Err(ConfigError::None)));
    let (a, b) = (document("https://a.example.com/"), document("https://b.example.com/"));
    let first = world.block(world.desk().apply(&a, RULES, "maria", "the first")).unwrap().revision.revision;
    assert_eq!(world.block(source.current()).unwrap().revision, first);
    let second = world.block(world.desk().apply(&b, RULES, "maria", "moved")).unwrap().revision.revision;
    let pause = HoldRule::Tenant(tenant("acme"));
    world.block(world.desk().place(Book::Tenant(tenant("acme")), pause.clone(), "maria", "audit")).unwrap();
    world.clock.advance(DurationMs::from_ms(9_999));
    assert_eq!(world.block(source.current()).unwrap().revision, first);
    world.clock.advance(DurationMs::from_ms(1));
    let config = world.block(source.current()).unwrap();
    assert_eq!((&config.revision, &config.holds), (&second, &vec![pause]));
}

#[test]
fn operators_are_bound_to_their_tenants() {
    let world = World::new();
    let config = waybill_service::config_file::parse(&document("https://a.example.com/"), RULES).unwrap();
    let maria = authority_of(&config, "maria").unwrap();
    assert_eq!(maria.book(None).unwrap(), Book::Tenant(tenant("acme")));
    assert!(maria.book(Some(&tenant("globex"))).is_err() && maria.check(&Book::Across).is_err());
    assert_eq!(authority_of(&config, "otto").unwrap(), Authority::Across);
    let refused = authority_of(&config, "eve").unwrap_err().to_string();
    assert!(refused.contains("eve") && refused.contains("[operators.eve]"), "{refused}");
    assert_eq!(authority_of(&world.config, "anybody").unwrap(), Authority::Across, "nobody is restricted");
}
