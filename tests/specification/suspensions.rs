//! When a destination is suspended, what gets through then, and when that ends.

use waybill_domain::attempt::{Phase, SendReport};
use waybill_domain::authority::Book;
use waybill_domain::budget::{Answer, Budget, Usage, Wanted};
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId, WriteToken};
use waybill_domain::outcome::{Seen, classify};
use waybill_domain::suspension::{CHOSEN_AHEAD, Gate, Health, Heard, Sign, SuspendRules};
use waybill_domain::time::{DurationMs, TimeMs};

use crate::build::{T0, secs};

fn delivery(name: &str) -> DeliveryId {
    let tenant = TenantId::parse("acme").unwrap();
    DeliveryId::derive(&tenant, &EventId::parse(name).unwrap(), &DestinationName::parse("books").unwrap())
}

fn token(name: &str) -> WriteToken {
    WriteToken::parse(name).unwrap()
}

fn at(seconds: u64) -> TimeMs {
    T0.plus(secs(seconds))
}

/// What happens, one after the other.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many seconds after the beginning.
    At(u64),
    /// The attempt under this token, begun now, is over.
    Hear(&'static str, Option<Sign>),
    /// The same, begun so many seconds after the beginning.
    HearOf(&'static str, u64, Option<Sign>),
    /// So many failures stand in a row.
    Row(u32),
    /// It is suspended after so many failures; none: it is not.
    Suspended(Option<u32>),
    /// This delivery asks, under a token of the same name.
    Gate(&'static str, Gate),
    /// The probe begins, to be over so many seconds after the beginning.
    Begin(&'static str, u64),
    /// When a probe that is chosen now goes, in seconds from the beginning.
    Next(Option<u64>),
    /// A held one is chosen, to go then.
    Choose(&'static str, u64),
    /// Its end is entered, or a person lifted it.
    Forget,
}

use Sign::{Answered, Gone, Refused, Took, Unreachable};
use Step::*;

const AFTER_3: SuspendRules = SuspendRules { after: Some(3), on_gone: false };
const ON_GONE: SuspendRules = SuspendRules { after: None, on_gone: true };

#[track_caller]
fn check(what: &str, rules: SuspendRules, steps: &[Step]) {
    let (mut health, mut now) = (Health::default(), T0);
    for step in steps {
        match *step {
            At(seconds) => now = at(seconds),
            Hear(name, sign) => {
                hear(&mut health, rules, Heard { token: token(name), sign, started_at: now }, now)
            }
            HearOf(name, from, sign) => {
                hear(&mut health, rules, Heard { token: token(name), sign, started_at: at(from) }, now);
            }
            Row(failures) => assert_eq!(health.failures_in_a_row(), failures, "{what}: {step:?}"),
            Suspended(failures) => {
                assert_eq!(health.suspension().map(|it| it.failures), failures, "{what}: {step:?}");
            }
            Step::Gate(name, gate) => {
                assert_eq!(health.gate(&delivery(name), &token(name), now), gate, "{what}: {step:?}");
            }
            Begin(name, until) => health.begin_probe(&delivery(name), &token(name), at(until)),
            Next(seconds) => {
                assert_eq!(health.next_probe(now, CHOSEN_AHEAD), seconds.map(at), "{what}: {step:?}")
            }
            Choose(name, seconds) => health.choose_probe(&delivery(name), at(seconds)),
            Forget => {
                let id = health.to_enter().expect("a suspension").id.clone();
                health.forget(&id);
            }
        }
    }
}

/// Whatever is heard may be heard once more: a store's client repeats a write of its own.
fn hear(health: &mut Health, rules: SuspendRules, heard: Heard, now: TimeMs) {
    let is_heeded = health.heeds(&rules, &heard);
    let before = health.clone();
    health.hear(&rules, &Book::Across, &heard, now);
    assert_eq!(is_heeded, *health != before, "{heard:?} of {before:?}");
    let once = health.clone();
    health.hear(&rules, &Book::Across, &heard, now);
    assert_eq!(*health, once, "{heard:?} changes nothing the second time");
}

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

/// A probe that fails, begun as soon as it may, takes a second. The pauses between are exact.
#[test]
fn probes_go_one_at_a_time_with_pauses_that_double_up_to_an_hour() {
    let mut now = 10;
    let mut steps = vec![At(now), Hear("a", Some(Gone))];
    let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for (name, pause) in names.into_iter().zip([60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]) {
        let due = now + pause;
        steps.extend([At(due - 61), Next(None), At(due - 60), Next(Some(due)), At(due - 1)]);
        steps.extend([
            Step::Gate(name, Gate::Shut),
            At(due),
            Step::Gate(name, Gate::Probe),
            Begin(name, due + 20),
        ]);
        steps.extend([Step::Gate("z", Gate::Shut), Step::Gate(name, Gate::Probe), Next(None)]);
        now = due + 1;
        steps.extend([At(now), Hear(name, Some(Gone)), Suspended(Some(1))]);
    }
    check("pauses", ON_GONE, &steps);
}

#[test]
fn a_probe_that_was_chosen_goes_before_all_others() {
    let suspended = Hear("a", Some(Gone));
    check(
        "nobody overtakes it",
        ON_GONE,
        &[
            suspended,
            At(10),
            Choose("held", 60),
            Next(None),
            At(60),
            Step::Gate("new", Gate::Shut),
            Step::Gate("held", Gate::Probe),
        ],
    );
    check(
        "it does not come: after half a minute anybody may",
        ON_GONE,
        &[
            suspended,
            At(10),
            Choose("held", 60),
            At(89),
            Step::Gate("new", Gate::Shut),
            At(90),
            Step::Gate("new", Gate::Probe),
            Next(Some(90)),
        ],
    );
    check(
        "its worker dies: the next waits as if it had failed",
        ON_GONE,
        &[
            suspended,
            At(60),
            Begin("b", 80),
            At(80),
            Step::Gate("c", Gate::Shut),
            Next(None),
            At(199),
            Step::Gate("c", Gate::Shut),
            At(200),
            Step::Gate("c", Gate::Probe),
        ],
    );
    check(
        "nothing was sent: nothing was learnt",
        ON_GONE,
        &[
            suspended,
            At(60),
            Begin("b", 80),
            At(61),
            Hear("b", None),
            At(120),
            Step::Gate("c", Gate::Shut),
            At(121),
            Step::Gate("c", Gate::Probe),
        ],
    );
}

#[test]
fn the_first_success_lifts_it_and_nothing_else_does() {
    let suspended = Hear("a", Some(Gone));
    check(
        "a probe's",
        ON_GONE,
        &[
            suspended,
            At(60),
            Begin("b", 80),
            At(61),
            Hear("b", Some(Took)),
            Suspended(None),
            Step::Gate("c", Gate::Open),
        ],
    );
    check(
        "a success of before does not",
        ON_GONE,
        &[
            At(5),
            suspended,
            At(9),
            HearOf("old", 1, Some(Took)),
            Suspended(Some(1)),
            HearOf("same", 5, Some(Took)),
            Suspended(Some(1)),
        ],
    );
    check(
        "one of a worker that had not seen it does: it was taken",
        ON_GONE,
        &[suspended, At(9), HearOf("new", 3, Some(Took)), Suspended(None)],
    );
    check(
        "a probe that is answered otherwise was not taken",
        ON_GONE,
        &[
            suspended,
            At(60),
            Begin("b", 80),
            At(61),
            Hear("b", Some(Answered)),
            Suspended(Some(1)),
            Next(None),
        ],
    );
    check(
        "what else fails meanwhile moves no pause",
        ON_GONE,
        &[
            suspended,
            At(5),
            Hear("b", Some(Refused)),
            Hear("c", Some(Gone)),
            Suspended(Some(1)),
            At(60),
            Step::Gate("d", Gate::Probe),
        ],
    );
}

#[test]
fn a_relapse_before_its_end_is_entered_is_the_same_suspension() {
    let (mut health, rules) = (Health::default(), ON_GONE);
    let told = |name: &str, sign, from| Heard { token: token(name), sign: Some(sign), started_at: at(from) };
    health.hear(&rules, &Book::Across, &told("a", Gone, 0), at(0));
    let id = health.to_enter().unwrap().id.clone();
    health.hear(&rules, &Book::Across, &told("b", Took, 1), at(2));
    assert!(health.suspension().is_none() && health.to_enter().is_some(), "its end is to be entered");
    health.hear(&rules, &Book::Across, &told("c", Gone, 3), at(4));
    let again = health.suspension().unwrap().clone();
    assert_eq!((&again.id, again.since, again.probes), (&id, at(4), 0));
    health.hear(&rules, &Book::Across, &told("d", Took, 5), at(6));
    health.forget(&id);
    assert!(health.is_empty());
    health.hear(&rules, &Book::Across, &told("e", Gone, 7), at(8));
    assert_ne!(health.suspension().unwrap().id, id, "another one");
    check(
        "a person's lift begins the row anew",
        AFTER_3,
        &[
            Hear("a", Some(Refused)),
            Hear("b", Some(Refused)),
            Hear("c", Some(Refused)),
            Forget,
            Row(0),
            Suspended(None),
        ],
    );
}

#[test]
fn while_it_is_suspended_the_budget_gives_a_slot_to_the_probe_alone() {
    let wanted = |name: &str| Wanted { token: token(name), delivery: delivery(name), is_redrive: false };
    let (lease, all) = (secs(25), [wanted("b"), wanted("c")]);
    for budget in [Budget::of(Some(8), None).unwrap(), Budget::UNBOUNDED] {
        let mut usage = Usage::default();
        let heard = Heard { token: token("a"), sign: Some(Gone), started_at: T0 };
        usage.health.hear(&ON_GONE, &Book::Across, &heard, T0);
        assert_eq!(usage.answer(&budget, &all, at(1), lease), [Answer::Suspended, Answer::Suspended]);
        assert!(usage.is_wanted(at(1)), "whoever lifts it looks for what is held");
        let until = at(60).plus(lease);
        let slot = Answer::Slot { until, is_probe: true };
        assert_eq!(usage.answer(&budget, &all, at(60), lease), [slot, Answer::Suspended]);
        // Asked once more, nothing changes.
        let before = usage.clone();
        assert_eq!(usage.answer(&budget, &all, at(60), lease), [slot, Answer::Suspended]);
        assert_eq!(usage, before);
    }
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
