//! What a recipient's answers to test events say of it, question by question.

use waybill_domain::outcome::FailureClass;
use waybill_domain::probe::{Finding, Heard, Opinion, Trial, judge};
use waybill_domain::time::DurationMs;

use crate::build::secs;

use Opinion::{Bad, Good, Unclear};

const MS: DurationMs = DurationMs::from_ms(1);

/// Answered with this status after a second.
fn answered(trial: Trial, status: u16) -> Heard {
    let delivered = (200..300).contains(&status);
    let class = (!delivered).then_some(FailureClass::PayloadRejected);
    Heard { trial, delivered, status: Some(status), class, took: secs(1), note: format!("said {status}") }
}

/// Not answered at all, for this reason.
fn silent(trial: Trial, class: Option<FailureClass>) -> Heard {
    Heard { trial, delivered: false, status: None, class, took: secs(15), note: "no answer".to_owned() }
}

/// All as it should be.
fn perfect() -> [Heard; 4] {
    Trial::ALL.map(|trial| match trial {
        Trial::Good | Trial::Repeat => answered(trial, 200),
        Trial::WrongSignature | Trial::OldTimestamp => answered(trial, 401),
    })
}

/// The same but for the answer to one of them.
fn but(other: Heard) -> Vec<Heard> {
    perfect()
        .into_iter()
        .map(|heard| if heard.trial == other.trial { other.clone() } else { heard })
        .collect()
}

fn findings(heard: &[Heard]) -> [Finding; 5] {
    judge(heard, secs(15))
}

#[test]
fn five_questions_are_answered_of_a_recipient() {
    let opinions = |heard: &[Heard]| findings(heard).map(|finding| finding.opinion);
    let table = [
        ("as it should be", perfect().to_vec(), [Good; 5]),
        // Who does not take the good event shows nothing by refusing the others.
        (
            "refuses all",
            Trial::ALL.map(|t| answered(t, 401)).to_vec(),
            [Bad, Good, Unclear, Unclear, Unclear],
        ),
        ("never answers", vec![silent(Trial::Good, None)], [Bad, Unclear, Unclear, Unclear, Unclear]),
        ("was not asked", vec![], [Unclear; 5]),
        ("refuses a repeat", but(answered(Trial::Repeat, 409)), [Good, Good, Bad, Good, Good]),
        (
            "takes what is signed wrongly",
            but(answered(Trial::WrongSignature, 204)),
            [Good, Good, Good, Bad, Good],
        ),
        ("takes what is old", but(answered(Trial::OldTimestamp, 200)), [Good, Good, Good, Good, Bad]),
    ];
    for (what, heard, expected) in table {
        assert_eq!(opinions(&heard), expected, "{what}");
    }
    let checks = findings(&perfect()).map(|finding| finding.check);
    let expected = [
        "takes a good event",
        "answers in time",
        "takes a repeated ID",
        "refuses a wrong signature",
        "refuses an old event",
    ];
    assert_eq!(checks, expected);
    assert!(findings(&perfect()).iter().all(|finding| finding.mend.is_none()), "nothing to be mended");
    let unasked = findings(&[]);
    assert_eq!(
        (&*unasked[0].found, &*unasked[2].found, &*unasked[3].found),
        ("not asked", "not asked", "not asked")
    );
}

#[test]
fn a_refusal_is_a_status_that_says_so() {
    let rows = [
        (200, Bad, Some("verify")),
        (299, Bad, Some("verify")),
        (302, Unclear, Some("401")),
        (400, Good, None),
        (401, Good, None),
        (499, Good, None),
        (408, Unclear, None),
        (425, Unclear, None),
        (429, Unclear, None),
        (500, Unclear, Some("401")),
    ];
    for (status, opinion, mend) in rows {
        let finding = findings(&but(answered(Trial::WrongSignature, status)))[3].clone();
        assert_eq!((finding.opinion, finding.found), (opinion, format!("answered {status}")), "{status}");
        assert_eq!(finding.mend.is_some(), mend.is_some(), "{status}");
        assert!(finding.mend.is_none_or(|text| text.contains(mend.unwrap())), "{status}: {:?}", finding.mend);
    }
    let nothing = findings(&but(silent(Trial::WrongSignature, Some(FailureClass::Timeout))))[3].clone();
    assert_eq!((nothing.opinion, &*nothing.found), (Unclear, "no answer"));
}

#[test]
fn half_of_the_timeout_is_left_for_bad_days() {
    let took = |trial, took| Heard { took, ..answered(trial, 200) };
    let half = DurationMs::from_ms(7500);
    let table = [
        ("half of it", but(took(Trial::Good, half)), Good),
        ("a little more", but(took(Trial::Good, half.plus(MS))), Bad),
        ("nearly all of it", but(took(Trial::Good, secs(13))), Bad),
        ("the repeat", but(took(Trial::Repeat, half.plus(MS))), Bad),
        ("what was refused does not count", but(took(Trial::OldTimestamp, secs(14))), Good),
        ("a repeat without an answer does not count", but(silent(Trial::Repeat, None)), Good),
        ("no answer came", vec![silent(Trial::Good, Some(FailureClass::Timeout))], Unclear),
        ("a slow refusal is an answer", vec![Heard { took: secs(8), ..answered(Trial::Good, 503) }], Bad),
    ];
    for (what, heard, opinion) in table {
        assert_eq!(findings(&heard)[1].opinion, opinion, "{what}");
    }
    let slow = findings(&but(took(Trial::Good, secs(8))))[1].clone();
    assert_eq!((&*slow.found, slow.mend.is_some()), ("the slowest answer took 8s of 15s", true));
}

#[test]
fn who_does_not_take_the_good_event_is_told_what_to_mend() {
    use FailureClass as C;
    let rows = [
        (None, "ask again"),
        (Some(C::Dns), "DNS"),
        (Some(C::Connect), "port"),
        (Some(C::Tls), "certificate"),
        (Some(C::ForbiddenAddress), "--allow-local"),
        (Some(C::SecretUnavailable), "set the secret"),
        (Some(C::Redirect), "redirects are not followed"),
        (Some(C::EndpointMissing), "take POST there"),
        (Some(C::Unavailable), "answer 2xx"),
    ];
    for (class, mend) in rows {
        let [taken, ..] = findings(&[silent(Trial::Good, class)]);
        assert_eq!((taken.opinion, &*taken.found), (Bad, "no answer"), "{class:?}");
        assert!(taken.mend.is_some_and(|text| text.contains(mend)), "{class:?}: {:?}", taken.mend);
    }
}

#[test]
fn an_opinion_is_a_word() {
    assert_eq!([Good, Bad, Unclear].map(Opinion::as_str), ["good", "bad", "unclear"]);
}
