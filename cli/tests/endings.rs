//! Dead letters that a person ends, and holds that a person places.

mod support;

use serde_json::json;
use support::office::{BOSS, MARIA, Office};
use support::text;
use waybill_domain::identity::DeliveryId;
use waybill_domain::order::Decision;
use waybill_domain::time::DurationMs;
use waybill_embedded::EmbeddedStore;
use waybill_service::acts::Desk;
use waybill_service::ports::{Catalogue as _, Clock as _};
use waybill_system::{SystemClock, SystemDice};

#[test]
fn closed_is_out_of_the_counts_and_resolved_has_succeeded_each_with_who_when_and_why() {
    let office = Office::with(&["acme/down-1", "acme/lost-1", "acme/locked-1"]);
    let [closed, resolved, left] = ["down-1", "lost-1", "locked-1"].map(|event| office.id_of(event));
    let done = office.by(MARIA, &["dead-letters", "close", &closed, "--why", "nobody needs it"]);
    assert_eq!((done.code, done.out), (0, format!("{closed}: closed\n")));
    let done =
        office.facts(MARIA, &["dead-letters", "resolve", &resolved, "--applied", "--why", "they have it"]);
    assert_eq!([&done[0]["decision"], &done[0]["came_to"]], ["resolve", "done"]);

    let dead = office.facts(MARIA, &["dead-letters", "list"]);
    assert_eq!(dead.iter().map(|one| text(one, "delivery_id")).collect::<Vec<_>>(), [&left]);
    assert_eq!(office.delivery("down-1")["state"], "dead_lettered");
    assert_eq!(office.delivery("lost-1")["state"], "succeeded");
    assert_eq!(office.facts(MARIA, &["redrive", "plan"])[0]["selected"], 1);
    for (id, title, why) in [(&closed, "closed", "nobody needs it"), (&resolved, "resolved", "they have it")]
    {
        let shown = office.by(MARIA, &["deliveries", "show", id]).out;
        assert!(shown.contains(&format!("  {title:<13}  by maria: {why}\n")), "{shown}");
        let facts = office.facts(MARIA, &["deliveries", "show", id]).remove(0);
        assert_eq!(facts["acts"].as_array().unwrap().len(), 1);
        assert_eq!([text(&facts["acts"][0], "act"), text(&facts["acts"][0], "why")], [title, why]);
        assert_eq!(facts["replay"], json!(null));
    }
}

#[test]
fn what_the_evidence_says_was_not_applied_is_resolved_only_against_it() {
    let office = Office::with(&["acme/lost-1", "acme/refused-1", "acme/down-1"]);
    let [lost, refused] = ["lost-1", "refused-1"].map(|event| office.id_of(event));
    let resolve = ["dead-letters", "resolve", "--applied", &refused, &lost, "--why", "their books show it"];
    let ran = office.by(MARIA, &resolve);
    // Its one attempt was refused; whether the other's were applied, nobody knows.
    assert_eq!((ran.code, ran.out), (3, format!("{lost}: resolved\n")), "{}", ran.err);
    let told = format!(
        "{refused} is refused: the evidence of its attempts says that none was applied (attempt 1: 400 \
         payload_rejected); where the recipient has it all the same, say --against-evidence\n"
    );
    assert_eq!((ran.err, office.count_of("resolved")), (told, 1));
    assert_eq!(office.by(MARIA, &[&resolve[..], &["--against-evidence"]].concat()).code, 0);
    assert_eq!(office.delivery("refused-1")["state"], "succeeded");
    let down = office.id_of("down-1");
    assert_eq!(office.by(MARIA, &["dead-letters", "resolve", "--applied", &down, "--why", "x"]).code, 3);
    // Done twice it is one act, with or without.
    assert_eq!(office.by(MARIA, &resolve).code, 0);
    assert_eq!(office.count_of("resolved"), 2);
}

#[test]
fn what_no_redrive_sends_any_more_is_offered_none() {
    let office = Office::with(&[]);
    let deadline = SystemClock.now().plus(DurationMs::from_secs(3600));
    let line = format!(
        r#"{{"event_id":"refused-9","tenant":"acme","type":"lease.signed","deadline":"{deadline}","payload":{{}}}}"#
    );
    assert_eq!(office.publish(&line).code, 0);
    office.work(1);
    let id = office.id_of("refused-9");
    let shown = || office.by(MARIA, &["deliveries", "show", &id]).out;
    assert!(shown().contains("begin with waybill redrive plan"), "{}", shown());
    let toml = std::fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    office.home.write(
        "waybill.toml",
        toml.replacen("max_attempts = 3", "max_attempts = 3\nminimum_window = \"2h\"", 1),
    );
    let applied = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "two hours at least"]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    let told = shown();
    for part in [
        "a redrive would not send it: no attempt may start in the last 2h00m before its deadline, and it would expire",
        "No redrive sends it any more: if it still matters, the producer decides on a new event. To end it, waybill \
         dead-letters close or resolve",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
    assert!(!told.contains("begin with waybill redrive plan"), "{told}");
    let facts = office.facts(MARIA, &["deliveries", "show", &id]).remove(0);
    assert!(text(&facts, "for_you").contains("No redrive sends it any more"), "{facts}");
}

#[test]
fn the_same_end_twice_is_one_act_and_another_end_is_refused() {
    let office = Office::with(&["acme/down-1", "acme/lost-2"]);
    let [id, other] = ["down-1", "lost-2"].map(|event| office.id_of(event));
    let close = ["dead-letters", "close", &id, "--why", "nobody needs it"];
    assert_eq!(office.by(MARIA, &close).code, 0);
    let again = office.by(BOSS, &close);
    assert_eq!(again.code, 0);
    assert!(again.out.starts_with(&format!("{id}: closed already, by maria at ")), "{}", again.out);
    assert_eq!(office.facts(BOSS, &close)[0]["already"], true);
    // Of several, the others are ended all the same.
    let both = ["dead-letters", "resolve", &id, &other, "--applied", "--why", "they have both"];
    let ran = office.by(MARIA, &both);
    assert_eq!((ran.code, ran.out), (3, format!("{other}: resolved\n")));
    assert_eq!(ran.err, format!("{id} is closed already: only a dead letter can be ended\n"));
    assert_eq!((office.count_of("closed"), office.count_of("resolved")), (1, 1));

    // A mistyped one ends none, and a resolution says that it was applied.
    let unknown = "whd_00000000000000000000000000";
    let ran = office.by(MARIA, &["dead-letters", "close", &id, unknown, "--why", "x"]);
    assert_eq!((ran.code, ran.err), (1, format!("waybill.db: there is no delivery {unknown}\n")));
    let ran = office.by(MARIA, &["dead-letters", "resolve", &id, "--why", "x"]);
    assert!(ran.code == 2 && ran.err.contains("--applied"), "{}", ran.err);
}

#[test]
fn an_order_whose_command_was_killed_is_carried_out_by_the_next_one_and_entered_once() {
    let office = Office::with(&["acme/down-1"]);
    let id = office.id_of("down-1");
    let store = EmbeddedStore::open(&office.home.path("waybill.db"), SystemClock).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let record = store.find(&DeliveryId::parse(&id).unwrap()).await.unwrap().remove(0);
        let desk = Desk { office: &store, clock: &SystemClock, dice: &SystemDice };
        desk.order_ending(&record, Decision::Close, MARIA, "nobody needs it").await.unwrap();
    });
    drop(store);
    assert_eq!(office.facts(MARIA, &["dead-letters", "list"]).len(), 1);

    let again = office.by(MARIA, &["dead-letters", "close", &id, "--why", "nobody needs it"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(office.facts(MARIA, &["dead-letters", "list"]).is_empty());
    assert_eq!(office.count_of("closed"), 1);
}

#[test]
fn a_hold_is_one_hold_and_is_lifted_once() {
    let office = Office::with(&[]);
    let add = ["hold", "add", "--destination", "d", "--why", "they are down"];
    let first = office.facts(MARIA, &add).remove(0);
    assert_eq!(
        [&first["already"], &first["reason"], &first["book"]],
        [&json!(false), &json!("paused"), &json!("acme")]
    );
    assert_eq!(office.facts(BOSS, &add)[0]["already"], true);
    let id = text(&first, "hold").to_owned();
    let lift = ["hold", "lift", &id, "--why", "they are up"];
    assert_eq!(office.facts(MARIA, &["hold", "list"]).len(), 1);
    assert_eq!(office.facts(MARIA, &lift)[0]["already"], false);
    let again = office.by(MARIA, &lift);
    assert!(again.code == 0 && again.out.starts_with(&format!("{id} was lifted already\n")), "{}", again.out);
    assert!(office.facts(MARIA, &["hold", "list"]).is_empty());
    let all = office.by(MARIA, &["hold", "list", "--all"]).out;
    assert!(all.contains("by maria: they are up"), "{all}");
    assert_eq!((office.count_of("hold_added"), office.count_of("hold_lifted")), (1, 1));
}

#[test]
fn a_hold_is_of_a_destination_a_tenant_a_class_of_payloads_or_everything() {
    let office = Office::with(&[]);
    let why = "because";
    let rows: [(&str, &[&str], &str, &str, &str); 6] = [
        (MARIA, &["--destination", "d"], "acme", "paused", "destination d"),
        (MARIA, &["--tenant", "acme"], "acme", "paused", "tenant acme"),
        (MARIA, &["--type", "lease.*"], "acme", "quarantine", "type lease.* of tenant acme"),
        (
            BOSS,
            &["--type", "lease.*", "--payload-version", "2", "--tenant", "other"],
            "other",
            "quarantine",
            "type lease.* with payload version 2 of tenant other",
        ),
        (BOSS, &["--type", "lease.*"], "*", "quarantine", "type lease.*"),
        (BOSS, &["--all"], "*", "gate", "everything"),
    ];
    for (operator, what, book, reason, says) in rows {
        let line = [&["hold", "add", "--why", why], what].concat();
        let facts = office.facts(operator, &line).remove(0);
        assert_eq!([&facts["book"], &facts["reason"]], [book, reason], "{what:?}");
        let told = office.by(operator, &line).out;
        assert!(told.contains(&format!("  {says}  ")), "{says}: {told}");
    }
    // Whoever is bounded to a tenant knows what keeps its deliveries back, and nothing of another's.
    assert_eq!(
        (office.facts(BOSS, &["hold", "list"]).len(), office.facts(MARIA, &["hold", "list"]).len()),
        (6, 5)
    );
    let shown = office.facts(MARIA, &["destinations", "show", "d"]).remove(0);
    assert_eq!(shown["holds"].as_array().unwrap().len(), 5);
    let gate =
        office.facts(MARIA, &["hold", "list"]).into_iter().find(|hold| hold["reason"] == "gate").unwrap();
    let lift = office.by(MARIA, &["hold", "lift", text(&gate, "hold"), "--why", "x"]);
    assert_eq!(lift.code, 3, "{}", lift.err);

    let wrong: [&[&str]; 8] = [
        &[],
        &["--all", "--tenant", "acme"],
        &["--all", "--type", "x"],
        &["--destination", "d", "--tenant", "acme"],
        &["--tenant", "acme", "--payload-version", "2"],
        &["--destination", "d", "--payload-version", "2"],
        &["--all", "--payload-version", "2"],
        &["--type", "*.created"],
    ];
    for what in wrong {
        let ran = office.by(BOSS, &[&["hold", "add", "--why", why], what].concat());
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{what:?}");
    }
}

#[test]
fn a_hold_is_eased_to_a_few_at_once_and_ends_with_a_lift_that_names_no_number() {
    let office = Office::with(&[]);
    let why = ["--why", "rolled back"];
    let gate = office.facts(BOSS, &["hold", "add", "--all", why[0], why[1]]).remove(0);
    assert!(gate["eased"].is_null());
    let id = text(&gate, "hold").to_owned();
    let ease = |to: &str| ["hold", "lift", &id, "--concurrency", to, why[0], why[1]].map(str::to_owned);
    let by = |operator: &str, line: &[String]| {
        office.by(operator, &line.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(by(MARIA, &ease("2")).code, 3, "it is not hers");
    let told = by(BOSS, &ease("2")).out;
    assert!(told.starts_with(&format!("{id} eased; bites within a second")), "{told}");
    assert!(told.contains("  eased to 2 at once, ") && told.contains(" by boss: rolled back"), "{told}");
    assert!(by(BOSS, &ease("2")).out.starts_with(&format!("{id} was eased already\n")));
    assert_eq!(by(BOSS, &ease("3")).code, 0);
    assert_eq!(office.count_of("hold_lifted"), 2);
    let audit = office.by(BOSS, &["audit", "list"]).out;
    assert!(audit.contains("  hold_lifted to 2 at once  ") && audit.contains("to 3 at once"), "{audit}");

    let listed = office.facts(BOSS, &["hold", "list"]);
    let eased = &listed[0]["eased"];
    assert_eq!((listed.len(), &eased["concurrency"], text(eased, "by")), (1, &json!(3), BOSS));
    assert!(listed[0]["lifted"].is_null(), "it stays until it is lifted");
    let shown = office.facts(MARIA, &["destinations", "show", "d"]).remove(0);
    assert_eq!([&shown["budget"]["concurrency"], &shown["budget"]["eased_to"]], [&json!(null), &json!(3)]);
    let told = office.by(MARIA, &["destinations", "show", "d"]).out;
    assert!(told.contains("  at once       0 of 3\n") && told.contains("  eased to 3 at once, "), "{told}");

    // The same hold again: all of it.
    let again = office.facts(BOSS, &["hold", "add", "--all", why[0], why[1]]).remove(0);
    assert_eq!([&again["already"], &again["eased"]], [&json!(false), &json!(null)]);
    assert_eq!(text(&again, "hold"), id);
    let lifted = office.facts(BOSS, &["hold", "lift", &id, why[0], why[1]]).remove(0);
    assert_eq!(text(&lifted["lifted"], "by"), BOSS);
    let late = by(BOSS, &ease("2"));
    assert!(late.code == 3 && late.err.contains("was lifted already"), "{}", late.err);
    assert_eq!(office.count_of("hold_lifted"), 3);

    for number in ["0", "1001", "-1", "x", "2.5"] {
        let ran = by(BOSS, &ease(number));
        let rule = "is not a number of requests at once from 1 to 1000";
        assert!(ran.code == 2 && (number == "-1" || ran.err.contains(rule)), "{number}: {}", ran.err);
    }
    // A class of payloads is no destination.
    let class = office.facts(MARIA, &["hold", "add", "--type", "lease.*", why[0], why[1]]).remove(0);
    let line = ["hold", "lift", text(&class, "hold"), "--concurrency", "1", why[0], why[1]];
    let refused = office.by(MARIA, &line);
    assert!(
        refused.code == 3 && refused.err.contains("no configured destination as a whole"),
        "{}",
        refused.err
    );
}

#[test]
fn destinations_tell_whom_to_ask_where_requests_go_and_what_is_dead() {
    let office = Office::with(&["acme/down-1", "acme/refused-1", "other/down-2"]);
    let all = office.facts(BOSS, &["destinations", "list"]);
    let names: Vec<&str> = all.iter().map(|one| text(one, "destination")).collect();
    assert_eq!(names, ["d", "o"]);
    let facts = office.facts(MARIA, &["destinations", "show", "d"]).remove(0);
    assert_eq!([&facts["dead_letters"], &facts["policy"]["max_attempts"]], [2, 3]);
    assert!(text(&facts, "origin").starts_with("http://127.0.0.1:"));
    let told = office.by(MARIA, &["destinations", "show", "d"]).out;
    for part in [
        "  tenants       acme\n",
        "  held          no\n",
        "  dead letters  2\n",
        "1 of acme: payload_rejected",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
    let everything = told + &serde_json::to_string(&all).unwrap();
    assert!(!everything.contains("PATH-SECRET") && !everything.contains("D_SECRET"), "{everything}");
}
