//! Who may do what, what is kept of it, and how it ends.

mod support;

use support::Home;
use support::office::{BOSS, MARIA, Office, line};

#[test]
fn an_operator_of_one_tenant_means_it_and_learns_nothing_of_another() {
    let office = Office::with(&["acme/a1", "other/o1", "other/o2"]);
    let own: [(&[&str], usize); 5] = [
        (&["deliveries", "list"], 1),
        (&["dead-letters", "list"], 1),
        (&["dead-letters", "summary"], 1),
        (&["destinations", "list"], 1),
        (&["audit", "verify"], 1),
    ];
    for (arguments, count) in own {
        let facts = office.facts(MARIA, arguments);
        assert_eq!(facts.len(), count, "{arguments:?}: {facts:?}");
        assert!(!serde_json::to_string(&facts).unwrap().contains("other"), "{arguments:?}: {facts:?}");
    }
    assert_eq!(office.facts(MARIA, &["redrive", "plan"])[0]["selected"], 1);
    assert_eq!(office.facts(BOSS, &["redrive", "plan"])[0]["selected"], 3);

    // What is another's is answered as what there is not.
    let (foreign, unknown) = (office.id_of("o1"), "whd_00000000000000000000000000");
    let rows: [(&[&str], &str); 4] = [
        (&["deliveries", "show", "?"], unknown),
        (&["dead-letters", "close", "?", "--why", "done with"], unknown),
        (&["dead-letters", "resolve", "?", "--applied", "--why", "they have it"], unknown),
        (&["destinations", "show", "?"], "x"),
    ];
    for (arguments, unknown) in rows {
        let (foreign, code) = if unknown == "x" { ("o", 2) } else { (foreign.as_str(), 1) };
        let about = |what| arguments.iter().map(|a| if *a == "?" { what } else { *a }).collect::<Vec<_>>();
        let (theirs, nobodys) = (office.by(MARIA, &about(foreign)), office.by(MARIA, &about(unknown)));
        assert_eq!((theirs.code, theirs.out.as_str()), (code, ""), "{arguments:?}");
        assert_eq!(nobodys.code, code, "{arguments:?}");
        let (foreign, unknown) = (format!(" {foreign}"), format!(" {unknown}"));
        assert_eq!(theirs.err.replacen(&foreign, &unknown, 1), nobodys.err, "{arguments:?}");
    }
    assert_eq!(office.audited().iter().filter(|entry| entry[1] == MARIA).count(), 0, "nothing was refused");
    assert_eq!(office.by(BOSS, &["deliveries", "show", &foreign]).code, 0);
}

#[test]
fn what_goes_beyond_an_operators_tenants_is_exit_3_with_a_sentence_and_an_entry() {
    let office = Office::with(&["acme/a1"]);
    let why = ["--why", "because"];
    let tenant = "is refused for maria: the operator is not authorised for tenant other; an operator whose \
                  tenants are [\"other\"] or [\"*\"] in the configuration may\n";
    let across = "is refused for maria: this concerns more than one tenant, and the operator is authorised \
                  for acme only; name one of these with --tenant where the command takes it, or ask an \
                  operator whose tenants are [\"*\"]\n";
    let rows: [(&[&str], &str, &str); 11] = [
        (&["deliveries", "list", "--tenant", "other"], "deliveries list", tenant),
        (&["dead-letters", "list", "--tenant", "other"], "dead-letters list", tenant),
        (&["dead-letters", "summary", "--tenant", "other"], "dead-letters summary", tenant),
        (&["redrive", "plan", "--tenant", "other"], "redrive plan", tenant),
        (&["audit", "list", "--tenant", "other"], "audit list", tenant),
        (&["hold", "add", "--tenant", "other", why[0], why[1]], "hold add", tenant),
        (&["hold", "add", "--type", "x", "--tenant", "other", why[0], why[1]], "hold add", tenant),
        (&["hold", "add", "--all", why[0], why[1]], "hold add", across),
        (&["config", "apply", "--allow-local", why[0], why[1]], "config apply", across),
        (&["config", "rollback", "1", "--allow-local", why[0], why[1]], "config rollback", across),
        (&["config", "history"], "config history", across),
    ];
    for (done, (arguments, command, says)) in rows.into_iter().enumerate() {
        let ran = office.by(MARIA, arguments);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{arguments:?}");
        assert_eq!(ran.err, format!("{command} {says}"), "{arguments:?}");
        let last = office.audited().pop().unwrap();
        assert_eq!(last, ["acme", MARIA, "refused", command], "{arguments:?}");
        assert_eq!(office.count_of("refused"), done + 1, "{arguments:?}");
    }
    // Of two tenants none is meant, and both are not asked about at once.
    let both = office.by("both", &["deliveries", "list"]);
    assert_eq!(both.code, 3);
    assert!(both.err.contains("authorised for acme, other only"), "{}", both.err);
    assert_eq!(office.facts("both", &["deliveries", "list", "--tenant", "acme"]).len(), 1);
    // Somebody else is no operator at all.
    let nobody = office.by("joe", &["deliveries", "list"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (3, ""));
    assert!(nobody.err.starts_with("joe is not among the operators of the configuration in force; "));
    assert_eq!(office.audited().pop().unwrap(), ["*", "joe", "refused", "deliveries list"]);
}

#[test]
fn an_operator_publishes_for_their_own_tenants_only() {
    let office = Office::with(&[]);
    let lines = ["acme/a1", "other/o1", "other/o2"].map(line).join("\n");
    let ran = office.home.run_with(&["publish", "--operator", MARIA], lines.as_bytes());
    assert_eq!((ran.code, ran.out.lines().count()), (3, 1), "{}", ran.err);
    assert!(ran.err.starts_with("line 2: tenant: the operator is not authorised for tenant other\n"));
    assert_eq!(office.deliveries().len(), 1);
    assert_eq!(office.audited().pop().unwrap(), ["acme", MARIA, "refused", "publish"]);
    assert_eq!(office.count_of("refused"), 1, "once for the tenant, not for every line");
}

#[test]
fn without_operators_nobody_is_restricted_and_every_act_has_a_name() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "apply", "--why", "first"]).code, 0);
    assert_eq!(home.run(&["hold", "add", "--all", "--why", "first"]).code, 0);
    let entries = home.run(&["audit", "list", "--output", "json"]).json();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry["who"].as_str().is_some_and(|who| !who.is_empty())));
    let automation = home.run(&["hold", "list", "--operator", "automation"]);
    assert_eq!(automation.code, 0, "who only looks needs no name: {}", automation.err);
    let automation = home.run(&["hold", "add", "--tenant", "acme", "--why", "x", "--operator", "automation"]);
    assert_eq!(
        (automation.code, automation.err.as_str()),
        (2, "operator: is automation's own name (a person's or a role's name)\n")
    );
}

#[test]
fn every_act_wants_a_reason() {
    let office = Office::with(&["acme/a1"]);
    let (id, run) = (office.id_of("a1"), "rdr_00000000000000000000000000");
    let hold = "hld_00000000000000000000000000";
    let acts: [&[&str]; 9] = [
        &["redrive", "start", "plan.json", "--rate", "1/s"],
        &["redrive", "stop", run],
        &["redrive", "resume", run],
        &["dead-letters", "close", &id],
        &["dead-letters", "resolve", &id, "--applied"],
        &["hold", "add", "--tenant", "acme"],
        &["hold", "lift", hold],
        &["config", "apply", "--allow-local"],
        &["config", "rollback", "1"],
    ];
    let before = office.audited();
    let long = "x".repeat(1001);
    let bad = [("", "is empty"), ("  ", "is empty"), ("a\nb", "has '\\n'"), (&long, "has 1001 bytes")];
    for act in acts {
        let ran = office.by(BOSS, act);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{act:?}");
        assert!(ran.err.contains("--why <WHY>"), "{act:?}: {}", ran.err);
        for (why, fault) in bad {
            let ran = office.by(BOSS, &[act, &["--why", why]].concat());
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{act:?} {why:?}");
            assert!(ran.err.contains(fault) && ran.err.contains("1 to 1000 bytes"), "{act:?}: {}", ran.err);
        }
    }
    assert_eq!(office.audited(), before);
}

#[test]
fn a_missing_an_altered_and_a_cut_off_entry_show() {
    let rows = [
        ("DELETE FROM audit WHERE book = 'acme' AND seq = 2", "acme: entry 2: this entry is missing"),
        (
            "UPDATE audit SET entry = replace(entry, 'because', 'never') WHERE book = 'acme' AND seq = 1",
            "acme: entry 1: this entry was altered",
        ),
        (
            "DELETE FROM audit WHERE book = 'acme' AND seq = 3",
            "acme: entry 2: the entries after this one are missing",
        ),
    ];
    for (tampering, says) in rows {
        let office = Office::with(&[]);
        for what in ["a.*", "b.*", "c.*"] {
            let held = office.by(MARIA, &["hold", "add", "--type", what, "--why", "because"]);
            assert_eq!(held.code, 0, "{}", held.err);
        }
        let good = office.by(MARIA, &["audit", "verify"]);
        assert_eq!((good.code, good.out.as_str()), (0, "acme: 3 entries, unbroken\n"));
        let store = rusqlite::Connection::open(office.home.path("waybill.db")).unwrap();
        assert_eq!(store.execute(tampering, []).unwrap(), 1);
        let broken = office.by(MARIA, &["audit", "verify"]);
        assert_eq!(broken.code, 1, "{tampering}");
        assert!(broken.out.lines().any(|line| line == says), "{tampering}: {}", broken.out);
        let facts = office.by(BOSS, &["audit", "verify", "--output", "json"]);
        let books = facts.json();
        assert_eq!((facts.code, books.len()), (1, 2));
        let broken_of = |book: &str| {
            let found = books.iter().find(|one| one["book"] == book).unwrap();
            found["broken"].as_array().unwrap().len()
        };
        assert!(broken_of("acme") >= 1 && broken_of("*") == 0, "{books:?}");
    }
}
