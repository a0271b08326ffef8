//! Every fault that a file can have: its line, its key, what is wrong, what is allowed.

use super::{DESTINATION, faults};

/// Rows of (lines below a good destination, which ends on line 4, and the faults they make).
fn check(rows: &[(&str, &[&str])]) {
    for (lines, expected) in rows {
        assert_eq!(faults(&format!("{DESTINATION}{lines}\n")), *expected, "\nfor\n{lines}");
    }
}

const DESTINATION_KEYS: &str = "one of tenants, owner, url, secrets, event_types, policy, timeout, concurrency, \
                                rate, on_ambiguous, status_url, statuses, keep_result, schema, headers, gone, suspend_after, \
                                metrics";

#[test]
fn a_key_that_nobody_knows_is_refused_with_the_one_that_was_probably_meant() {
    let rows: &[(&str, &str)] = &[
        ("timeuot = \"1s\"", "destinations.d.timeuot: is not a key; did you mean \"timeout\"?"),
        ("event_type = [\"a\"]", "destinations.d.event_type: is not a key; did you mean \"event_types\"?"),
        ("colour = \"red\"", "destinations.d.colour: is not a key"),
        (
            "\"on ambiguous\" = 1",
            "destinations.d.\"on ambiguous\": is not a key; did you mean \"on_ambiguous\"?",
        ),
    ];
    for (line, fault) in rows {
        let expected = format!("line 5: {fault} ({DESTINATION_KEYS})");
        assert_eq!(faults(&format!("{DESTINATION}{line}\n")), [expected]);
    }
    check(&[
        (
            "[destination.x]",
            &["line 5: destination: is not a key; did you mean \"destinations\"? \
               (one of policies, producers, sources, event_types, destinations, operators, system, schedules, files)"],
        ),
        (
            "[policies.fast]\nmax_attempt = 3",
            &["line 6: policies.fast.max_attempt: is not a key; did you mean \"max_attempts\"? \
               (one of max_attempts, base_delay, factor, max_delay, horizon, minimum_window)"],
        ),
        (
            "[system]\nstale = \"1m\"",
            &["line 6: system.stale: is not a key (one of stale_after, rescue_window, max_redrives)"],
        ),
        (
            "[event_types.\"a.*\"]\nrequire-deadline = true",
            &["line 6: event_types.\"a.*\".require-deadline: is not a key; did you mean \
               \"require_deadline\"? (one of require_deadline)"],
        ),
        (
            "[producers.p]\ntenants = [\"acme\"]\ntokens = [\"env:T\"]\ntoken = 1",
            &[
                "line 8: producers.p.token: is not a key; did you mean \"tokens\"? (one of tenants, tokens, secrets)",
            ],
        ),
    ]);
}

#[test]
fn what_the_design_names_and_this_version_lacks_is_refused_by_name() {
    check(&[
        (
            "[system]\nretain_days = 90",
            &["line 6: system.retain_days: is known, but not built in this version \
               (one of stale_after, rescue_window, max_redrives)"],
        ),
        (
            "[producers.p]\ntenants = [\"acme\"]\ntokens = [\"ssm:/x\", \"secretsmanager:y\"]",
            &[
                "line 7: producers.p.tokens[0]: is known on AWS alone: this backend resolves only env: \
                 references (env:NAME)",
                "line 7: producers.p.tokens[1]: is known on AWS alone: this backend resolves only env: \
                 references (env:NAME)",
            ],
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_kind_or_out_of_bounds_is_refused() {
    let max_attempts = "line 6: policies.p.max_attempts";
    check(&[
        ("timeout = 15", &["line 5: destinations.d.timeout: is a number (a text in quotes)"]),
        (
            "timeout = \"15\"",
            &["line 5: destinations.d.timeout: \"15\" is not a duration \
               (a whole number and one of ms, s, m, h, d, such as \"15s\")"],
        ),
        ("timeout = \"99ms\"", &["line 5: destinations.d.timeout: is 99ms (from 100ms to 60s)"]),
        ("concurrency = 0", &["line 5: destinations.d.concurrency: is 0 (from 1 to 1000)"]),
        ("concurrency = 1001", &["line 5: destinations.d.concurrency: is 1001 (from 1 to 1000)"]),
        (
            "rate = \"20\"",
            &["line 5: destinations.d.rate: \"20\" is not a rate \
               (a whole number from 1 to 100000, / and one of s, m, h, such as \"20/s\")"],
        ),
        (
            "rate = \"0/m\"",
            &["line 5: destinations.d.rate: \"0/m\" is not a rate \
               (a whole number from 1 to 100000, / and one of s, m, h, such as \"20/s\")"],
        ),
        ("timeout = \"61s\"", &["line 5: destinations.d.timeout: is 1m01s (from 100ms to 60s)"]),
        ("metrics = 1", &["line 5: destinations.d.metrics: is a number (true or false)"]),
        ("keep_result = \"yes\"", &["line 5: destinations.d.keep_result: is a text (true or false)"]),
        (
            "owner = \"\"",
            &["line 5: destinations.d.owner: is not a name or an address (who is asked when \
            the destination fails: 1 to 256 bytes without control characters)"],
        ),
        (
            "event_types = \"a\"",
            &["line 5: destinations.d.event_types: is a text (a list in square brackets)"],
        ),
        (
            "event_types = [\n  \"a.*\",\n  \"b*c\",\n  \"a.*\",\n]",
            &[
                "line 7: destinations.d.event_types[1]: has '*' at byte 1 \
                 (an event type, or the beginning of one and a final *, such as lease.*)",
                "line 8: destinations.d.event_types[2]: is listed twice (each event type once)",
            ],
        ),
        (
            "on_ambiguous = \"ignore\"",
            &["line 5: destinations.d.on_ambiguous: is \"ignore\" (\"retry\", \"query\" or \"hold\")"],
        ),
        (
            "on_ambiguous = \"query\"",
            &["line 1: destinations.d.status_url: is missing (on_ambiguous = \"query\" asks there)"],
        ),
        (
            "status_url = \"https://x.example/{delivery_id}\"",
            &[
                "line 5: destinations.d.status_url: is never asked (only together with on_ambiguous = \"query\")",
            ],
        ),
        (
            "on_ambiguous = \"query\"\nstatus_url = \"https://x.example/status\"",
            &["line 6: destinations.d.status_url: has neither {delivery_id} nor {event_id} in it \
               (a URL as for url, with {delivery_id} or {event_id} in its path or query)"],
        ),
        (
            "statuses = { 99 = \"retryable\", 0404 = \"retryable\", ok = \"delivered\", 500 = \"maybe\" }",
            &[
                "line 5: destinations.d.statuses.99: is not a status (a status from 100 to 599)",
                "line 5: destinations.d.statuses.0404: is not a status (a status from 100 to 599)",
                "line 5: destinations.d.statuses.ok: is not a status (a status from 100 to 599)",
                "line 5: destinations.d.statuses.500: is \"maybe\" (\"retryable\", \"permanent\" or \"delivered\")",
            ],
        ),
        (
            "statuses = { 600 = \"retryable\" }",
            &["line 5: destinations.d.statuses.600: is not a status (a status from 100 to 599)"],
        ),
        (
            "policy = \"fast\"",
            &["line 5: destinations.d.policy: no policy is named \"fast\" (one of [policies.*]: default)"],
        ),
        ("[policies.p]\nmax_attempts = 0", &[&format!("{max_attempts}: is 0 (from 1 to 1000)")]),
        (
            "[policies.p]\nmax_attempts = -1",
            &[&format!("{max_attempts}: is -1 (a whole number from 0 to 4294967295)")],
        ),
        ("[policies.p]\nmax_attempts = 7.5", &[&format!("{max_attempts}: is a number (a whole number)")]),
        ("[policies.p]\nfactor = 0.5", &["line 6: policies.p.factor: is 0.5 (from 1 to 100)"]),
        ("[policies.p]\nfactor = nan", &["line 6: policies.p.factor: is NaN (from 1 to 100)"]),
        (
            "[policies.p]\nhorizon = \"2s\"",
            &["line 6: policies.p.horizon: 2s is not longer than minimum_window 2s \
               (longer than minimum_window, or nothing could ever be sent)"],
        ),
        (
            "[policies.p]\nhorizon = \"9999d\"",
            &["line 6: policies.p.horizon: is longer than 366 days \
            (a whole number and one of ms, s, m, h, d, such as \"15s\")"],
        ),
        (
            "[policies.p]\nbase_delay = 1\nmax_delay = \"x\"\nfactor = true",
            &[
                "line 6: policies.p.base_delay: is a number (a text in quotes)",
                "line 7: policies.p.max_delay: \"x\" is not a duration \
                 (a whole number and one of ms, s, m, h, d, such as \"15s\")",
                "line 8: policies.p.factor: is true or false (a number)",
            ],
        ),
        (
            "[policies.p]\nbase_delay = \"2m\"\nmax_delay = \"90s\"",
            &["line 7: policies.p.max_delay: is 1m30s (not shorter than base_delay, 2m00s)"],
        ),
        (
            "[policies.p]\nbase_delay = \"1h\"",
            &["line 6: policies.p.base_delay: is 1h00m (not longer than max_delay, by default 15m00s)"],
        ),
        ("[policies]\np = 3", &["line 6: policies.p: is a number (a table)"]),
        ("[system]\nstale_after = \"0s\"", &["line 6: system.stale_after: is 0ms (1s or longer)"]),
    ]);
}

#[test]
fn names_keep_the_rule_of_names() {
    check(&[
        (
            "[destinations.\"a/b\"]\ntenants = [\"acme/eu\", \"\"]\nurl = \"https://x.example/\"\nsecrets = [\"env:S\"]",
            &[
                "line 5: destinations.\"a/b\": has '/' at byte 1 (1 to 64 of A-Z a-z 0-9 . _ -)",
                "line 6: destinations.\"a/b\".tenants[0]: has '/' at byte 4 (1 to 64 of A-Z a-z 0-9 . _ -)",
                "line 6: destinations.\"a/b\".tenants[1]: is empty (1 to 64 of A-Z a-z 0-9 . _ -)",
            ],
        ),
        (
            "[producers.\"p q\"]\ntenants = []\ntokens = []",
            &[
                "line 5: producers.\"p q\": has ' ' at byte 1 (1 to 64 of A-Z a-z 0-9 . _ -)",
                "line 6: producers.\"p q\".tenants: is empty (at least one tenant, each once)",
                "line 7: producers.\"p q\".tokens: is empty \
                 (at least one reference such as \"env:BILLING_TOKEN\", two while rotating)",
            ],
        ),
        (
            "[event_types.\"a b\"]",
            &["line 5: event_types.\"a b\": has ' ' at byte 1 \
               (an event type, or the beginning of one and a final *, such as lease.*)"],
        ),
    ]);
}

#[test]
fn a_rule_that_an_earlier_pattern_swallows_is_refused() {
    check(&[(
        "[event_types.\"*\"]\n[event_types.\"renewal.*\"]\nrequire_deadline = true",
        &["line 6: event_types.\"renewal.*\": is never reached: everything it matches is matched by \
           \"*\" before it (the narrower pattern first)"],
    )]);
}

#[test]
fn all_faults_of_a_file_are_told_at_once_in_the_order_of_its_lines() {
    let text = "[policies.default]\nfactor = 0\n[destinations.d]\nurl = \"ftp://x\"\ntenants = [\"a b\"]\n\
                secrets = [\"oops\"]\ncolour = 1\n[system]\nstale_after = 5\n";
    let lines: Vec<String> = faults(text).iter().map(|f| f.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["line 2", "line 4", "line 5", "line 6", "line 7", "line 9"]);
}

#[test]
fn an_operator_has_a_name_of_their_own_and_tenants() {
    check(&[
        (
            "[operators.maria]",
            &["line 5: operators.maria.tenants: is missing (at least one tenant, each once)"],
        ),
        (
            "[operators.automation]\ntenants = [\"*\"]",
            &["line 5: operators.automation: is automation's own name (a person's or a role's name)"],
        ),
        (
            "[operators.AutoMation]\ntenants = [\"*\"]",
            &["line 5: operators.AutoMation: is automation's own name (a person's or a role's name)"],
        ),
        (
            "[operators.maria]\ntenants = [\"acme\", \"*\"]",
            &["line 6: operators.maria.tenants[1]: has '*' at byte 0 (1 to 64 of A-Z a-z 0-9 . _ -)"],
        ),
        (
            "[operators.maria]\ntenants = []",
            &["line 6: operators.maria.tenants: is empty (at least one tenant, each once)"],
        ),
        (
            "[operators.maria]\ntenants = \"*\"",
            &["line 6: operators.maria.tenants: is a text (a list in square brackets)"],
        ),
        (
            "[operators.maria]\ntenants = [\"*\"]\nrole = 1",
            &["line 7: operators.maria.role: is not a key (one of tenants)"],
        ),
    ]);
}
