//! Plans and runs, seen from the command line; what they release is sent by `waybill serve`.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::office::{BOSS, MARIA, Office};
use support::recipient::Recipient;
use support::text;

/// Makes and keeps a plan.
fn plan(office: &Office, operator: &str, more: &[&str]) -> Value {
    office.facts(operator, &[&["redrive", "plan", "--save", "plan.json"], more].concat()).remove(0)
}

/// Starts the plan that was kept, and answers the run.
fn start(office: &Office, operator: &str) -> Value {
    let line = ["redrive", "start", "plan.json", "--rate", "50/s", "--why", "they mended it"];
    office.facts(operator, &line).remove(0)
}

fn standing(office: &Office, run: &Value) -> String {
    text(&office.facts(BOSS, &["redrive", "status", text(run, "run")])[0], "standing").to_owned()
}

#[test]
fn a_plan_counts_by_destination_reason_and_fate_and_changes_nothing() {
    let office = Office::with(&["acme/down-1", "acme/refused-1", "acme/locked-1", "other/down-2"]);
    let (deliveries, audit) = (office.deliveries(), office.audited());
    let facts = office.facts(BOSS, &["redrive", "plan"]).remove(0);
    let groups = facts["plan"]["groups"].as_array().unwrap().iter();
    let groups: Vec<Value> =
        groups.map(|g| json!([g["destination"], g["reason"], g["fate"], g["count"]])).collect();
    let permanent = json!({ "blocked": "permanent" });
    let expected = [
        json!(["d", "attempts_exhausted", "release", 1]),
        json!(["d", "authentication_rejected", permanent, 1]),
        json!(["d", "payload_rejected", permanent, 1]),
        json!(["o", "attempts_exhausted", "release", 1]),
    ];
    assert_eq!(groups.len(), 4);
    assert!(expected.iter().all(|group| groups.contains(group)), "{groups:#?}");
    assert_eq!([&facts["selected"], &facts["to_release"], &facts["blocked"]], [4, 2, 2]);
    assert!(text(&facts["blocks"][0], "lifted_by").contains("--permanent-reviewed"));

    let told = office.by(BOSS, &["redrive", "plan"]).out;
    for line in [
        "d            payload_rejected         1      0                leave them: permanent",
        "4 selected: 2 to release, 0 past their deadline, 2 blocked",
        "  permanent (2): to release them, change the destination's url, secrets, headers or statuses, or, if it was \
         mended elsewhere (at the recipient, or the value behind a secret's reference), say --permanent-reviewed \
         \"why\"",
        "nothing was changed; --save FILE keeps the plan, and a run is started from that",
    ] {
        assert!(told.lines().any(|told| told == line), "{line:?} is no line of\n{told}");
    }
    assert_eq!((office.deliveries(), office.audited()), (deliveries, audit));
}

#[test]
fn a_plan_means_what_its_selection_says() {
    let office = Office::with(&["acme/down-1", "acme/refused-1", "acme/locked-1", "other/down-2"]);
    let id = office.id_of("locked-1");
    let rows: [(&[&str], u64); 12] = [
        (&[], 4),
        (&["--tenant", "acme"], 3),
        (&["--destination", "o"], 1),
        (&["--reason", "attempts_exhausted"], 2),
        (&["--type", "lease.*"], 4),
        (&["--since", "1h"], 4),
        (&["--since", "2099-01-01T00:00:00Z"], 0),
        (&["--until", "2020-01-01T00:00:00Z"], 0),
        (&["--delivery", &id], 1),
        (&["--event", "down-1", "--event", "refused-1"], 2),
        (&["--event-prefix", "down-"], 2),
        (&["--event-prefix", "down-", "--tenant", "acme"], 1),
    ];
    for (selection, count) in rows {
        let facts = office.facts(BOSS, &[&["redrive", "plan"], selection].concat()).remove(0);
        assert_eq!(facts["selected"], count, "{selection:?}");
    }
}

#[test]
fn a_permanent_failure_is_blocked_until_the_configuration_changed_or_a_reviewer_says_why() {
    let office = Office::with(&["acme/locked-1"]);
    let fate = |more: &[&str]| {
        let facts = office.facts(BOSS, &[&["redrive", "plan"], more].concat()).remove(0);
        (facts["to_release"].as_u64().unwrap(), facts["blocked"].as_u64().unwrap())
    };
    assert_eq!(fate(&[]), (0, 1));
    assert_eq!(fate(&["--permanent-reviewed", "they corrected it on their side"]), (1, 0));
    let id = office.id_of("locked-1");
    let shown = office.by(MARIA, &["deliveries", "show", &id]).out;
    assert!(
        shown.contains("replay       a redrive would leave it as it is (permanent); to lift that, "),
        "{shown}"
    );

    let toml = std::fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    office.home.write("waybill.toml", toml.replace("env:D_SECRET", "env:D_SECRET_2"));
    let applied = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "the new secret"]);
    assert_eq!(applied.code, 0, "{}", applied.err);
    assert_eq!(fate(&[]), (1, 0));
    let facts = office.facts(MARIA, &["deliveries", "show", &id]).remove(0);
    assert_eq!(facts["replay"]["fate"], "release");
}

#[test]
fn a_plan_that_releases_nothing_is_not_started_and_what_blocks_it_is_named() {
    let office = Office::with(&["acme/locked-1", "acme/locked-2"]);
    plan(&office, MARIA, &[]);
    let told = office.by(MARIA, &["redrive", "plan", "--save", "plan.json"]).out;
    assert!(told.ends_with("nothing is to be released, and no run is started from it\n"), "{told}");
    let line = ["redrive", "start", "plan.json", "--rate", "50/s", "--why", "they mended it"];
    let ran = office.by(MARIA, &line);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
    let says = "the plan releases nothing: permanent (2): to release them, change the destination's";
    assert!(ran.err.contains(says) && ran.err.ends_with("then plan anew\n"), "{}", ran.err);
    assert!(office.facts(MARIA, &["redrive", "status"]).is_empty());
    // Of a few all can go at once: no sample is proposed.
    let told =
        office.by(MARIA, &["redrive", "plan", "--save", "plan.json", "--permanent-reviewed", "mended"]).out;
    assert!(told.ends_with("redrive start plan.json --rate 5/s --why \"why\" begins it\n"), "{told}");
    assert_eq!(office.by(MARIA, &line).code, 0);
}

#[test]
fn a_run_is_one_run_however_often_it_is_started_stopped_or_resumed() {
    let office = Office::with(&["acme/down-1"]);
    plan(&office, MARIA, &[]);
    let line = ["redrive", "start", "plan.json", "--rate", "50/s", "--why", "they mended it"];
    let first = office.facts(MARIA, &line).remove(0);
    assert_eq!([&first["already"], &first["standing"]], [&json!(false), &json!("running")]);
    assert_eq!(office.facts(MARIA, &line)[0]["already"], true);
    assert!(office.by(MARIA, &line).out.contains(" was started already\n"));
    let id = text(&first, "run").to_owned();
    for (act, standing) in [("stop", "stopped"), ("resume", "running")] {
        let about = ["redrive", act, &id, "--why", "on second thoughts"];
        let done = office.facts(MARIA, &about).remove(0);
        assert_eq!([&done["already"], &done["standing"]], [&json!(false), &json!(standing)]);
        assert_eq!(office.facts(MARIA, &about)[0]["already"], true);
    }
    let acts: Vec<[String; 4]> = office.audited().into_iter().filter(|entry| entry[3] == id).collect();
    let expected = ["redrive_started", "redrive_stopped", "redrive_resumed"];
    assert_eq!(acts, expected.map(|act| ["acme", MARIA, act, &id].map(str::to_owned)));
    assert_eq!(office.facts(MARIA, &["redrive", "status"]).len(), 1);
    let status = office.by(MARIA, &["redrive", "status", &id]);
    assert!(
        status.out.contains("  means     dead letters of tenant acme, that ended before "),
        "{}",
        status.out
    );

    assert!(status.out.contains("\n  outcomes  none since the resume at 2"), "{}", status.out);

    let unknown = "rdr_00000000000000000000000000";
    let ran = office.by(MARIA, &["redrive", "stop", unknown, "--why", "x"]);
    assert_eq!((ran.code, ran.err), (1, format!("there is no redrive run {unknown}\n")));
    let ran = office.by(MARIA, &["redrive", "stop", "hld_00000000000000000000000000", "--why", "x"]);
    assert!(ran.code == 2 && ran.err.contains("is not the ID of a run"), "{}", ran.err);
}

#[test]
fn a_run_of_another_tenants_is_nobodys_for_an_operator_of_one() {
    let office = Office::with(&["acme/down-1", "other/down-2"]);
    plan(&office, BOSS, &[]);
    let id = text(&start(&office, BOSS), "run").to_owned();
    for act in ["stop", "resume"] {
        let ran = office.by(MARIA, &["redrive", act, &id, "--why", "x"]);
        assert_eq!((ran.code, ran.err), (1, format!("there is no redrive run {id}\n")));
    }
    assert!(office.facts(MARIA, &["redrive", "status"]).is_empty());
    assert_eq!(office.by(MARIA, &["redrive", "status", &id]).code, 1);
}

#[test]
fn a_plan_that_was_edited_is_refused_as_what_it_says_now() {
    let office = Office::with(&["acme/down-1", "other/down-2"]);
    plan(&office, MARIA, &[]);
    let made: Value = serde_json::from_slice(&std::fs::read(office.home.path("plan.json")).unwrap()).unwrap();
    let edited = |key: &str, value: Value| {
        let mut plan = made.clone();
        *plan.pointer_mut(key).unwrap() = value;
        plan.to_string()
    };
    let rows = [
        (
            edited("/selection/tenant", json!("other")),
            3,
            "is refused for maria: the operator is not authorised",
        ),
        (edited("/selection/tenant", Value::Null), 3, "this concerns more than one tenant"),
        (edited("/selection/until", Value::Null), 2, "plan.json: selection.until: is missing"),
        (edited("/selection/until", json!("2099-01-01T00:00:00Z")), 2, "selection.until: is after made_at"),
        (edited("/made_at", json!("2099-01-01T00:00:00Z")), 2, "made_at: is in the future"),
        (edited("/run", json!("hld_00000000000000000000000000")), 2, "run: is not the ID of a run"),
        (edited("/reviews/permanent", json!("")), 2, "reviews.permanent: is empty"),
        (edited("/groups/0/count", json!(u64::MAX)), 2, "groups: count 18446744073709551615"),
        (edited("/groups/0/count", json!(0)), 2, "groups: counts 0"),
        (
            edited("/selection/destination", json!("nope")),
            2,
            "--destination nope: nothing here has that name",
        ),
        (edited("/groups", json!([])), 3, "the plan has no dead letters"),
        (
            edited("/selection", json!({ "tenants": ["acme"] })),
            2,
            "is not a plan of a redrive: unknown field",
        ),
        ("{".to_owned(), 2, "plan.json: is not a plan of a redrive: "),
    ];
    for (plan, code, says) in rows {
        office.home.write("plan.json", &plan);
        let ran = office.by(MARIA, &["redrive", "start", "plan.json", "--rate", "1/s", "--why", "x"]);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{plan}");
        assert!(ran.err.contains(says), "{says}: {}", ran.err);
    }
    let none = office.by(MARIA, &["redrive", "start", "none.json", "--rate", "1/s", "--why", "x"]);
    assert_eq!(
        (none.code, none.err.as_str()),
        (2, "none.json: there is no such plan; waybill redrive plan --save none.json makes one\n")
    );
    for rate in ["0/s", "20", "1001/s", "5/d"] {
        let ran = office.by(MARIA, &["redrive", "start", "plan.json", "--rate", rate, "--why", "x"]);
        assert!(ran.code == 2 && ran.err.contains("such as 20/s"), "{rate}: {}", ran.err);
    }
    assert_eq!((office.count_of("redrive_started"), office.count_of("refused")), (0, 2));
}

#[test]
fn c39_a_run_of_one_tenant_leaves_every_other_as_it_was() {
    let office = Office::with(&["acme/down-1", "acme/down-2", "acme/down-3", "other/down-4", "other/down-5"]);
    let others = || office.facts(BOSS, &["deliveries", "list", "--tenant", "other"]);
    let before = others();
    let planned = plan(&office, BOSS, &["--tenant", "acme"]);
    assert_eq!([&planned["selected"], &planned["to_release"]], [3, 3]);
    let run = start(&office, BOSS);
    office.work_until(|office| {
        standing(office, &run) == "finished"
            && office.deliveries().iter().all(|one| one["state"] == "dead_lettered")
    });

    let status = office.facts(BOSS, &["redrive", "status", text(&run, "run")]).remove(0);
    assert_eq!([&status["released"], &status["expired"], &status["blocked"]], [3, 0, 0]);
    let told = office.by(BOSS, &["redrive", "status", text(&run, "run")]).out;
    assert!(told.contains("  to d: nothing is left to release"), "{told}");
    let own = office.facts(MARIA, &["deliveries", "list"]);
    assert!(own.iter().all(|one| one["redrives"] == 1 && one["attempts_made"] == 6), "{own:?}");
    assert_eq!(others(), before);
    assert_eq!(office.facts(BOSS, &["dead-letters", "list", "--tenant", "other"]).len(), 2);

    // Who released it, when and why stands where it happened: between the third and the fourth attempt.
    let shown = office.by(MARIA, &["deliveries", "show", &office.id_of("down-1")]).out;
    let place = |what: &str| shown.find(what).unwrap_or_else(|| panic!("no {what:?} in\n{shown}"));
    let released = place(&format!("redrive        boss started {}: they mended it", text(&run, "run")));
    assert!(place("attempt 3") < released && released < place("attempt 4"), "{shown}");
    let facts = office.facts(MARIA, &["deliveries", "show", &office.id_of("down-1")]).remove(0);
    assert_eq!([text(&facts["acts"][0], "act"), text(&facts["acts"][0], "by")], ["redrive_started", BOSS]);
}

#[test]
fn c41_a_delivery_is_released_as_often_as_the_limit_allows_and_then_a_reviewer_says_why() {
    let office = Office::with(&["acme/down-1"]);
    for redrives in 1..=3 {
        assert_eq!(plan(&office, MARIA, &[])["to_release"], 1, "redrive {redrives}");
        let run = start(&office, MARIA);
        office.work_until(|office| {
            office.delivery("down-1")["redrives"] == redrives && standing(office, &run) == "finished"
        });
        office.work(1);
    }
    let delivery = office.delivery("down-1");
    assert_eq!([&delivery["state"], &delivery["attempts_made"]], [&json!("dead_lettered"), &json!(12)]);
    assert_eq!(office.recipient.requests().len(), 12);

    let fourth = plan(&office, MARIA, &[]);
    assert_eq!([&fourth["to_release"], &fourth["blocked"]], [0, 1]);
    assert_eq!(
        fourth["blocks"],
        json!([{ "block": "redrives_used_up", "count": 1, "lifted_by": "say --beyond-limit \"why\"" }])
    );
    assert_eq!(plan(&office, MARIA, &["--beyond-limit", "they rebuilt it"])["to_release"], 1);
}

#[test]
fn c45_what_passed_its_deadline_is_counted_as_that_and_expires_instead_of_being_sent() {
    let office = Office::with(&[]);
    let until = std::time::SystemTime::now() + Duration::from_secs(6);
    let since = until.duration_since(std::time::UNIX_EPOCH).unwrap();
    let deadline = waybill_domain::time::TimeMs::from_unix_ms(since.as_millis().try_into().unwrap());
    let event = format!(
        r#"{{"event_id":"refused-1","tenant":"acme","type":"lease.x","deadline":"{deadline}","payload":1}}"#
    );
    assert_eq!(office.publish(&event).code, 0);
    office.work(1);
    assert_eq!(office.delivery("refused-1")["state"], "dead_lettered");
    // The deadline comes, as deadlines do.
    office.wait_until(|office| office.facts(MARIA, &["redrive", "plan"])[0]["past_deadline"] == 1);
    let planned = plan(&office, MARIA, &[]);
    assert_eq!([&planned["selected"], &planned["to_release"], &planned["past_deadline"]], [1, 0, 1]);
    let told = office.by(MARIA, &["redrive", "plan"]).out;
    assert!(told.contains("expire them: past their deadline, never sent"), "{told}");

    let run = start(&office, MARIA);
    office.work_until(|office| standing(office, &run) == "finished");
    assert_eq!(office.delivery("refused-1")["state"], "expired");
    assert_eq!(office.facts(BOSS, &["redrive", "status", text(&run, "run")])[0]["expired"], 1);
    assert_eq!(office.recipient.requests().len(), 1);
    assert_eq!(office.facts(MARIA, &["deliveries", "list", "--state", "expired"]).len(), 1);
}

#[test]
fn a_sample_waits_for_its_review_and_the_rest_follows_with_one_effect_each() {
    let office = Office::with(&["acme/locked-1", "acme/locked-2", "acme/locked-3"]);
    let mended = Recipient::start(|_, _| (200, Duration::ZERO));
    let toml = std::fs::read_to_string(office.home.path("waybill.toml")).unwrap();
    office.home.write("waybill.toml", toml.replace(&office.recipient.url, &mended.url));
    let applied = office.by(BOSS, &["config", "apply", "--allow-local", "--why", "they moved"]);
    assert_eq!(applied.code, 0, "{}", applied.err);

    plan(&office, MARIA, &[]);
    let line = ["redrive", "start", "plan.json", "--rate", "50/s", "--sample", "2", "--why", "they moved"];
    let run = office.facts(MARIA, &line).remove(0);
    let id = text(&run, "run");
    let status = || office.facts(MARIA, &["redrive", "status", id]).remove(0);
    office.work_until(|_| status()["last_outcomes"] == json!({ "delivered": 2, "failed": 0, "open": 0 }));
    assert_eq!([&status()["standing"], &status()["released"]], [&json!("sampled"), &json!(2)]);
    let told = office.by(MARIA, &["redrive", "status", id]).out;
    assert!(told.contains(
        "  outcomes  of the last 2 released: 2 delivered, 0 failed at their next attempt, 0 not known yet\n"
    ));
    assert!(told.contains(": its next release waits for a resume"), "{told}");
    // However it is asked, it is what is known by now.
    for line in [&line[..], &["redrive", "status"]] {
        let outcomes = office.facts(MARIA, line).remove(0)["last_outcomes"].take();
        assert_eq!(outcomes, json!({ "delivered": 2, "failed": 0, "open": 0 }), "{line:?}");
    }
    assert_eq!(mended.effects(), 2);

    assert_eq!(office.by(MARIA, &["redrive", "resume", id, "--why", "both arrived"]).code, 0);
    office.work_until(|office| {
        status()["standing"] == "finished"
            && mended.effects() == 3
            && office.facts(MARIA, &["dead-letters", "list"]).is_empty()
    });
    assert_eq!((mended.requests().len(), office.recipient.requests().len()), (3, 3));
}

#[test]
fn a_plan_that_is_no_text_is_refused_in_the_words_of_a_configuration() {
    let office = Office::with(&[]);
    office.home.write("plan.json", b"{\n\xff}");
    let ran = office.by(BOSS, &["redrive", "start", "plan.json", "--rate", "1/s", "--why", "x"]);
    assert_eq!((ran.code, ran.err.as_str()), (2, "plan.json: line 2: is not UTF-8\n"));
}
