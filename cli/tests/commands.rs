//! The rest of the command line: exit codes, sentences, listings, `config check`.

mod support;

use support::{Home, text};

fn event(id: &str, tenant: &str) -> String {
    format!(r#"{{"event_id":"{id}","tenant":"{tenant}","type":"lease.x","payload":1}}"#)
}

/// Five deliveries of two tenants that nobody sends.
fn stocked() -> Home {
    let more = "[destinations.o]\ntenants = [\"other\"]\nurl = \"https://o.example.com/\"\n\
                secrets = [\"env:D_SECRET\"]\nevent_types = [\"*\"]\n";
    let home = Home::with("https://hooks.example.com/in", more);
    let events: Vec<String> =
        (0..5).map(|n| event(&format!("e{n}"), if n < 3 { "acme" } else { "other" })).collect();
    assert_eq!(home.run_with(&["publish"], events.join("\n").as_bytes()).code, 0);
    home
}

#[test]
fn listings_are_narrowed_by_tenant_destination_state_and_time() {
    let home = stocked();
    let rows: [(&[&str], usize); 9] = [
        (&[], 5),
        (&["--tenant", "acme"], 3),
        (&["--tenant", "other", "--destination", "o"], 2),
        (&["--tenant", "acme", "--destination", "o"], 0),
        (&["--state", "pending"], 5),
        (&["--state", "succeeded"], 0),
        (&["--since", "1h"], 5),
        (&["--since", "2099-01-01T00:00:00Z"], 0),
        (&["--since", "2020-01-01T00:00:00+02:00"], 5),
    ];
    for (filter, count) in rows {
        let json = [&["deliveries", "list", "--output", "json"], filter].concat();
        assert_eq!(home.run(&json).json().len(), count, "{filter:?}");
        let table = home.run(&[&["deliveries", "list"], filter].concat());
        let lines = if count == 0 { 0 } else { count + 1 };
        assert_eq!((table.code, table.out.lines().count()), (0, lines), "{filter:?}");
        assert_eq!(table.err, if count == 0 { "no deliveries\n" } else { "" }, "{filter:?}");
    }
}

#[test]
fn a_wrong_argument_is_exit_2_with_the_field_and_the_rule() {
    let home = stocked();
    let rows: [(&[&str], &str); 12] = [
        (&["deliveries", "list", "--tenant", "a/b"], "'--tenant <TENANT>': has '/' at byte 1 (1 to 64 of"),
        (&["deliveries", "list", "--state", "done"], "\"done\" is not a state (pending, retryable"),
        (&["deliveries", "list", "--since", "2026-01-01T00:00:00"], "has no offset from UTC"),
        (&["deliveries", "list", "--since", "yesterday"], "or a span such as 24h)"),
        (&["deliveries", "show", "e1"], "`waybill deliveries list` shows those of every event"),
        (
            &["dead-letters", "list", "--reason", "bad-luck"],
            "\"bad-luck\" is not a reason (one of attempts_exhausted, horizon_reached, ",
        ),
        (&["serve", "--concurrency", "0"], "': a whole number from 1 on"),
        (&["serve", "--listen", "here"], "such as 127.0.0.1:8787 or localhost:8787"),
        (
            &["serve", "--data", "a.db", "--backend", "embedded:b.db"],
            "--data and --backend both say where ledger and queue are: give one of them",
        ),
        (
            &["deliveries", "list", "--backend", "aws"],
            if cfg!(feature = "aws") {
                "WAYBILL_TABLE is not set: it says where Waybill's table, queues and bucket are"
            } else {
                "this build has no AWS backend: build with --features aws"
            },
        ),
        (&["deliveries", "list", "--backend", "waybill.db"], "a backend is embedded:PATH"),
        (&["deliveries", "list", "--backend", "embedded:"], "a backend is embedded:PATH"),
    ];
    for (arguments, says) in rows {
        let ran = home.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.contains(says), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn an_unknown_delivery_is_exit_1_with_one_sentence() {
    let home = stocked();
    let unknown = "whd_00000000000000000000000000";
    let ran = home.run(&["deliveries", "show", unknown]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(ran.err, format!("waybill.db: there is no delivery {unknown}\n"));
    let known = text(&home.deliveries()[0], "delivery_id").to_owned();
    assert_eq!(home.run(&["deliveries", "show", &known]).code, 0);
    let ran = home.run(&["deliveries", "show", &known, "--tenant", "nobody"]);
    assert_eq!(ran.err, format!("waybill.db: there is no delivery {known} of tenant nobody\n"));
}

#[test]
fn a_mistyped_data_file_is_not_answered_with_an_empty_ledger() {
    let home = stocked();
    for command in [&["deliveries", "list"][..], &["dead-letters", "summary"], &["dead-letters", "list"]] {
        let ran = home.run(&[command, &["--backend", "embedded:wayblil.db"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(ran.err.starts_with("wayblil.db: there is no such data file"), "{}", ran.err);
        assert!(!home.path("wayblil.db").exists());
    }
}

#[test]
fn config_check_names_every_fault_or_says_what_is_configured() {
    let home = Home::new();
    let good = home.run(&["config", "check"]);
    assert_eq!((good.code, good.err.as_str()), (0, ""));
    assert!(
        good.out.contains(
            "destination d: lease.*, renewal.* of acme to https://hooks.example.com, 3 attempts within 24h"
        ),
        "{}",
        good.out
    );
    assert!(good.out.starts_with("waybill.toml is good (revision file-"), "{}", good.out);
    assert!(!good.out.contains("/in"), "paths may hold secrets: {}", good.out);

    home.write("bad.toml", "[destinations.d]\ntimeuot = \"1s\"\nurl = \"http://127.0.0.1:9/\"\n");
    let bad = home.run(&["config", "check", "bad.toml"]);
    assert_eq!((bad.code, bad.out.as_str()), (2, ""));
    assert!(
        bad.err.contains("bad.toml: line 2: destinations.d.timeuot: is not a key; did you mean \"timeout\"?"),
        "{}",
        bad.err
    );
    assert_eq!(bad.err.lines().count(), 4, "{}", bad.err);
    let local = home.run(&["config", "check", "bad.toml", "--allow-local", "--output", "json"]);
    assert_eq!((local.code, local.json().len()), (2, 3));
    assert_eq!(
        (local.json()[2]["line"].as_u64(), text(&local.json()[2], "key")),
        (Some(2), "destinations.d.timeuot")
    );

    home.write("bytes.toml", b"# fine\n# \xff\n");
    assert_eq!(home.run(&["config", "check", "bytes.toml"]).err, "bytes.toml: line 2: is not UTF-8\n");
    let none = home.run(&["config", "check", "none.toml"]);
    assert_eq!(
        (none.code, none.err.as_str()),
        (2, "none.toml: there is no such file; config check FILE names it\n")
    );
}

#[cfg(feature = "aws")]
#[test]
fn on_aws_a_configuration_may_name_secrets_there_and_nothing_is_served() {
    let home = Home::new();
    let destination = "[destinations.d]\ntenants = [\"acme\"]\nurl = \"https://d.example.com/\"\n\
                       secrets = [\"ssm:/waybill/d\"]\nevent_types = [\"*\"]\n";
    home.write("aws.toml", destination);
    let embedded = home.run(&["config", "check", "aws.toml"]);
    assert_eq!(embedded.code, 2);
    assert!(embedded.err.contains("this backend resolves only env: references"), "{}", embedded.err);
    let aws = home.run(&["config", "check", "aws.toml", "--backend", "aws"]);
    assert_eq!((aws.code, aws.err.as_str()), (0, ""));
    let serving = home.run(&["serve", "--backend", "aws"]);
    assert_eq!(
        (serving.code, serving.err.as_str()),
        (2, "serve runs the embedded backend: on AWS the functions take, send and repair\n")
    );
}

#[test]
fn the_example_configuration_is_good() {
    let home = Home::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../waybill.example.toml");
    let ran = home.run(&["config", "check", example]);
    assert_eq!(ran.code, 0);
    let warnings = [
        "warning: env:ACME_WEBHOOK_SECRET is not set here: nothing is sent to acme-accounting without it",
        "warning: env:STUDIO_9_WEBHOOK_SECRET is not set here: nothing is sent to player-notices without it",
        "warning: env:GAME_BILLING_SECRET is not set here: nothing of the source game-billing is accepted with it",
    ];
    assert_eq!(ran.err.lines().collect::<Vec<_>>(), warnings);
    let json = home.run(&["config", "check", example, "--output", "json"]).json().remove(0);
    assert_eq!(json["warnings"].as_array().unwrap().len(), 3);
    let source = "source game-billing: for studio-9, verified by Standard Webhooks, to every subscriber";
    assert!(ran.out.contains(source), "{}", ran.out);
    assert!(ran.out.contains("event type renewal.*: no deadline, no send"), "{}", ran.out);
}

#[test]
fn a_configuration_with_schemas_is_read_from_its_folder_and_bundled_into_one_text() {
    let home = Home::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/nightly-reconciliation/waybill.toml");
    let ran = home.run(&["config", "check", example]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let schedule = "schedule nightly-reconciliation: 30 2 * * * in America/New_York, for acme, northwind to \
                    settlement-provider, policy nightly";
    assert!(ran.out.lines().any(|line| line == schedule), "{}", ran.out);

    let bundled = home.run(&["config", "bundle", example]);
    assert_eq!(bundled.code, 0);
    let elsewhere = home.path("bundled.toml");
    std::fs::write(&elsewhere, &bundled.out).unwrap();
    let file = elsewhere.to_str().unwrap();
    assert_eq!(home.run(&["config", "bundle", file]).out, bundled.out, "no file is needed any more");
    let revision = |file: &str| home.run(&["config", "check", file, "--output", "json"]).json().remove(0);
    assert_eq!(revision(file)["config_revision"], revision(example)["config_revision"]);

    let lost = home.path("lost.toml");
    let text = std::fs::read_to_string(example).unwrap();
    std::fs::write(&lost, text.replace("settlement.schema", "lost.schema")).unwrap();
    let refused = home.run(&["config", "check", lost.to_str().unwrap()]);
    assert_eq!(refused.code, 2);
    let said = "destinations.settlement-provider.schema: \"lost.schema.json\": no such file or directory";
    assert!(refused.err.contains(said), "{}", refused.err);
}

#[test]
fn a_rehearsal_for_programs_is_its_promises_and_nothing_else() {
    let home = Home::new();
    let ran = home.run(&["rehearse", "renewal-reminder", "--output", "json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let promises = ran.json();
    assert!(promises.len() > 10);
    for promise in &promises {
        assert_eq!((text(promise, "example"), &promise["kept"]), ("renewal-reminder", &true.into()));
        assert!(text(promise, "promise").starts_with("renewal-482"), "{promise}");
    }
    let told = home.run(&["rehearse", "renewal-reminder"]).out;
    let verdict = format!("renewal-reminder: {} promises kept, 0 broken", promises.len());
    assert!(told.lines().any(|line| line == verdict), "{told}");
    assert!(told.lines().any(|line| line == "  renewal-4822"), "{told}");
}

#[test]
fn a_rehearsal_names_what_a_person_did_and_ticks_no_figure() {
    let home = Home::new();
    let told = home.run(&["rehearse", "all"]).out;
    assert!(!told.lines().any(|line| line.ends_with("  changed")), "{told}");
    assert!(told.lines().any(|line| line.contains("closed by a person")), "{told}");
    let figures = told.lines().filter(|line| line.contains("from trigger to result"));
    let figures: Vec<&str> = figures.collect();
    assert!(figures.len() == 5 && figures.iter().all(|line| !line.contains('✓')), "{figures:?}");
}

#[test]
fn whoever_closes_the_pipe_ends_it_well_and_quietly() {
    let home = stocked();
    let (code, err) = home.run_unread(&["deliveries", "list"]);
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn the_exit_codes_are_told_by_help() {
    let help = Home::new().run(&["--help"]).out;
    for code in ["  0  done", "  1  failed", "  2  the input is wrong", "  3  refused by a rule"] {
        assert!(help.contains(code), "{help}");
    }
}
