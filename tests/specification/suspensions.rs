//! When a destination is suspended, and what that costs where it is not.

use waybill_domain::attempt::{Phase, SendReport};
use waybill_domain::authority::Book;
use waybill_domain::budget::{Answer, Budget, Usage, Wanted};
use waybill_domain::outcome::{Seen, classify};
use waybill_domain::suspension::Sign::{Answered, Gone, Refused, Took, Unreachable};
use waybill_domain::suspension::{Health, Heard, Sign, SuspendRules};
use waybill_domain::time::DurationMs;

use crate::build::{T0, secs};
use crate::suspension_steps::Step::*;
use crate::suspension_steps::{AFTER_3, ON_GONE, at, check, delivery, token};

#[test]
fn what_an_attempt_tells_of_its_destination() {
    let rows = [
        (Seen::Status(200), Some(Took)),
        (Seen::Status(401), Some(Refused)),
        (Seen::Status(403), Some(Refused)),
        (Seen::Status(407), Some(Refused)),
        (Seen::Status(410), Some(Gone)),
        (Seen::Status(400), Some(Answered)),
        (Seen::Status(404), Some(Answered)),
        (Seen::Status(408), Some(Answered)),
        (Seen::Status(429), Some(Answered)),
        (Seen::Status(503), Some(Answered)),
        (Seen::Status(504), Some(Answered)),
        (Seen::Status(302), Some(Answered)),
        (Seen::NameNotResolved, Some(Unreachable)),
        (Seen::NotConnected, Some(Unreachable)),
        (Seen::TlsFailed, Some(Unreachable)),
        (Seen::LostBeforeRequest, Some(Unreachable)),
        (Seen::LostAfterRequest, Some(Unreachable)),
        (Seen::AnswerTimedOut, Some(Unreachable)),
        (Seen::AnswerMalformed, Some(Unreachable)),
        // Ours to mend, or nobody's.
        (Seen::AddressForbidden, None),
        (Seen::PayloadMissing, None),
        (Seen::SecretUnavailable, None),
        (Seen::RequestUnwritable, None),
    ];
    for (seen, expected) in rows {
        let status = if let Seen::Status(status) = seen { Some(status) } else { None };
        let mut report = SendReport {
            outcome: classify(seen, &Default::default()),
            phase: Phase::Answer,
            status,
            retry_after: None,
            excerpt: None,
            note: String::new(),
            started_at: T0,
            ended_at: T0,
        };
        assert_eq!(Sign::of(&report), expected, "{seen:?}");
        report.phase = Phase::LookUp;
        assert_eq!(Sign::of(&report), None, "{seen:?}: a look-up asks somewhere else");
    }
}

#[test]
fn so_many_failures_of_one_kind_in_a_row_suspend() {
    let none = Suspended(None);
    check(
        "refused three times",
        AFTER_3,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Row(2),
            none,
            Hear("c", Some(Refused)),
            Suspended(Some(3)),
        ],
    );
    check(
        "not reached three times",
        AFTER_3,
        &[
            Hear("a", Some(Unreachable)),
            Hear("b", Some(Unreachable)),
            none,
            Hear("c", Some(Unreachable)),
            Suspended(Some(3)),
        ],
    );
    check(
        "a success begins the row anew",
        AFTER_3,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Hear("c", Some(Took)),
            Row(0),
            Hear("d", Some(Refused)),
            Row(1),
            none,
        ],
    );
    check(
        "so does any other answer, for that was no refusal, and came over the wire",
        AFTER_3,
        &[Hear("a", Some(Refused)), Hear("b", Some(Refused)), Hear("c", Some(Answered)), Row(0), none],
    );
    check(
        "failures of two kinds are two rows",
        AFTER_3,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Hear("c", Some(Unreachable)),
            Row(1),
            Hear("d", Some(Refused)),
            Row(1),
            none,
        ],
    );
    check(
        "what was never sent tells nothing",
        AFTER_3,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Hear("c", None),
            Row(2),
            Hear("d", Some(Refused)),
            Suspended(Some(3)),
        ],
    );
}

#[test]
fn a_destination_is_suspended_by_rules_that_name_something() {
    let rules = |after, on_gone| Some(SuspendRules { after, on_gone });
    let rows = [
        (None, false, None),
        (None, true, rules(None, true)),
        (Some(3), false, rules(Some(3), false)),
        (Some(3), true, rules(Some(3), true)),
    ];
    for (after, on_gone, expected) in rows {
        assert_eq!(SuspendRules::of(after, on_gone), expected, "{after:?} {on_gone}");
    }
}

/// A store's client may repeat a write of its own, late: a row remembers the last sixteen that it counted.
#[test]
fn the_last_sixteen_failures_are_counted_once_however_often_they_are_told() {
    let rules = SuspendRules { after: Some(100), on_gone: false };
    let mut health = Health::default();
    let mut tell = |name: &str| {
        let heard = Heard { token: token(name), sign: Some(Refused), started_at: T0 };
        health.hear(&rules, &Book::Across, &heard, T0);
        health.failures_in_a_row()
    };
    let names: Vec<String> = (1..=17).map(|n| format!("t{n}")).collect();
    for (name, counted) in names[..16].iter().zip(1..) {
        assert_eq!(tell(name), counted);
    }
    assert_eq!((tell("t1"), tell("t16")), (16, 16));
    assert_eq!((tell("t17"), tell("t2"), tell("t17")), (17, 17, 17));
}

#[test]
fn a_410_suspends_at_once_where_it_is_configured_so_and_counts_for_nothing_where_not() {
    check("at once", ON_GONE, &[Hear("a", Some(Gone)), Suspended(Some(1))]);
    check(
        "nothing else does, without a number",
        ON_GONE,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Hear("c", Some(Refused)),
            Hear("d", Some(Refused)),
            Suspended(None),
        ],
    );
    check(
        "as a dead letter it is about a delivery",
        AFTER_3,
        &[Hear("a", Some(Gone)), Hear("b", Some(Gone)), Hear("c", Some(Gone)), Row(0), Suspended(None)],
    );
}

#[test]
fn a_healthy_destination_without_a_budget_costs_no_write() {
    let mut usage = Usage::default();
    let wanted = [Wanted { token: token("a"), delivery: delivery("a"), is_redrive: false }];
    let slot = Answer::Slot { until: at(25), is_probe: false };
    assert_eq!(usage.answer(&Budget::UNBOUNDED, &wanted, T0, secs(25)), [slot]);
    usage.release(&[token("a")]);
    let heard = Heard { token: token("a"), sign: Some(Took), started_at: T0 };
    usage.health.hear(&AFTER_3, &Book::Across, &heard, T0.plus(DurationMs::from_ms(5)));
    assert_eq!(usage, Usage::default());
}
