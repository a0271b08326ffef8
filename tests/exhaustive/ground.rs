//! What never changes in a search: the delivery's terms, and every record and attempt that was seen.

use std::collections::HashMap;

use waybill_domain::attempt::Attempt;
use waybill_domain::delivery::{Delivery, PayloadFacts, Record};
use waybill_domain::destination::Destination;
use waybill_domain::envelope::WakeUp;
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::{
    AttemptNumber, ConfigRevision, DeliveryId, EventId, MessageId, TenantId, WriteToken,
};
use waybill_domain::policy::{Backoff, PolicyTerms};
use waybill_domain::repair::LookRules;
use waybill_domain::time::DurationMs;
use waybill_testkit::simulation::world::{TENANT, destination, event_type};

use crate::scopes::{Bounds, Plant, Terms};
use crate::state::{Ghost, Helper, Id, Message, RUN, State, T0, Worker};

/// What never changes in a search, and what was interned.
pub(crate) struct Ground {
    pub(crate) destination: Destination,
    pub(crate) look: LookRules,
    pub(crate) plant: Option<Plant>,
    records: Vec<Record>,
    records_by: HashMap<String, Id>,
    attempts: Vec<Attempt>,
    attempts_by: HashMap<String, Id>,
    wakeup: WakeUp,
}

impl Ground {
    /// The ground, and the state in which the delivery was just accepted.
    pub(crate) fn new(terms: Terms, bounds: Bounds, plant: Option<Plant>) -> (Self, State) {
        let backoff =
            Backoff { base: DurationMs::from_secs(10), factor: 1.0, max: DurationMs::from_secs(10) };
        let policy = PolicyTerms {
            max_attempts: terms.max_attempts,
            backoff,
            horizon: DurationMs::from_secs(1800),
            ..PolicyTerms::default()
        };
        let destination = destination("books", policy);
        let look = LookRules {
            queue_window: DurationMs::from_secs(900),
            stale_after: DurationMs::from_secs(300),
            rescue_window: DurationMs::from_secs(600),
        };
        let tenant = TenantId::parse(TENANT).unwrap();
        let event_id = EventId::parse("e1").unwrap();
        let delivery = Delivery {
            id: DeliveryId::derive(&tenant, &event_id, &destination.name),
            tenant,
            event_id,
            event_type: event_type(false),
            destination: destination.name.clone(),
            scope: None,
            payload: PayloadFacts {
                sha256: String::new(),
                length: 0,
                content_type: "application/json".to_owned(),
                version: None,
            },
            first_queued_at: T0,
            not_before: None,
            deadline: terms.deadline_s.map(|s| T0.plus(DurationMs::from_secs(s))),
            trace: None,
            policy: None,
            newer: Default::default(),
        };
        let record = Record::new(delivery, &destination.policy, config_revision(), &look);
        let mut ground = Self {
            wakeup: WakeUp::for_next_attempt(&record),
            destination,
            look,
            plant,
            records: Vec::new(),
            records_by: HashMap::new(),
            attempts: Vec::new(),
            attempts_by: HashMap::new(),
        };
        let mut state = State {
            now: T0,
            record: ground.keep(record),
            evidence: Vec::new(),
            messages: Vec::new(),
            is_buried: false,
            is_applied: false,
            sent: 0,
            is_held: false,
            is_stopped: false,
            workers: [Worker::Idle; 2],
            reconciler: Helper::Idle,
            operator: Helper::Idle,
            left: bounds,
            ghost: Ghost { is_excused: !terms.is_sent, orphaned_by: None, works_since: 0 },
        };
        if terms.is_sent {
            state.send(&ground, state.record, DurationMs::ZERO);
        }
        (ground, state)
    }

    pub(crate) fn record(&self, id: Id) -> &Record {
        &self.records[id as usize]
    }

    pub(crate) fn attempt(&self, id: Id) -> &Attempt {
        &self.attempts[id as usize]
    }

    pub(crate) fn keep(&mut self, record: Record) -> Id {
        let r = &record;
        let key = format!(
            "{}{:?}{:?}{:?}{:?}",
            r.revision,
            (r.state, r.due_at, r.attempts_made, r.attempt_limit, r.horizon_at, r.redrives, r.ended_at),
            (&r.claim, &r.hold, &r.copy, &r.settled_token, r.dlq_told, r.look_at, r.looks, &r.disposition),
            r.last_failure.as_ref().map(|last| (last.attempt, last.at, last.failure, &last.note)),
            (&r.config_revision, r.acknowledged_after),
        );
        let next = self.records.len() as Id;
        let id = *self.records_by.entry(key).or_insert(next);
        match id == next {
            true => self.records.push(record),
            false => assert_eq!(self.records[id as usize], record, "the key leaves something out"),
        }
        id
    }

    pub(crate) fn keep_attempt(&mut self, attempt: Attempt) -> Id {
        let next = self.attempts.len() as Id;
        let id = *self.attempts_by.entry(format!("{attempt:?}")).or_insert(next);
        if id == next {
            self.attempts.push(attempt);
        }
        id
    }

    pub(crate) fn wakeup(&self, message: &Message) -> WakeUp {
        let attempt = AttemptNumber::after(message.attempt - 1);
        WakeUp { attempt, due_at: message.due_at, ..self.wakeup.clone() }
    }

    pub(crate) fn holds(&self, is_held: bool, is_stopped: bool) -> Vec<HoldRule> {
        let hold = is_held.then(|| HoldRule::Destination(self.destination.name.clone()));
        let run = is_stopped.then(|| HoldRule::Run { run: RUN.to_owned(), tenant: None });
        hold.into_iter().chain(run).collect()
    }
}

pub(crate) fn config_revision() -> ConfigRevision {
    ConfigRevision::parse("cfg-1").unwrap()
}

pub(crate) fn message_id(id: u8) -> MessageId {
    MessageId::parse(format!("m{id}")).unwrap()
}

pub(crate) fn token(text: String) -> WriteToken {
    WriteToken::parse(text).unwrap()
}
