//! What a destination goes through, one after the other: rows that one `check` reads.

use waybill_domain::authority::Book;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId, WriteToken};
use waybill_domain::suspension::{CHOSEN_AHEAD, Gate, Health, Heard, Sign, SuspendRules};
use waybill_domain::time::TimeMs;

use crate::build::{T0, secs};

use Step::*;

pub(crate) fn delivery(name: &str) -> DeliveryId {
    let tenant = TenantId::parse("acme").unwrap();
    DeliveryId::derive(&tenant, &EventId::parse(name).unwrap(), &DestinationName::parse("books").unwrap())
}

pub(crate) fn token(name: &str) -> WriteToken {
    WriteToken::parse(name).unwrap()
}

pub(crate) fn at(seconds: u64) -> TimeMs {
    T0.plus(secs(seconds))
}

/// What happens, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
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

pub(crate) const AFTER_3: SuspendRules = SuspendRules { after: Some(3), on_gone: false };
pub(crate) const ON_GONE: SuspendRules = SuspendRules { after: None, on_gone: true };

#[track_caller]
pub(crate) fn check(what: &str, rules: SuspendRules, steps: &[Step]) {
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
                let seen = health.to_enter().expect("a suspension").clone();
                assert!(health.forget(&seen), "{what}");
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
