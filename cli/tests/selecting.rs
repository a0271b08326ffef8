//! Names on the line that nothing has, and what is held: said clearly, and to nobody whom it does not
//! concern.

mod support;

use support::office::{BOSS, MARIA, Office};
use support::text;

/// What is asked of one destination, or of a tenant's book, is as little an empty answer.
#[test]
fn a_slip_in_the_name_of_what_is_asked_for_is_exit_2() {
    let office = Office::under("", &[]);
    let tenant = "--tenant acmee: nothing here has that name; did you mean acme?\n";
    let rows: [(&[&str], &str); 5] = [
        (&["destinations", "show", "dd"], "destination dd: nothing here has that name; "),
        (&["probe", "dd"], "destination dd: nothing here has that name; "),
        (&["schedules", "list", "--tenant", "acmee"], tenant),
        (&["audit", "list", "--tenant", "acmee"], tenant),
        (&["redrive", "status", "--tenant", "acmee"], tenant),
    ];
    for (line, said) in rows {
        let ran = office.by(BOSS, line);
        assert_eq!(ran.code, 2, "{line:?}: {}", ran.err);
        assert!(ran.err.starts_with(said), "{line:?}: {}", ran.err);
    }
    for what in [["schedules", "list"], ["audit", "list"], ["redrive", "status"]] {
        let ran = office.by(BOSS, &[what[0], what[1], "--tenant", "acme"]);
        assert_eq!(ran.code, 0, "{what:?}: {}", ran.err);
    }
}

#[test]
fn a_name_that_nothing_has_is_exit_2_with_the_one_that_was_probably_meant() {
    let office = Office::under(
        "[destinations.ledger-sync]\ntenants = [\"acme\"]\nurl = \"https://ledger.example.com/\"\n\
         secrets = [\"env:D_SECRET\"]\n",
        &["acme/down-1"],
    );
    let destination = "--destination ledger-snyc: nothing here has that name; did you mean ledger-sync?\n";
    let tenant = "--tenant acmee: nothing here has that name; did you mean acme?\n";
    let dead_type = "--type lease.singed: nothing here has that name; did you mean lease.signed?\n";
    let hold_type = "--type leas.*: nothing here has that name; did you mean lease.*?\n";
    let why = ["--why", "x"];
    let rows: [(&[&str], &str); 11] = [
        (&["redrive", "plan", "--destination", "ledger-snyc"], destination),
        (&["deliveries", "list", "--destination", "ledger-snyc"], destination),
        (&["deliveries", "list", "--state", "held", "--destination", "ledger-snyc"], destination),
        (&["dead-letters", "list", "--destination", "ledger-snyc"], destination),
        (&["hold", "add", "--destination", "ledger-snyc", why[0], why[1]], destination),
        (&["redrive", "plan", "--tenant", "acmee"], tenant),
        (&["deliveries", "list", "--tenant", "acmee"], tenant),
        (&["dead-letters", "summary", "--tenant", "acmee"], tenant),
        (&["hold", "add", "--tenant", "acmee", why[0], why[1]], tenant),
        (&["redrive", "plan", "--type", "lease.singed"], dead_type),
        (&["hold", "add", "--tenant", "acme", "--type", "leas.*", why[0], why[1]], hold_type),
    ];
    for (arguments, says) in rows {
        for output in ["table", "json"] {
            let ran = office.by(BOSS, &[arguments, &["--output", output]].concat());
            assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (2, "", says), "{arguments:?}");
        }
    }
    // A name that is right and finds nothing is no slip.
    for arguments in [
        &["redrive", "plan", "--destination", "ledger-sync"][..],
        &["deliveries", "list", "--destination", "ledger-sync"],
        &["dead-letters", "list", "--tenant", "other"],
    ] {
        assert_eq!(office.by(BOSS, arguments).code, 0, "{arguments:?}");
    }
}

#[test]
fn a_destination_that_was_removed_stays_selectable_while_the_ledger_has_something_of_it() {
    let office = Office::with(&["acme/down-1", "other/down-2"]);
    let toml = std::fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    let (before, rest) = toml.split_once("[destinations.o]").unwrap();
    let after = &rest[rest.find("[operators.boss]").unwrap()..];
    office.home.write("waybill.toml", format!("{before}{after}"));
    let applied = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "o is gone"]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    for arguments in [&["deliveries", "list"][..], &["dead-letters", "list"]] {
        let facts = office.facts(BOSS, &[arguments, &["--destination", "o"]].concat());
        assert_eq!(facts.len(), 1, "{arguments:?}");
    }
    assert_eq!(office.facts(BOSS, &["redrive", "plan", "--destination", "o"])[0]["selected"], 1);
}

#[test]
fn an_operator_of_one_tenant_is_told_of_no_other_ones_destination() {
    let office = Office::with(&["acme/down-1", "other/down-2"]);
    for command in [
        &["redrive", "plan"][..],
        &["deliveries", "list"],
        &["dead-letters", "list"],
        &["hold", "add", "--why", "x"],
    ] {
        // There is an `o`, of another tenant, and there is no `p`.
        let [theirs, nobodys] =
            ["o", "p"].map(|name| office.by(MARIA, &[command, &["--destination", name]].concat()));
        assert_eq!((theirs.code, nobodys.code), (2, 2), "{command:?}: {}", theirs.err);
        assert_eq!(theirs.err.replace("--destination o:", "--destination p:"), nobodys.err, "{command:?}");
    }
}

#[test]
fn a_plan_and_a_start_tell_what_is_held_of_what_they_select() {
    let office = Office::with(&["acme/down-1"]);
    let why = ["--why", "they move house"];
    let hold = office.facts(BOSS, &["hold", "add", "--destination", "d", why[0], why[1]]).remove(0);
    let id = text(&hold, "hold");
    let planned = office.facts(MARIA, &["redrive", "plan", "--save", "plan.json"]).remove(0);
    assert_eq!(planned["holds"].as_array().unwrap().len(), 1);
    assert_eq!(text(&planned["holds"][0], "hold"), id);
    let told = office.by(MARIA, &["redrive", "plan"]).err;
    assert!(told.starts_with(&format!("held: {id} keeps back destination d since ")), "{told}");
    assert!(
        told.ends_with("by boss: they move house; what is released waits until it is lifted\n"),
        "{told}"
    );
    let start = ["redrive", "start", "plan.json", "--rate", "5/s", "--why", "try"];
    assert_eq!(office.facts(MARIA, &start)[0]["holds"], planned["holds"]);
    // Another tenant's plan is not touched.
    assert_eq!(
        office.facts(BOSS, &["redrive", "plan", "--tenant", "other"])[0]["holds"],
        serde_json::json!([])
    );
}

#[test]
fn holds_count_what_they_keep_back_and_it_can_be_listed() {
    let office = Office::with(&[]);
    let why = ["--why", "a look"];
    let pause = office.facts(BOSS, &["hold", "add", "--destination", "d", why[0], why[1]]).remove(0);
    office.facts(BOSS, &["hold", "add", "--tenant", "other", why[0], why[1]]);
    let lines = ["acme/fine-1", "acme/fine-2", "other/fine-3"].map(support::office::line);
    assert_eq!(office.publish(&lines.join("\n")).code, 0);
    let held =
        |office: &Office, operator: &str| office.facts(operator, &["deliveries", "list", "--state", "held"]);
    office.work_until(|office| held(office, BOSS).len() == 3);
    let counts = |operator: &str| -> Vec<u64> {
        office.facts(operator, &["hold", "list"]).iter().map(|hold| hold["held"].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(BOSS), [2, 1]);
    assert_eq!(counts(MARIA), [2], "of her own tenant's holds alone");
    assert_eq!(held(&office, MARIA).len(), 2);
    let one = office.facts(BOSS, &["deliveries", "list", "--state", "held", "--destination", "o"]);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["hold"]["reason"], "paused");

    let told = office.by(BOSS, &["hold", "list"]).out;
    let row = told.lines().find(|row| row.starts_with(text(&pause, "hold"))).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..5], ["destination", "d", "2", "paused"]);
}

#[test]
fn the_same_hold_by_many_at_once_is_one_hold() {
    let office = Office::with(&[]);
    let add = ["hold", "add", "--destination", "d", "--why", "all hands", "--output", "json"];
    let placed: Vec<_> = std::thread::scope(|scope| {
        let acts: Vec<_> = (0..6).map(|_| scope.spawn(|| office.by(BOSS, &add))).collect();
        acts.into_iter().map(|act| act.join().unwrap().json().remove(0)).collect()
    });
    assert_eq!(office.facts(BOSS, &["hold", "list"]).len(), 1);
    assert_eq!(placed.iter().filter(|one| one["already"] == false).count(), 1, "{placed:#?}");
    assert!(placed.iter().all(|one| one["hold"] == placed[0]["hold"]), "{placed:#?}");
    assert_eq!(office.count_of("hold_added"), 1);
}

#[test]
fn what_no_ledger_knows_of_in_the_dead_letter_queue_is_listed_without_its_body() {
    let office = Office::with(&["acme/down-1"]);
    let database = rusqlite::Connection::open(office.home.path("waybill.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let bury = "INSERT INTO dead_message (message_id, body, attributes, buried_at) VALUES (?, ?, '{}', 0)";
    database.execute(bury, ["m-raw", "SECRET, whatever it is"]).unwrap();
    let facts = office.facts(BOSS, &["dead-letters", "unknown"]);
    assert_eq!(facts.len(), 1);
    assert_eq!([text(&facts[0], "message_id"), text(&facts[0], "why")], ["m-raw", "undecodable"]);
    assert_eq!(facts[0]["bytes"], 22);
    // A look hides nothing from the next one, and shows no body.
    let told = office.by(BOSS, &["dead-letters", "unknown"]);
    assert!(told.out.contains("m-raw") && !told.out.contains("SECRET"), "{}", told.out);
    assert_eq!(office.by(MARIA, &["dead-letters", "unknown"]).code, 3);
}

#[test]
fn a_run_of_the_same_name_in_two_books_is_not_taken_for_the_one_that_is_meant() {
    let office = Office::with(&["acme/down-1", "other/down-2"]);
    office.facts(BOSS, &["redrive", "plan", "--tenant", "acme", "--save", "plan.json"]);
    let start = ["redrive", "start", "plan.json", "--rate", "1/h", "--why", "try"];
    let run = office.facts(BOSS, &start).remove(0);
    let id = text(&run, "run");
    // A plan is a file: another tenant's with this one's name.
    let plan = std::fs::read_to_string(office.home.path("plan.json")).unwrap();
    office.home.write("plan.json", plan.replace("\"acme\"", "\"other\""));
    office.facts(BOSS, &start);
    for command in [&["redrive", "status", id][..], &["redrive", "stop", id, "--why", "x"]] {
        let ran = office.by(BOSS, command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command:?}: {}", ran.err);
        let says =
            format!("order: {id} stands in the books of acme and of other (--tenant says whose is meant)\n");
        assert_eq!(ran.err, says, "{command:?}");
    }
    let stopped = office.facts(BOSS, &["redrive", "stop", id, "--tenant", "other", "--why", "x"]).remove(0);
    assert_eq!(text(&stopped, "book"), "other");
    let status = |tenant: &str| office.facts(BOSS, &["redrive", "status", id, "--tenant", tenant]).remove(0);
    assert_eq!(text(&status("acme"), "standing"), "running");
    assert_eq!(text(&status("other"), "standing"), "stopped");
    // Whoever has one book has no doubt.
    assert_eq!(text(&office.facts(MARIA, &["redrive", "stop", id, "--why", "x"])[0], "book"), "acme");
}

#[test]
fn a_start_puts_in_force_what_its_operator_may_put_in_force_and_nothing_else() {
    let office = Office::with(&[]);
    let in_force = text(&office.facts(BOSS, &["config", "show"])[0], "config_revision").to_owned();
    let toml = std::fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    office.home.write("waybill.toml", toml.replace("max_attempts = 3", "max_attempts = 4"));
    let serving = office.home.serve(&["--allow-local", "--operator", MARIA]);
    let warned = serving.told["warnings"][0].as_str().unwrap().to_owned();
    assert_eq!(text(&serving.told, "config_revision"), in_force);
    assert_eq!(serving.stop(), 0);
    assert!(warned.contains("is not put in force: maria may not do that"), "{warned}");
    assert_eq!(office.audited().pop().unwrap(), ["*", MARIA, "refused", "serve"]);
    let serving = office.home.serve(&["--allow-local", "--operator", BOSS]);
    assert_ne!(text(&serving.told, "config_revision"), in_force);
    assert_eq!(serving.stop(), 0);
}
