//! `waybill doctor`: what is in order, and what is to be mended.

use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::examination::{Found, QueueSettings, Verdict, of_clock, of_queues};

const DAY: DurationMs = DurationMs::from_secs(86_400);

/// As the Terraform sets them.
fn right() -> QueueSettings {
    QueueSettings {
        visibility: DurationMs::from_secs(360),
        kept: DAY.times(4),
        dead_kept: DAY.times(14),
        redrive: Some(("arn:dlq".to_owned(), 6)),
        dead_letters: "arn:dlq".to_owned(),
    }
}

#[test]
fn each_setting_of_the_queues_that_is_wrong_is_named_with_its_cure() {
    let redrive = |to: &str, receives| Some((to.to_owned(), receives));
    let rows: [(&str, QueueSettings, &[&str]); 9] = [
        ("right", right(), &[]),
        (
            "just enough",
            QueueSettings { dead_kept: DAY.times(4).plus(DurationMs::from_secs(1)), ..right() },
            &[],
        ),
        (
            "visibility",
            QueueSettings { visibility: DurationMs::from_secs(359), ..right() },
            &["visibility timeout to 6m"],
        ),
        ("no policy", QueueSettings { redrive: None, ..right() }, &["has no redrive policy"]),
        (
            "another DLQ",
            QueueSettings { redrive: redrive("arn:x", 6), ..right() },
            &["must name the dead-letter queue arn:dlq"],
        ),
        (
            "one receive",
            QueueSettings { redrive: redrive("arn:dlq", 1), ..right() },
            &["set maxReceiveCount to 6"],
        ),
        ("two receives", QueueSettings { redrive: redrive("arn:dlq", 2), ..right() }, &[]),
        (
            "retention",
            QueueSettings { dead_kept: DAY.times(4), ..right() },
            &["keep dead letters for 14 days"],
        ),
        (
            "everything",
            QueueSettings { dead_letters: "arn:dlq".to_owned(), ..QueueSettings::default() },
            &["visibility timeout", "has no redrive policy", "keep dead letters"],
        ),
    ];
    for (name, set, mends) in rows {
        let found = of_queues(&set, DurationMs::from_secs(60));
        let says: Vec<&str> =
            found.iter().filter(|one| one.verdict == Verdict::Mend).map(|one| &*one.says).collect();
        assert_eq!(says.len(), mends.len(), "{name}: {found:?}");
        assert!(says.iter().zip(mends).all(|(says, mend)| says.contains(mend)), "{name}: {says:?}");
        assert_eq!(found.iter().any(|one| one.verdict == Verdict::Fine), mends.is_empty(), "{name}");
    }
}

#[test]
fn clocks_may_be_apart_by_what_a_lease_tolerates() {
    let theirs = TimeMs::from_unix_ms(1_767_225_600_000);
    for (ms, verdict, says) in [
        (0, Verdict::Fine, "agrees with AWS'"),
        (2_999, Verdict::Fine, "agrees with AWS'"),
        (3_001, Verdict::Mend, "ahead of AWS'"),
        (-3_001, Verdict::Mend, "behind AWS'"),
        (-3_600_000, Verdict::Mend, "is 1h00m behind AWS'"),
    ] {
        let found: Found = of_clock(TimeMs::from_unix_ms(theirs.as_unix_ms() + ms), theirs, "AWS'");
        assert_eq!(found.verdict, verdict, "{ms}: {found:?}");
        assert!(found.says.contains(says), "{ms}: {found:?}");
    }
}
