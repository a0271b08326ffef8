//! What the memory ledger keeps.

use std::collections::BTreeMap;

use bytes::Bytes;
use waybill_domain::attempt::{Attempt, Witness};
use waybill_domain::delivery::Record;
use waybill_domain::identity::{AttemptNumber, DeliveryKey, WriteToken};

/// All that is kept of one delivery.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) record: Record,
    pub(super) payload: Option<Bytes>,
    pub(super) attempts: BTreeMap<(AttemptNumber, Witness, WriteToken), Attempt>,
}

/// By tenant, then delivery.
pub(super) type Rows = BTreeMap<DeliveryKey, Row>;
