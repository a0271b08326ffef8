//! The budgets of destinations: one small item each, `B#<destination>` / `BUDGET`.
//!
//! Up to some sixteen slots it is written for one unit. Its sparse neighbours in the indexes are none.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use waybill_domain::budget::Usage;
use waybill_domain::identity::DestinationName;
use waybill_service::ports::{Budgets, KeptUsage, PortResult, UsageSet};

use crate::fault::{Fault, LEDGER, of_sdk};
use crate::ledger::{ConditionFailed as _, DynamoLedger};
use crate::payloads::BigPayloads;
use crate::range::{Item, text};
use crate::record::REVISION;
use crate::table;

/// The attribute that holds what is used.
const USAGE: &str = "usage";

impl<P: BigPayloads> Budgets for DynamoLedger<P> {
    async fn usage(&self, destination: &DestinationName) -> PortResult<KeptUsage> {
        let read = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(table::PK, AttributeValue::S(table::held_to(destination.as_str())))
            .key(table::SK, AttributeValue::S(table::BUDGET.to_owned()))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| of_sdk(LEDGER, error))?;
        read.item.as_ref().map_or(Ok(KeptUsage::default()), |item| kept(destination, item))
    }

    async fn set_usage(
        &self,
        destination: &DestinationName,
        expected: u64,
        usage: &Usage,
    ) -> PortResult<UsageSet> {
        let written = serde_json::to_string(usage).map_err(|cause| unreadable(destination, cause))?;
        let setting = self
            .client
            .put_item()
            .table_name(&self.table)
            .item(table::PK, AttributeValue::S(table::held_to(destination.as_str())))
            .item(table::SK, AttributeValue::S(table::BUDGET.to_owned()))
            .item(REVISION, AttributeValue::N((expected + 1).to_string()))
            .item(USAGE, AttributeValue::S(written))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        // The compare-and-set.
        let setting = match expected {
            0 => setting
                .condition_expression("attribute_not_exists(#p)")
                .expression_attribute_names("#p", table::PK),
            _ => setting
                .condition_expression("#revision = :was")
                .expression_attribute_names("#revision", REVISION)
                .expression_attribute_values(":was", AttributeValue::N(expected.to_string())),
        };
        match setting.send().await {
            Ok(_) => Ok(UsageSet::Landed),
            Err(error) => match error.stored() {
                Some(Some(item)) => Ok(UsageSet::Lost(kept(destination, item)?)),
                // Nothing is stored, or it was not told: the caller reads it.
                Some(None) => Ok(UsageSet::Lost(self.usage(destination).await?)),
                None => Err(of_sdk(LEDGER, error)),
            },
        }
    }
}

fn kept(destination: &DestinationName, item: &Item) -> PortResult<KeptUsage> {
    let revision = match item.get(REVISION) {
        Some(AttributeValue::N(number)) => number.parse().ok(),
        _ => None,
    };
    let Some(revision) = revision else {
        return Err(Fault::Refused(format!("the budget of {destination} has no {REVISION}")).at(LEDGER));
    };
    let usage = serde_json::from_str(text(item, USAGE)?).map_err(|cause| unreadable(destination, cause))?;
    Ok(KeptUsage { revision, usage })
}

fn unreadable(destination: &DestinationName, cause: serde_json::Error) -> waybill_service::ports::PortError {
    Fault::Unreadable { what: "budget", key: destination.to_string(), cause }.at(LEDGER)
}
