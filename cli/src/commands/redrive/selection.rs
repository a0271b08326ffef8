//! Which dead letters a plan means, as the command line says it.

use std::path::PathBuf;

use waybill_domain::destination::EventPattern;
use waybill_domain::ending::DeadLetterReason;
use waybill_domain::identity::{DeliveryId, DestinationName, EventId, TenantId};
use waybill_domain::redrive::{Reviews, Selection};
use waybill_domain::time::TimeMs;

use super::super::dead_letters::reason;
use super::super::{delivery_id, destination, moment, refused, tenant, why};

/// What is planned. Whatever is not said is not asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only this tenant's
    #[arg(long, value_parser = tenant)]
    tenant: Option<TenantId>,
    /// Only those to this destination
    #[arg(long, value_parser = destination)]
    destination: Option<DestinationName>,
    /// Only those that ended for this reason, such as attempts_exhausted
    #[arg(long, value_parser = reason)]
    reason: Option<DeadLetterReason>,
    /// Only events of this type, or of those that begin like this, such as lease.*
    #[arg(long = "type", value_name = "PATTERN", value_parser = pattern)]
    event_type: Option<EventPattern>,
    /// Only those that ended since this time (RFC 3339), or within this span (24h)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<TimeMs>,
    /// Only those that ended before this time (RFC 3339), or before this span (1h)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<TimeMs>,
    /// Only this delivery; may be given more than once
    #[arg(long, value_name = "ID", value_parser = delivery_id)]
    delivery: Vec<DeliveryId>,
    /// Only the deliveries of this event; may be given more than once
    #[arg(long, value_name = "EVENT_ID", value_parser = event_id)]
    event: Vec<EventId>,
    /// Only events whose ID begins like this, such as a tenant and a business date
    #[arg(long, value_name = "PREFIX")]
    event_prefix: Option<String>,
    /// Release permanent failures although nothing was changed since, and why that is right
    #[arg(long, value_name = "WHY", value_parser = why)]
    permanent_reviewed: Option<String>,
    /// Release what the recipient may have applied already, and why that is right
    #[arg(long, value_name = "WHY", value_parser = why)]
    ambiguous_reviewed: Option<String>,
    /// Release deliveries more often than max_redrives allows, and why that is right
    #[arg(long, value_name = "WHY", value_parser = why)]
    beyond_limit: Option<String>,
    /// Keep the plan in this file: a run is started from it
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn read(self) -> (Selection, Reviews, Option<PathBuf>) {
        let selection = Selection {
            tenant: self.tenant,
            destination: self.destination,
            reason: self.reason,
            event_type: self.event_type,
            since: self.since,
            until: self.until,
            deliveries: self.delivery,
            events: self.event,
            event_prefix: self.event_prefix,
        };
        let reviews = Reviews {
            permanent: self.permanent_reviewed,
            ambiguous: self.ambiguous_reviewed,
            beyond_limit: self.beyond_limit,
        };
        (selection, reviews, self.save)
    }
}

pub(crate) fn pattern(text: &str) -> Result<EventPattern, String> {
    EventPattern::parse(text).map_err(refused)
}

fn event_id(text: &str) -> Result<EventId, String> {
    EventId::parse(text).map_err(refused)
}
