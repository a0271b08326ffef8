//! `waybill capacity`, as it is typed.

mod support;

use support::Home;

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
