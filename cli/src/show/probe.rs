//! What test events found out about a recipient, with what to mend.

use serde_json::{Value, json};
use waybill_domain::identity::DestinationName;
use waybill_domain::probe::Finding;

use super::or_dash;
use super::table::table;

/// The findings, one row each.
pub(crate) fn of_findings(findings: &[Finding]) -> String {
    let rows = findings.iter().map(|finding| {
        [
            finding.check.to_owned(),
            finding.opinion.as_str().to_owned(),
            finding.found.clone(),
            or_dash(finding.mend.map(str::to_owned)),
        ]
    });
    table(["THE RECIPIENT", "IS", "SEEN", "TO MEND"], rows)
}

/// One finding for programs.
pub(crate) fn facts(destination: &DestinationName, finding: &Finding) -> Value {
    json!({
        "destination": destination.as_str(),
        "check": finding.check,
        "opinion": finding.opinion.as_str(),
        "found": finding.found,
        "mend": finding.mend,
    })
}
