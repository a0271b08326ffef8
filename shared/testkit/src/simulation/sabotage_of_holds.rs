//! What is held and eased, as a worker of a broken build would read it.

use std::sync::Arc;

use waybill_domain::hold::HoldRule;
use waybill_service::config::Config;

use super::sabotage::Sabotage;

/// A configuration as somebody reads it who breaks a rule.
pub(super) fn misread(mut config: Arc<Config>, sabotage: Option<Sabotage>) -> Arc<Config> {
    match sabotage {
        Some(Sabotage::IgnoresHolds) => Arc::make_mut(&mut config).holds.clear(),
        Some(Sabotage::IgnoresLimits) => Arc::make_mut(&mut config).eased.clear(),
        Some(Sabotage::HoldsWhatIsEased) => {
            for rule in &mut Arc::make_mut(&mut config).holds {
                if let HoldRule::Elsewhere { rule: whole, .. } = rule {
                    *rule = HoldRule::clone(whole);
                }
            }
        }
        _ => {}
    }
    config
}
