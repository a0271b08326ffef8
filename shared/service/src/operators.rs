//! What an operator is authorised for, by the configuration in force.

use waybill_domain::authority::Authority;

use crate::acts::ActError;
use crate::config::Config;

/// The authority of the operator of this name. Without `[operators]` nobody is restricted: that is for
/// trying it out, and each act is audited all the same.
pub fn authority_of(config: &Config, who: &str) -> Result<Authority, ActError> {
    if config.operators.is_empty() {
        return Ok(Authority::Across);
    }
    config.operators.get(who).cloned().ok_or_else(|| {
        let sentence = format!(
            "{who} is not among the operators of the configuration in force; [operators.{who}] with tenants \
             = [...] would lift that"
        );
        ActError::Refused(sentence)
    })
}
