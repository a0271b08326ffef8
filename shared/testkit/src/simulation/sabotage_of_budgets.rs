//! What a broken build would read and keep of a destination's slots, and of how it does. The item is read-only; as
//! a document it is not.

use serde_json::{Value, json};
use waybill_domain::budget::Usage;
use waybill_domain::identity::DestinationName;
use waybill_service::ports::{Budgets, KeptUsage, PortResult, UsageSet};

use super::sabotage::{Sabotage, Sabotaged, StagedLedger};

impl Budgets for Sabotaged<StagedLedger> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        let mut kept = self.inner.staged.usage(destination).await?;
        match self.sabotage {
            Some(Sabotage::ProbesSideBySide) => kept.usage = without_probe(&kept.usage),
            Some(Sabotage::IgnoresSuspensions) => kept.usage = without_suspension(&kept.usage),
            _ => {}
        }
        Ok(kept)
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        let bare = &self.inner.bare;
        let stored = bare.peek_usage(destination);
        if self.breaks(Sabotage::SlotsAreNotGivenBack) && usage.leased() < stored.usage.leased() {
            return Ok(UsageSet::Landed);
        }
        if self.breaks(Sabotage::ReleasesAnothersSlot) && usage.leased() < stored.usage.leased() {
            return self.inner.staged.set_usage(destination, expected, &without_slots(usage)).await;
        }
        let usage = match self.sabotage {
            Some(Sabotage::SuccessIsNotCounted) => with_row_of(usage, &stored.usage),
            Some(Sabotage::SuspensionIsNeverLifted | Sabotage::IgnoresSuspensions) => {
                with_suspension_of(usage, &stored.usage)
            }
            _ => usage.clone(),
        };
        self.inner.staged.set_usage(destination, expected, &usage).await
    }
}

/// Without any slots.
fn without_slots(usage: &Usage) -> Usage {
    let mut document = document(usage);
    document.as_object_mut().expect("an object").remove("slots");
    serde_json::from_value(document).expect("its slots may be left out")
}

/// With the failures in a row that were stored, where none are left and nothing is suspended.
fn with_row_of(usage: &Usage, stored: &Usage) -> Usage {
    let was_counting = stored.health.failures_in_a_row() > 0 && stored.health.to_enter().is_none();
    let is_over = usage.health.failures_in_a_row() == 0 && usage.health.to_enter().is_none();
    match was_counting && is_over {
        true => altered(usage, |health| health["row"] = document(stored)["health"]["row"].clone()),
        false => usage.clone(),
    }
}

/// With the suspension that was in force, and no probe under way.
fn with_suspension_of(usage: &Usage, stored: &Usage) -> Usage {
    match stored.health.suspension().is_some() && usage.health.suspension().is_none() {
        true => altered(usage, |health| {
            *health = document(stored)["health"].clone();
            health["suspension"]["probe"] = Value::Null;
        }),
        false => usage.clone(),
    }
}

/// As if nothing were suspended.
fn without_suspension(usage: &Usage) -> Usage {
    match usage.health.suspension() {
        Some(_) => altered(usage, |health| health["suspension"] = Value::Null),
        None => usage.clone(),
    }
}

/// Without a probe, and with the next one due.
fn without_probe(usage: &Usage) -> Usage {
    let Some(suspension) = usage.health.suspension() else { return usage.clone() };
    let due = json!(suspension.since);
    altered(usage, |health| {
        health["suspension"]["probe"] = Value::Null;
        health["suspension"]["next_probe_at"] = due;
    })
}

fn altered(usage: &Usage, alter: impl FnOnce(&mut Value)) -> Usage {
    let mut document = document(usage);
    let health = document.as_object_mut().expect("an object").entry("health").or_insert_with(|| json!({}));
    alter(health);
    serde_json::from_value(document).expect("a health may be another")
}

fn document(usage: &Usage) -> Value {
    serde_json::to_value(usage).expect("what is used is a document")
}
