//! `GET /healthz`: whether what comes in can be kept.
//!
//! Anybody may ask, and finding it out costs a write. So what was found counts for a moment, and those
//! who ask at the same time are told the same.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use waybill_service::ingest::Answer;
use waybill_service::refusal::Refusal;

use crate::backend::Store;

/// How long what was found counts.
const COUNTS: Duration = Duration::from_secs(1);

/// What was found last.
#[derive(Default)]
pub(super) struct Health {
    found: Mutex<Option<(Instant, Answer)>>,
}

impl Health {
    /// The answer of now, or of a moment ago.
    pub(super) async fn of(&self, store: &Store) -> Answer {
        let mut found = self.found.lock().await;
        if let Some((at, answer)) = &*found
            && at.elapsed() < COUNTS
        {
            return answer.clone();
        }
        let answer = match store.check_write().await {
            Ok(()) => Answer::healthy(),
            Err(error) => Answer::refusing(&Refusal::unhealthy(&error)),
        };
        *found = Some((Instant::now(), answer.clone()));
        answer
    }
}
