//! Payloads that were read together with their records, until somebody asks for them.
//!
//! A payload never changes, so one that was read is right for ever; what is kept is only bounded.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use waybill_domain::identity::DeliveryKey;

/// How many payloads are kept, each of at most 16 KiB. Beyond it the unasked ones are dropped, and
/// read again if somebody asks.
const MOST: usize = 64;

/// What was read ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    payloads: Mutex<HashMap<DeliveryKey, Bytes>>,
}

impl Ahead {
    pub(crate) fn keep(&self, key: &DeliveryKey, payload: Bytes) {
        let Ok(mut payloads) = self.payloads.lock() else { return };
        if payloads.len() >= MOST {
            payloads.clear();
        }
        payloads.insert(key.clone(), payload);
    }

    pub(crate) fn take(&self, key: &DeliveryKey) -> Option<Bytes> {
        self.payloads.lock().ok()?.remove(key)
    }
}
