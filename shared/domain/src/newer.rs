//! What a newer version of Waybill added to a document: kept as it is by every write of this one, so that a
//! rollback loses nothing of it.
//!
//! It stands in a record and in its delivery, which live on from version to version. What a write makes anew (a
//! claim, a hold, a failure) is written as this version knows it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Fields that this version does not know, by name. Nothing is ever decided by them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Newer(BTreeMap<String, Value>);

impl Newer {
    /// Whether there is none: nobody but this version and older ones wrote the document.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
