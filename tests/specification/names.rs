//! Names that stand in ledgers, metrics, logs and answers: whoever changes one breaks what others have kept.

use waybill_domain::admit::{Left, Suppressed};
use waybill_domain::attempt::{Delay, NotSent, Phase, Witness};
use waybill_domain::capacity::First;
use waybill_domain::delivery::{Delivery, State};
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::hold::HoldReason;
use waybill_domain::outcome::{Applied, FailureClass};
use waybill_domain::suspension::Cause;
use waybill_domain::time::DurationMs;
use waybill_domain::trace::TraceContext;

use crate::build;

/// The names of all values of an enumeration, and that a value's name is what is serialised of it.
pub(crate) fn check<T: serde::Serialize + Copy>(
    values: &[T],
    name: impl Fn(T) -> &'static str,
    expected: &[&str],
) {
    let names: Vec<_> = values.iter().map(|value| name(*value)).collect();
    assert_eq!(names, expected);
    for value in values {
        assert_eq!(serde_json::to_value(value).unwrap(), name(*value));
    }
}

#[test]
fn states_and_reasons_are_called_as_the_design_calls_them() {
    for state in State::ALL {
        assert_eq!(State::parse("state", state.as_str()), Ok(state));
    }
    let unknown = State::parse("state", "lost").unwrap_err();
    let rule = "pending, retryable, succeeded, dead_lettered, expired";
    assert_eq!((&*unknown.fault, &*unknown.rule), ("\"lost\" is not a state", rule));
    check(&State::ALL, State::as_str, &["pending", "retryable", "succeeded", "dead_lettered", "expired"]);
    check(&[Applied::No, Applied::Unknown], Applied::as_str, &["no", "unknown"]);
    check(
        &HoldReason::ALL,
        HoldReason::as_str,
        &["paused", "quarantine", "gate", "suspended", "run_stopped", "budget"],
    );
}

#[test]
fn what_comes_first_and_why_a_destination_is_suspended_is_called_as_it_ever_was() {
    let first = [First::Nothing, First::Page, First::MoreConsumers, First::Shed].map(First::as_str);
    assert_eq!(first, ["nothing", "page", "more_consumers", "shed"]);
    check(
        &[Cause::Refused, Cause::Gone, Cause::Unreachable],
        |cause| cause.as_str(),
        &["refused", "gone", "unreachable"],
    );
}

#[test]
fn what_an_attempt_came_to_is_called_as_it_ever_was() {
    use Phase as P;
    check(
        &[P::Prepare, P::Resolve, P::Connect, P::Tls, P::Request, P::Answer, P::LookUp],
        Phase::as_str,
        &["prepare", "resolve", "connect", "tls", "request", "answer", "look_up"],
    );
    assert_eq!(P::LookUp.to_string(), "look_up");
    check(&[Witness::Worker, Witness::Finder], Witness::as_str, &["worker", "finder"]);
    check(
        &[NotSent::LeaseTooShort, NotSent::DeadlinePassed, NotSent::NoResources],
        NotSent::as_str,
        &["lease_too_short", "deadline_passed", "no_resources"],
    );
}

#[test]
fn what_is_logged_of_a_message_is_called_as_it_ever_was() {
    use Suppressed as S;
    let suppressed = [S::Final, S::DeadLettered, S::Claimed, S::Superseded, S::Held];
    let names = ["final", "dead_lettered", "claim lost", "superseded", "held"];
    assert_eq!(suppressed.map(S::as_str), names);
    assert_eq!(
        [Left::OwnClaim { until: build::T0 }, Left::TimeShort].map(Left::as_str),
        ["own_claim", "time_short"]
    );
}

#[test]
fn a_delay_is_told_with_its_parts() {
    let delay = Delay {
        chosen: build::secs(61),
        jittered: DurationMs::from_ms(1500),
        ceiling: build::secs(4),
        retry_after: None,
        moved_before_limit: false,
    };
    assert_eq!(delay.to_string(), "1m01s: jitter drew 1.5s of at most 4s");
    let asked = Delay { retry_after: Some(build::secs(60)), moved_before_limit: true, ..delay };
    assert_eq!(
        asked.to_string(),
        "1m01s: the recipient asked for 1m00s, and jitter drew 1.5s of at most 4s, moved back so that a last \
         attempt fits before the limit"
    );
}

#[test]
fn the_classes_of_failures_are_called_as_they_ever_were() {
    let expected = [
        "dns",
        "connect",
        "tls",
        "connection_lost",
        "timeout",
        "protocol",
        "rate_limited",
        "unavailable",
        "server_error",
        "conflict",
        "too_early",
        "redirect",
        "payload_rejected",
        "authentication_rejected",
        "endpoint_missing",
        "gone",
        "forbidden_address",
        "payload_missing",
        "secret_unavailable",
        "interrupted",
    ];
    check(FailureClass::ALL, FailureClass::as_str, &expected);
    for class in FailureClass::ALL {
        assert_eq!(class.to_string(), class.as_str());
        assert_eq!(format!("{class:>30}").len(), 30, "a column pads it");
    }
}

#[test]
fn a_dead_letter_s_reason_is_read_by_its_name_or_by_a_failure_s_class() {
    use DeadLetterReason as R;
    let named = [
        R::AttemptsExhausted,
        R::HorizonReached,
        R::RetryAfterPastDeadline,
        R::AmbiguousOutcome,
        R::DestinationRemoved,
        R::PayloadInvalid,
    ];
    let names = [
        "attempts_exhausted",
        "horizon_reached",
        "retry_after_past_deadline",
        "ambiguous_outcome",
        "destination_removed",
        "payload_invalid",
    ];
    check(&named, |reason| reason.as_str(), &names);
    let permanent: Vec<_> = FailureClass::ALL.iter().map(|class| R::Permanent(*class)).collect();
    for reason in named.into_iter().chain(permanent) {
        assert_eq!(R::try_from(reason.to_string()), Ok(reason), "{reason}");
    }
    let unknown = R::try_from("bored".to_owned()).unwrap_err();
    assert_eq!((&*unknown.field, &*unknown.fault), ("reason", "\"bored\" is not a reason"));
}

#[test]
fn a_trace_shows_in_a_delivery_as_its_32_digits() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = TraceContext::read(Some(parent), None);
    let traced = Delivery { trace, ..build::delivery(None) };
    assert_eq!(traced.trace_id().as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(build::delivery(None).trace_id(), None);
}
