//! The status look-up: where it is asked, when it is owed, and what its answer means.

use waybill_domain::address::Locality;
use waybill_domain::attempt::{NotSent, Phase, Sending};
use waybill_domain::delivery::{Record, State};
use waybill_domain::destination::OnAmbiguous;
use waybill_domain::ending::Disposition;
use waybill_domain::identity::{AttemptNumber, DeliveryId, EventId};
use waybill_domain::look_up::{Finding, StatusUrl, is_owed, judge};
use waybill_domain::outcome::{Applied, Outcome, Seen, StatusOverrides, Verdict, classify};
use waybill_domain::settle::{settle, settle_late};

use crate::build::{T0, at, by, claimed, delivery, destination, pending, report, terms};

fn template(text: &str) -> Result<StatusUrl, String> {
    StatusUrl::parse("status_url", text, Locality::PublicOnly).map_err(|invalid| invalid.fault)
}

#[test]
fn of_a_status_url_a_log_sees_the_origin_alone() {
    let url = template("https://pay.example.com:8443/{event_id}?key=1").unwrap();
    assert_eq!(url.origin(), "https://pay.example.com:8443");
    assert_eq!(url.to_string(), "https://pay.example.com:8443/{event_id}?key=1");
}

#[test]
fn only_what_the_recipient_knows_nothing_of_is_sent() {
    let report = report(Seen::Status(200), None, T0);
    assert_eq!(Finding::NotApplied.instead_of_sending(), None);
    assert_eq!(Finding::Settles(report.clone()).instead_of_sending(), Some(Sending::Attempted(report)));
    let too_late = NotSent::DeadlinePassed;
    assert_eq!(Finding::NotAsked(too_late).instead_of_sending(), Some(Sending::NotSent(too_late)));
}

#[test]
fn a_status_url_is_a_recipient_s_url_with_a_place_for_an_id() {
    for (text, fault) in [
        ("https://pay.example.com/status", "has neither {delivery_id} nor {event_id} in it"),
        (
            "https://pay.example.com/{id}/{event_id}",
            "has a brace that belongs to neither {delivery_id} nor {event_id}",
        ),
        (
            "https://pay.example.com/{event_id}}",
            "has a brace that belongs to neither {delivery_id} nor {event_id}",
        ),
        ("https://{event_id}.example.com/", "has a placeholder in its host"),
        ("https://pay.example.com:{event_id}/", "is not a URL"),
        ("http://pay.example.com/{event_id}", "is not HTTPS"),
        ("https://10.0.0.1/{event_id}", "10.0.0.1 is a private address"),
        ("https://me:secret@pay.example.com/{event_id}", "has credentials in it"),
        ("https://pay.example.com/#{event_id}", "has a fragment, which is never sent"),
    ] {
        assert_eq!(template(text), Err(fault.to_owned()), "{text}");
    }
}

#[test]
fn an_id_is_filled_in_percent_encoded_and_never_climbs() {
    let id: DeliveryId = delivery(None).id;
    for (text, event_id, filled) in [
        (
            "https://p.example.com/{event_id}",
            "acme:2026-08-09",
            Some("https://p.example.com/acme%3A2026-08-09"),
        ),
        (
            "https://p.example.com/{event_id}/x",
            "a/b?c#d&e",
            Some("https://p.example.com/a%2Fb%3Fc%23d%26e/x"),
        ),
        ("https://p.example.com/s?e={event_id}", "a b✨", Some("https://p.example.com/s?e=a%20b%E2%9C%A8")),
        ("https://p.example.com/{event_id}", "100%", Some("https://p.example.com/100%25")),
        (
            "https://p.example.com/{event_id}",
            "{delivery_id}",
            Some("https://p.example.com/%7Bdelivery_id%7D"),
        ),
        ("https://p.example.com/v.{event_id}", "..", Some("https://p.example.com/v...")),
        ("https://p.example.com/s?e={event_id}", "..", Some("https://p.example.com/s?e=..")),
        ("https://p.example.com/a/{event_id}/x", "..", None),
        ("https://p.example.com/a/{event_id}/x", ".", None),
    ] {
        let url = template(text).unwrap().fill(&id, &EventId::parse(event_id).unwrap());
        assert_eq!(url.ok().map(|url| url.to_string()).as_deref(), filled, "{text} for {event_id}");
    }
    let url = template("https://p.example.com/{delivery_id}").unwrap();
    let filled = url.fill(&id, &EventId::parse("e").unwrap()).unwrap().to_string();
    assert_eq!(filled, format!("https://p.example.com/{id}"));
}

#[test]
fn an_answer_is_yes_no_or_a_doubt_that_stays() {
    for status in [200, 202, 204, 299] {
        assert_eq!(judge(Seen::Status(status)), Some(Outcome::Delivered), "{status}");
    }
    assert_eq!(judge(Seen::Status(404)), None, "not applied: send");
    let doubts = [301, 400, 401, 405, 410, 429, 500, 503].map(Seen::Status);
    let none = [Seen::NameNotResolved, Seen::AddressForbidden, Seen::NotConnected, Seen::AnswerTimedOut];
    for seen in doubts.into_iter().chain(none) {
        let Some(Outcome::Failed(doubt)) = judge(seen) else { panic!("{seen:?} is no doubt") };
        let Outcome::Failed(as_usual) = classify(seen, &StatusOverrides::new()) else { panic!("{seen:?}") };
        assert_eq!(doubt.class, as_usual.class, "{seen:?}");
        assert_eq!((doubt.verdict, doubt.applied), (Verdict::Retryable, Applied::Unknown), "{seen:?}");
    }
}

/// The record after attempt 1 saw this.
fn after(seen: Seen) -> Record {
    let claimed = claimed(&pending(None), T0);
    settle(&claimed, &report(seen, None, T0), &terms(OnAmbiguous::Query), &by("m1", "t1", T0), 0.0)
        .unwrap()
        .change
        .into_after()
}

#[test]
fn a_look_up_is_owed_only_where_an_attempt_may_have_been_applied_and_the_recipient_can_be_asked() {
    let mut asked = destination();
    asked.on_ambiguous = OnAmbiguous::Query;
    for (says, record, owed) in [
        ("no attempt yet", pending(None), false),
        ("answered 503: not applied", after(Seen::Status(503)), false),
        ("no answer", after(Seen::AnswerTimedOut), true),
        ("answered 500: who knows", after(Seen::Status(500)), true),
        ("never connected", after(Seen::NotConnected), false),
    ] {
        assert_eq!(is_owed(&record, &asked), owed, "{says}");
        assert!(!is_owed(&record, &destination()), "{says}, and on_ambiguous is retry");
    }
}

#[test]
fn a_confirmation_is_a_success_that_says_how_it_is_known() {
    let claimed_again = claimed(&after(Seen::AnswerTimedOut), at(60));
    let mut confirmed = report(Seen::Status(200), None, at(60));
    confirmed.phase = Phase::LookUp;
    let (terms, by) = (terms(OnAmbiguous::Query), by("m1", "t1", at(61)));
    let settled = settle(&claimed_again, &confirmed, &terms, &by, 0.0).unwrap();
    assert_eq!(settled.attempt, None, "no evidence of a failure");
    let record = settled.change.into_after();
    let number = AttemptNumber::after(1);
    let how = |late| Some(Disposition::Delivered { attempt: number, late, by_look_up: true });
    assert_eq!((record.state, record.disposition), (State::Succeeded, how(false)));

    // The claim was lost meanwhile, and somebody else concluded: the effect is real all the same.
    let late = settle_late(&after(Seen::AnswerTimedOut), number, &confirmed, &terms, &by).unwrap();
    assert_eq!(late.after().disposition, how(true));
}
