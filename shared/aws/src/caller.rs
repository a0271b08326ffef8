//! Who calls: as AWS itself knows them by their credentials.

use aws_config::SdkConfig;
use waybill_service::ports::PortResult;

use crate::fault::{Fault, of_sdk};

/// Whoever these credentials belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    arn: String,
}

impl Caller {
    /// Asks AWS (STS `GetCallerIdentity`, which everybody may ask).
    pub async fn of(config: &SdkConfig) -> PortResult<Self> {
        let asking = aws_sdk_sts::Client::new(config).get_caller_identity().send().await;
        let told = asking.map_err(|error| of_sdk(IDENTITY, error))?;
        let unknown = || Fault::Refused("AWS does not say who calls".to_owned()).at(IDENTITY);
        told.arn.map(|arn| Self { arn }).ok_or_else(unknown)
    }

    /// Who they are, for the audit: `arn:aws:sts::111122223333:assumed-role/operators/maria`.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// What `[operators]` calls them: the last part of the ARN, a user's name or that of a role's session.
    pub fn name(&self) -> &str {
        self.arn.rsplit(['/', ':']).next().unwrap_or(&self.arn)
    }
}

/// The port, in its errors.
const IDENTITY: &str = "identity";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_called_by_the_last_part_of_the_arn() {
        for (arn, name) in [
            ("arn:aws:iam::111122223333:user/maria", "maria"),
            ("arn:aws:iam::111122223333:user/desk/maria", "maria"),
            ("arn:aws:sts::111122223333:assumed-role/operators/maria@example.com", "maria@example.com"),
            ("arn:aws:iam::111122223333:root", "root"),
        ] {
            assert_eq!(Caller { arn: arn.to_owned() }.name(), name);
        }
    }
}
