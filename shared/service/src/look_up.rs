//! Ask, then send: where the recipient may have applied an earlier attempt and can be asked, its
//! answer comes before the next request.

use waybill_domain::attempt::{Phase, SendReport, SendWindow, Sending};
use waybill_domain::delivery::Record;
use waybill_domain::look_up::{Finding, is_owed, judge};
use waybill_domain::outcome::{Outcome, Seen};

use crate::ports::{Recipient, Request};

/// Makes the claimed attempt: a look-up where one is owed, and the request unless it settles the attempt.
pub(crate) async fn ask_then_send<R: Recipient>(
    recipient: &R,
    claimed: &Record,
    request: Request,
    window: SendWindow,
) -> Sending {
    if is_owed(claimed, &request.destination) {
        let finding = ask(recipient, &request, window).await;
        if let Some(instead) = finding.instead_of_sending() {
            return instead;
        }
        tracing::info!(
            delivery_id = %request.delivery_id, tenant = %claimed.delivery.tenant,
            attempt = request.attempt.get(), "looked up: not applied"
        );
    }
    recipient.send(request, window).await
}

async fn ask<R: Recipient>(recipient: &R, request: &Request, window: SendWindow) -> Finding {
    let Some(template) = &request.destination.status_url else {
        return unaskable(window, "the destination has no status_url".to_owned());
    };
    match template.fill(&request.delivery_id, &request.event_id) {
        Ok(url) => recipient.look_up(request.clone(), url, window).await,
        Err(invalid) => unaskable(window, format!("status look-up: {invalid}")),
    }
}

/// Nobody can be asked, so the doubt stays.
fn unaskable(window: SendWindow, note: String) -> Finding {
    let outcome = judge(Seen::RequestUnwritable);
    outcome.map_or(Finding::NotApplied, |outcome: Outcome| {
        Finding::Settles(SendReport {
            outcome,
            phase: Phase::LookUp,
            status: None,
            retry_after: None,
            excerpt: None,
            note,
            started_at: window.started_at,
            ended_at: window.started_at,
        })
    })
}
