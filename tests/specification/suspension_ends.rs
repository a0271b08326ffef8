//! When a suspension ends, and what a relapse is.

use waybill_domain::authority::Book;
use waybill_domain::suspension::Sign::{Answered, Gone, Refused, Took};
use waybill_domain::suspension::{Gate, Health, Heard};

use crate::suspension_steps::Step::*;
use crate::suspension_steps::{AFTER_3, ON_GONE, Step, at, check, token};

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
    let lifted = health.to_enter().unwrap().clone();
    assert!(health.suspension().is_none(), "its end is to be entered");
    health.hear(&rules, &Book::Across, &told("c", Gone, 3), at(4));
    let again = health.suspension().unwrap().clone();
    assert_eq!((&again.id, again.since, again.probes), (&id, at(4), 0));
    assert!(!health.forget(&lifted), "what was seen of it is over, and it goes on");
    assert_eq!(health.suspension(), Some(&again));
    let mut renamed = health.clone();
    renamed.rename(&lifted);
    assert_eq!(renamed, health, "nor is it renamed for what it was");
    renamed.rename(&again);
    assert_ne!(renamed.suspension().unwrap().id, id, "its order was lifted before it began");
    let mut by_another = health.clone();
    by_another.rename(&again);
    assert_eq!(by_another, renamed, "everybody gives it the same name");
    assert!(!by_another.forget(&again), "somebody else renamed it meanwhile: it goes on");
    assert_eq!(by_another, renamed);
    health.hear(&rules, &Book::Across, &told("d", Took, 5), at(6));
    let lifted = health.to_enter().unwrap().clone();
    assert!(health.forget(&lifted) && health.is_empty());
    assert!(health.forget(&lifted), "somebody else was quicker");
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
