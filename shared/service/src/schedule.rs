//! Schedules at work: publishes every closed window that has no delivery yet, and gets out of the way.
//!
//! What is due follows from the configuration and the time; what was done is asked of the ledger, never of
//! a history of triggers. So a trigger that comes late, twice or never changes nothing but when.

pub mod history;
pub mod standing;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use waybill_domain::delivery::State;
use waybill_domain::event_template::EventIdTemplate;
use waybill_domain::identity::{DeliveryId, DeliveryKey, TenantId};
use waybill_domain::schedule::{self as domain, Window};
use waybill_domain::time::TimeMs;

use crate::config::{Config, Schedule};
use crate::event::Event;
use crate::ports::{Clock, Ledger, PortResult, Queue};
use crate::publish::{PublishError, Publisher};

/// The ports that schedules need.
#[derive(Debug, Clone, Copy)]
pub struct Scheduler<'a, L, Q, C> {
    /// The truth.
    pub ledger: &'a L,
    /// The wake-ups.
    pub queue: &'a Q,
    /// The time.
    pub clock: &'a C,
}

/// What this process has learned of windows: whether they have their delivery or never get one. Spares
/// the ledger the same questions every minute; a process that knows nothing asks again.
#[derive(Debug, Default)]
pub struct Learned(Mutex<BTreeMap<DeliveryKey, bool>>);

/// How much one tick may do at most; the rest is the next tick's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleLimits {
    /// Questions to the ledger.
    pub questions: usize,
    /// Deliveries to publish.
    pub publishes: usize,
    /// From this time on nothing further is begun.
    pub until: Option<TimeMs>,
}

impl Default for ScheduleLimits {
    fn default() -> Self {
        Self { questions: 10_000, publishes: 1_000, until: None }
    }
}

/// What a tick saw and did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleReport {
    /// Closed windows of every schedule and tenant.
    pub windows: usize,
    /// Of these, published now.
    pub published: usize,
    /// Of these, recorded as dead letters, because a schema refuses the payload.
    pub refused: usize,
    /// Failed; tried again at the next tick.
    pub failed: usize,
    /// Whether it stopped at its limits and left the rest to the next tick.
    pub more: bool,
}

/// One tick's account.
struct Tick<'a> {
    config: &'a Config,
    limits: ScheduleLimits,
    now: TimeMs,
    report: ScheduleReport,
    questions: usize,
    before: BTreeMap<DeliveryKey, bool>,
    learned: BTreeMap<DeliveryKey, bool>,
}

impl<L: Ledger, Q: Queue, C: Clock> Scheduler<'_, L, Q, C> {
    /// Publishes what is owed. Safe to run twice at once: publishing is idempotent.
    pub async fn tick(&self, config: &Config, learned: &Learned, limits: ScheduleLimits) -> ScheduleReport {
        let mut tick = Tick {
            config,
            limits,
            now: self.clock.now(),
            report: ScheduleReport::default(),
            questions: 0,
            before: std::mem::take(&mut *learned.0.lock().unwrap_or_else(PoisonError::into_inner)),
            learned: BTreeMap::new(),
        };
        for schedule in &config.schedules {
            let windows = schedule.timing.closed_windows(schedule.catch_up, tick.now);
            tick.report.windows += windows.len() * schedule.tenants.len();
            for tenant in &schedule.tenants {
                if let Err(error) = self.of_tenant(&mut tick, schedule, tenant, &windows).await {
                    tick.report.failed += 1;
                    tracing::error!(
                        schedule = schedule.name, %tenant, error = error.in_full(), "not scheduled"
                    );
                }
            }
        }
        let Tick { report, before, learned: mut known, .. } = tick;
        if report.more {
            // What was not looked at this time is not forgotten.
            for (key, is_published) in before {
                known.entry(key).or_insert(is_published);
            }
        }
        *learned.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
        let ScheduleReport { windows, published, refused, failed, more } = report;
        if [published, refused, failed] != [0; 3] || more {
            tracing::info!(windows, published, refused, failed, more, "scheduled");
        }
        report
    }

    async fn of_tenant(
        &self,
        tick: &mut Tick<'_>,
        schedule: &Schedule,
        tenant: &TenantId,
        windows: &[Window],
    ) -> PortResult<()> {
        let mut known = Vec::with_capacity(windows.len());
        for window in windows {
            let mut has_one = false;
            for key in keys_of(schedule, tenant, window) {
                let Some(is_published) = self.is_published(tick, &key).await? else { return Ok(()) };
                has_one |= is_published;
                if has_one {
                    break;
                }
            }
            known.push((*window, has_one));
        }
        let mut owed = under_former_ids(schedule, tenant, &known);
        let now_owed = domain::owed(&known, schedule.since.get(tenant).copied(), tick.config.applied_at);
        owed.extend(now_owed.into_iter().map(|window| (window, &schedule.event_id)));
        for (window, ids) in owed {
            let key = key_under(ids, schedule, tenant, &window);
            // Until it is published, nothing is learned of it.
            tick.learned.remove(&key);
            let done = tick.report.published + tick.report.refused;
            if self.is_over(tick, done, tick.limits.publishes) {
                continue;
            }
            if self.publish(tick, schedule, tenant, &window, ids).await? {
                tick.learned.insert(key, true);
            }
        }
        Ok(())
    }

    /// Whether the ledger has this delivery, as far as the process knows, or else as the ledger says; `None`
    /// where no more is to be asked.
    async fn is_published(&self, tick: &mut Tick<'_>, key: &DeliveryKey) -> PortResult<Option<bool>> {
        let is_published = match tick.before.get(key).copied() {
            Some(is_published) => is_published,
            None if self.is_over(tick, tick.questions, tick.limits.questions) => return Ok(None),
            None => {
                tick.questions += 1;
                self.ledger.load(key).await?.is_some()
            }
        };
        tick.learned.insert(key.clone(), is_published);
        Ok(Some(is_published))
    }

    /// Publishes one window; whether it has its delivery now.
    async fn publish(
        &self,
        tick: &mut Tick<'_>,
        schedule: &Schedule,
        tenant: &TenantId,
        window: &Window,
        ids: &EventIdTemplate,
    ) -> PortResult<bool> {
        let Self { ledger, queue, clock } = *self;
        let event_id = ids.fill(tenant, window.day);
        let event = Event { event_id: event_id.clone(), ..schedule.event(tenant, window.day) };
        let published = Publisher { ledger, queue, clock }.publish_unattended(tick.config, event).await;
        match published {
            Ok(deliveries) => {
                let is_dead = deliveries.iter().any(|delivery| delivery.state == State::DeadLettered);
                tick.report.published += usize::from(!is_dead);
                tick.report.refused += usize::from(is_dead);
                tracing::info!(
                    schedule = schedule.name, %tenant, window = %window.day, %event_id,
                    fires_at = %window.fires_at, late_ms = tick.now.since(window.fires_at).as_ms(),
                    "window published"
                );
                Ok(true)
            }
            Err(PublishError::Port(error)) => Err(error),
            Err(refused) => {
                // Somebody published other bytes under this ID meanwhile: it has its delivery.
                let has_delivery = matches!(refused, PublishError::Conflict { .. });
                tick.report.failed += usize::from(!has_delivery);
                tracing::error!(
                    schedule = schedule.name, %tenant, window = %window.day, error = %refused, "not scheduled"
                );
                Ok(has_delivery)
            }
        }
    }

    fn is_over(&self, tick: &mut Tick<'_>, done: usize, most: usize) -> bool {
        let is_over = done >= most || tick.limits.until.is_some_and(|until| self.clock.now() >= until);
        tick.report.more |= is_over;
        is_over
    }
}

/// Windows that have no delivery under the event IDs of now, and may be owed under those of then.
fn under_former_ids<'a>(
    schedule: &'a Schedule,
    tenant: &TenantId,
    known: &[(Window, bool)],
) -> Vec<(Window, &'a EventIdTemplate)> {
    let former = schedule.former.get(tenant).map(Vec::as_slice).unwrap_or_default();
    let without = known.iter().filter(|(_, is_published)| !is_published);
    let then = without.filter_map(|(window, _)| {
        let ids = former.iter().find(|former| former.cover(window))?;
        Some((*window, &ids.event_id))
    });
    then.collect()
}

/// Under what a window may have its delivery: its event ID of now, and those that the schedule had before,
/// whenever it fired: a changed pattern may fire once more for a day that has one.
fn keys_of(schedule: &Schedule, tenant: &TenantId, window: &Window) -> impl Iterator<Item = DeliveryKey> {
    let former = schedule.former.get(tenant).into_iter().flatten().map(|former| &former.event_id);
    let templates = std::iter::once(&schedule.event_id).chain(former);
    templates.map(|ids| key_under(ids, schedule, tenant, window))
}

fn key_under(ids: &EventIdTemplate, schedule: &Schedule, tenant: &TenantId, window: &Window) -> DeliveryKey {
    let event_id = ids.fill(tenant, window.day);
    let delivery_id = DeliveryId::derive(tenant, &event_id, &schedule.destination);
    DeliveryKey { tenant: tenant.clone(), delivery_id }
}
