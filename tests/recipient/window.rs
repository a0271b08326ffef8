//! The right to send: looked at again right before the first byte, and never exceeded.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use waybill_domain::address::Locality;
use waybill_domain::attempt::{NotSent, SendWindow, Sending};
use waybill_domain::outcome::{Applied, FailureClass, Outcome};
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::ports::Recipient as _;
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

/// Sends while the clock goes by `asleep_ms` during the look-up, as it does in a frozen function.
async fn send_after_sleep(server: &ScriptedServer, asleep_ms: i64, window: SendWindow) -> Sending {
    let now = Arc::new(AtomicI64::new(T0.as_unix_ms()));
    let clock = {
        let now = Arc::clone(&now);
        TestClock::reading(move || TimeMs::from_unix_ms(now.load(Ordering::SeqCst)))
    };
    let resolver = TestResolver::saying(move |_, _| {
        now.fetch_add(asleep_ms, Ordering::SeqCst);
        Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
    });
    let recipient = recipient_at(clock, Locality::AllowLocal).with_resolver(resolver);
    let url = format!("http://hook.example.test:{}/", server.address().port());
    recipient.send(request_to(&url), window).await
}

async fn good_server() -> ScriptedServer {
    ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap()
}

#[tokio::test]
async fn c45_a_worker_that_slept_past_its_right_connects_perhaps_but_sends_nothing() {
    let window = SendWindow {
        lease_until: T0.plus(DurationMs::from_secs(20)),
        limit_at: T0.plus(DurationMs::from_secs(40)),
        timeout: DurationMs::from_secs(15),
        started_at: T0,
    };
    for (asleep_s, not_sent) in [
        (14, None),
        (15, Some(NotSent::LeaseTooShort)),
        (39, Some(NotSent::LeaseTooShort)),
        (40, Some(NotSent::DeadlinePassed)),
        (4000, Some(NotSent::DeadlinePassed)),
        // A clock that jumped back takes no right away.
        (-4000, None),
    ] {
        let server = good_server().await;
        match (send_after_sleep(&server, asleep_s * 1000, window).await, not_sent) {
            (Sending::NotSent(why), Some(expected)) => assert_eq!(why, expected, "{asleep_s}"),
            (Sending::Attempted(report), None) => assert_eq!(report.outcome, Outcome::Delivered),
            (sending, expected) => panic!("{asleep_s} s: {sending:?} instead of {expected:?}"),
        }
        server.finished(1).await;
        let arrived = server.bytes_received() > 0;
        assert_eq!(arrived, not_sent.is_none(), "{asleep_s}");
    }
}

#[tokio::test]
async fn c45_what_has_no_right_at_the_start_is_not_even_connected_for() {
    let server = good_server().await;
    let late = SendWindow { limit_at: T0, ..window(PLENTY) };
    assert_eq!(send_after_sleep(&server, 0, late).await, Sending::NotSent(NotSent::DeadlinePassed));
    let short = SendWindow { lease_until: T0.plus(DurationMs::from_secs(1)), ..window(PLENTY) };
    assert_eq!(send_after_sleep(&server, 0, short).await, Sending::NotSent(NotSent::LeaseTooShort));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn c111_an_attempt_takes_no_longer_than_the_last_look_at_the_clock_leaves_it() {
    let minute = T0.plus(DurationMs::from_secs(60));
    let by_deadline = SendWindow { limit_at: minute, ..window(DurationMs::from_secs(3600)) };
    let by_timeout = window(DurationMs::from_secs(60));
    for (window, word) in [(by_deadline, "deadline"), (by_timeout, "within 1m00s")] {
        let server = ScriptedServer::start(Script::always(Answer::hang())).await.unwrap();
        // All but 300 ms of the minute go by before the first byte leaves.
        let sending = send_after_sleep(&server, 59_700, window);
        let sending =
            tokio::time::timeout(Duration::from_secs(30), sending).await.expect("the minute is over");
        let Sending::Attempted(report) = sending else { panic!("{sending:?}") };
        assert_eq!(report.outcome, retryable(FailureClass::Timeout, Applied::Unknown));
        assert!(report.note.contains(word), "{}", report.note);
    }
}

#[tokio::test]
async fn the_report_has_the_times_of_the_wall_clock() {
    let server = good_server().await;
    let Sending::Attempted(report) = send_after_sleep(&server, 1234, window(PLENTY)).await else {
        panic!("not sent");
    };
    assert_eq!((report.started_at, report.ended_at), (T0, T0.plus(DurationMs::from_ms(1234))));
}
