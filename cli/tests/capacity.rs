//! `waybill capacity`, as it is typed.

mod support;

use std::time::Duration;

use support::recipient::Recipient;
use support::{Home, text};

const BURST: &str = "capacity --arrivals-per-s 10 --outage 1h --service-time 1s --concurrency 40 --deadline";

fn typed(home: &Home, line: &str) -> support::Ran {
    home.run(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn it_says_what_an_outage_leaves_and_what_comes_first() {
    let home = Home::new();
    let rows = [
        ("2h", "nothing: it could take twice as long"),
        ("30m", "page: in time"),
        ("10m --safe-concurrency 80", "more consumers: raise concurrency from 40 to 70"),
        ("10m", "shed: 18000 are too many"),
    ];
    for (deadline, first) in rows {
        let ran = typed(&home, &format!("{BURST} {deadline}"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{deadline}");
        assert!(ran.out.contains("36000 deliveries") && ran.out.contains("20m00s after"), "{}", ran.out);
        assert!(ran.out.contains(&format!("first    {first}")), "{}", ran.out);
    }
    let ran = typed(&home, &format!("{BURST} 2h --duplicates 100 --output json --svg out.svg"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let facts = ran.json().remove(0);
    assert_eq!((&facts["drain_ms"], &facts["slack_ms"]), (&3_600_000.into(), &3_600_000.into()));
    assert_eq!((&facts["needed_concurrency"], &facts["first"]), (&30.into(), &"nothing".into()));
    let svg = std::fs::read_to_string(home.path("out.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!((svg.matches("<polyline").count(), svg.matches(">36000<").count()), (2, 1), "{svg}");
}

#[test]
fn what_cannot_be_reckoned_with_is_refused_with_its_name() {
    let home = Home::new();
    let rows = [
        ("2h --safe-concurrency 8", "--safe-concurrency 8 is less than --concurrency 40"),
        ("0s", "--deadline"),
        ("soon", "--deadline"),
        ("2h --duplicates=-1", "--duplicates"),
        ("2h --duplicates NaN", "--duplicates"),
        ("2h --svg no/such/folder/x.svg", "no/such/folder/x.svg"),
    ];
    for (arguments, named) in rows {
        let ran = typed(&home, &format!("{BURST} {arguments}"));
        let expected = if arguments.contains("svg") { 1 } else { 2 };
        assert_eq!(ran.code, expected, "{arguments}: {}", ran.err);
        assert!(ran.err.contains(named) && ran.out.is_empty(), "{arguments}: {}", ran.err);
    }
}

fn event(n: usize) -> String {
    format!(
        r#"{{"event_id":"e{n}","tenant":"acme","type":"lease.signed","deadline":"2099-01-01T00:00:00Z","payload":{{}}}}"#
    )
}

/// 24 delivered, and three that wait.
#[test]
fn from_the_ledger_each_figure_says_where_it_comes_from_and_options_overrule() {
    let recipient = Recipient::start(|_, _| (200, Duration::from_millis(30)));
    let home = Home::with(&recipient.url, "concurrency = 4\nrate = \"500/s\"\n");
    let serving = home.serve(&["--allow-local"]);
    let measured = "capacity --from-ledger --destination d";

    let ran = typed(&home, measured);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    for said in ["d: too little to measure: 0 deliveries came in", "takes 20", "--arrivals-per-s"] {
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    (0..24).for_each(|n| assert_eq!(serving.publish(event(n)).status, 202));
    home.wait_until_all_ended(24);
    for (line, said) in [("", "nothing waits"), (" --outage 1m", "give --deadline")] {
        let ran = typed(&home, &format!("{measured}{line}"));
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains(said), "{}", ran.err);
    }
    let later = |n| event(n).replace("\"payload\"", "\"not_before\":\"2098-12-31T12:00:00Z\",\"payload\"");
    (24..27).for_each(|n| assert_eq!(serving.publish(later(n)).status, 202));

    let facts = typed(&home, &format!("{measured} --output json"));
    assert_eq!(facts.code, 0, "{}", facts.err);
    let facts = facts.json().remove(0);
    let inputs = &facts["inputs"];
    assert_eq!((&facts["concurrency"], &facts["rate_per_s"]), (&4.into(), &500.0.into()));
    assert_eq!((&facts["duplicates_percent"], &facts["backlog"]), (&0.0.into(), &3.into()));
    assert!((30..5000).contains(&facts["service_time_ms"].as_u64().unwrap()), "{facts}");
    assert!(facts["deadline_ms"].as_u64().unwrap() > 1_000_000_000, "{facts}");
    let of = |name: &str| (text(&inputs[name], "from").to_owned(), inputs[name]["over"].as_u64());
    for (name, from, over) in [
        ("arrivals_per_s", "ledger", Some(27)),
        ("service_time_ms", "ledger", Some(24)),
        ("concurrency", "configuration", None),
        ("rate_per_s", "configuration", None),
        ("duplicates_percent", "ledger", Some(24)),
        ("outage_ms", "ledger", Some(3)),
        ("deadline_ms", "ledger", Some(3)),
    ] {
        assert_eq!(of(name), (from.to_owned(), over), "{name}");
    }
    let table = typed(&home, &format!("{measured} --service-time 2s --concurrency 2")).out;
    assert!(table.contains("service     2s: option, as given"), "{table}");
    assert!(table.contains("arrivals") && table.contains("27 deliveries that came in since"), "{table}");
    assert!(table.contains("needed") && table.contains(" requests at once, of 2"), "{table}");

    let hold = typed(&home, "hold add --destination d --why broken --output json").json().remove(0);
    let hold = text(&hold, "hold");
    for (concurrency, in_force) in [(2, 2), (3, 3), (9, 4)] {
        let lift = format!("hold lift {hold} --why mended --concurrency {concurrency}");
        assert_eq!(typed(&home, &lift).code, 0, "{lift}");
        let facts = typed(&home, &format!("{measured} --output json")).json().remove(0);
        assert_eq!((&facts["concurrency"], &facts["rate_per_s"]), (&in_force.into(), &500.0.into()));
        let input = &facts["inputs"]["concurrency"];
        let said = format!("the budget in force while {hold} is eased to {concurrency} at once; ");
        assert!(text(input, "from") == "hold" && text(input, "how").starts_with(&said), "{input}");
    }
    assert_eq!(typed(&home, &format!("hold lift {hold} --why mended")).code, 0);
    let facts = typed(&home, &format!("{measured} --output json")).json().remove(0);
    assert_eq!(facts["concurrency"], 4);
    assert_eq!(text(&facts["inputs"]["concurrency"], "from"), "configuration");
}

#[test]
fn what_cannot_be_measured_is_refused_with_what_would_lift_it() {
    let home = Home::with("https://hooks.example.com/in", "[operators.maria]\ntenants = [\"northwind\"]\n");
    let applied = home.run(&["config", "apply", "waybill.toml", "--why", "the first", "--operator", "maria"]);
    let rows = [
        ("capacity --from-ledger", 2, "--destination"),
        ("capacity --destination d", 2, "--from-ledger"),
        ("capacity --from-ledger --destination dd --operator maria", 2, "dd"),
        ("capacity --from-ledger --destination d --operator maria", 2, "d"),
    ];
    for (line, code, said) in rows {
        let ran = typed(&home, line);
        assert_eq!(ran.code, code, "{line}: {} {}", ran.err, applied.err);
        assert!(ran.err.contains(said) && ran.out.is_empty(), "{line}: {}", ran.err);
    }
}
