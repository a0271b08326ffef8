//! `waybill config apply`, `diff`, `show`, `history`, `rollback`.

mod support;

use support::{Home, text};

fn document(home: &Home) -> String {
    std::fs::read_to_string(home.path("waybill.toml")).expect("a home has a configuration")
}

#[test]
fn a_configuration_is_put_in_force_with_its_diff_and_taken_back() {
    let home = Home::new();
    let none = home.run(&["config", "show", "--backend", "embedded:none.db"]);
    assert_eq!(none.code, 1, "{}", none.err);

    let dry = home.run(&["config", "apply", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("+ destinations.d.timeout = \"2s\"\n"), "{}", dry.out);
    assert_eq!(home.run(&["config", "show"]).err, "no configuration was applied yet\n");

    assert_eq!(home.run(&["config", "apply", "--why", "the first"]).code, 0);
    let first = document(&home);
    let again = home.run(&["config", "apply", "--why", "once more"]);
    assert_eq!(again.code, 0);
    assert!(again.out.starts_with("in force already: revision file-"), "{}", again.out);
    assert!(again.out.trim_end().ends_with("the first"), "{}", again.out);

    home.write("waybill.toml", first.replace("\"2s\"", "\"3s\"").replace("max_attempts = 3\n", ""));
    let diff = home.run(&["config", "diff"]);
    let expected = "- destinations.d.timeout = \"2s\"\n+ destinations.d.timeout = \"3s\"\n\
                    - policies.default.max_attempts = 3\n";
    assert_eq!((diff.code, diff.out.as_str()), (0, expected));
    let applied = home.run(&["config", "apply", "--why", "slower", "--output", "json"]).json().remove(0);
    assert_eq!((&applied["number"], &applied["already"]), (&2.into(), &false.into()));
    assert_eq!(applied["diff"].as_array().unwrap().len(), 2);

    // Across a change of the file: what is in force is what was applied.
    home.write("waybill.toml", "nonsense");
    let shown = home.run(&["config", "show", "1", "--output", "json"]).json().remove(0);
    assert_eq!(text(&shown, "document"), first);
    let back = home.run(&["config", "rollback", text(&shown, "config_revision"), "--why", "it was worse"]);
    assert_eq!(back.code, 0, "{}", back.err);
    assert!(back.out.contains("+ destinations.d.timeout = \"2s\"\n"), "{}", back.out);
    let history = home.run(&["config", "history", "--output", "json"]).json();
    let told: Vec<(u64, &str)> =
        history.iter().map(|r| (r["number"].as_u64().unwrap(), text(&r["applied"], "why"))).collect();
    assert_eq!(told, [(3, "it was worse"), (2, "slower"), (1, "the first")]);
    assert_eq!(history[0]["config_revision"], history[2]["config_revision"]);
    let acts = home.run(&["audit", "list", "--output", "json"]).json();
    let acts: Vec<&str> = acts.iter().map(|entry| text(entry, "act")).collect();
    assert_eq!(acts, ["config_applied", "config_applied", "config_rolled_back"]);
    let unknown = home.run(&["config", "rollback", "9", "--why", "x"]);
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (2, "there is no configuration 9; waybill config history lists them\n")
    );
}

#[test]
fn a_faulty_configuration_changes_nothing_and_every_fault_is_named() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "apply", "--why", "the first"]).code, 0);
    home.write("bad.toml", "[destinations.d]\ntimeuot = \"1s\"\nurl = \"http://127.0.0.1:9/\"\n");
    let bad = home.run(&["config", "apply", "bad.toml", "--why", "better"]);
    assert_eq!((bad.code, bad.out.as_str()), (2, ""));
    assert!(bad.err.contains("bad.toml: line 2: destinations.d.timeuot: is not a key"), "{}", bad.err);
    assert!(bad.err.lines().count() > 2, "{}", bad.err);
    assert_eq!(home.run(&["config", "history", "--output", "json"]).json().len(), 1);
    // What this machine is refused as a recipient elsewhere, local development takes.
    let local = document(&home).replace("https://hooks.example.com/in", "http://127.0.0.1:9/in?key=SENTINEL");
    home.write("local.toml", local);
    assert_eq!(home.run(&["config", "apply", "local.toml", "--why", "x"]).code, 2);
    let applied = home.run(&["config", "apply", "local.toml", "--why", "x", "--allow-local"]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    let audit = home.run(&["audit", "list", "--output", "json"]).out;
    assert!(!(applied.out + &audit).contains("SENTINEL"), "a URL's query may hold a secret");
}

#[test]
fn whoever_would_lock_everybody_out_is_warned() {
    let home = Home::with("https://hooks.example.com/in", "[operators.maria]\ntenants = [\"acme\"]\n");
    let ran = home.run(&["config", "apply", "--why", "operators"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (0, "warning: nobody will be able to apply another one: no operator has tenants = [\"*\"]\n")
    );
}

#[test]
fn events_are_published_under_what_is_in_force() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "apply", "--why", "the first"]).code, 0);
    home.write("waybill.toml", "nonsense");
    let event = r#"{"event_id":"e1","tenant":"acme","type":"lease.x","payload":1}"#;
    let ran = home.run_with(&["publish"], event.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_rollback_says_of_which_configuration_its_faults_are() {
    let home = Home::with("http://127.0.0.1:9/in", "");
    assert_eq!(home.run(&["config", "apply", "--allow-local", "--why", "at home"]).code, 0);
    home.write(
        "waybill.toml",
        document(&home).replace("http://127.0.0.1:9/in", "https://hooks.example.com/in"),
    );
    assert_eq!(home.run(&["config", "apply", "--why", "outside"]).code, 0);
    let first = home.run(&["config", "show", "1", "--output", "json"]).json().remove(0);
    let back = home.run(&["config", "rollback", "1", "--why", "back home"]);
    let begin = format!("configuration {} (number 1): line ", text(&first, "config_revision"));
    assert_eq!((back.code, back.out.as_str()), (2, ""), "{}", back.err);
    assert!(back.err.lines().all(|line| line.starts_with(&begin)), "{}", back.err);
    assert!(back.err.contains("destinations.d.url"), "{}", back.err);
}

#[test]
fn a_diff_of_a_broken_file_names_its_faults_and_shows_nothing_of_it() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "apply", "--why", "the first"]).code, 0);
    // A secret where a reference belongs.
    home.write("bad.toml", document(&home).replace("env:D_SECRET", "whsec_SENTINEL"));
    let diff = home.run(&["config", "diff", "bad.toml"]);
    assert_eq!((diff.code, diff.out.as_str()), (2, ""));
    assert!(
        diff.err.starts_with("bad.toml: line ") && diff.err.contains("destinations.d.secrets"),
        "{}",
        diff.err
    );
    assert!(!diff.err.contains("SENTINEL"), "{}", diff.err);
    home.write("bad.toml", "policies = [");
    let diff = home.run(&["config", "diff", "bad.toml"]);
    assert_eq!((diff.code, diff.out.as_str()), (2, ""), "{}", diff.err);
}

#[test]
fn a_file_that_is_missing_hides_no_other_fault() {
    let home = Home::new();
    let faulty = document(&home).replace("timeout = \"2s\"", "timeuot = \"2s\"\nschema = \"none.json\"");
    home.write("waybill.toml", faulty);
    let checked = home.run(&["config", "check"]);
    assert_eq!((checked.code, checked.out.as_str()), (2, ""));
    let keys: Vec<&str> = checked.err.lines().filter_map(|line| line.split(": ").nth(2)).collect();
    assert_eq!(keys, ["destinations.d.timeuot", "destinations.d.schema"], "{}", checked.err);
    assert!(checked.err.contains("\"none.json\": no such file or directory"), "{}", checked.err);
}
