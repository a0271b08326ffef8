//! What gets through to a suspended destination: one probe at a time.

use waybill_domain::authority::Book;
use waybill_domain::budget::{Answer, Budget, Usage, Wanted};
use waybill_domain::suspension::Sign::Gone;
use waybill_domain::suspension::{Gate, Heard};

use crate::build::{T0, secs};
use crate::suspension_steps::Step::*;
use crate::suspension_steps::{ON_GONE, Step, at, check, delivery, token};

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
