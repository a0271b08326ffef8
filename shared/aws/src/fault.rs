//! What can go wrong on AWS, named by what the caller does next.
//!
//! Throttled, timed out, refused by a service that is ill: ask again later. A request that is not
//! allowed or not understood, an item that cannot be read: a person must look.

use std::error::Error as StdError;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use thiserror::Error;
use waybill_service::ports::PortError;

/// The ledger, in the port's errors.
pub(crate) const LEDGER: &str = "ledger";

/// The queue, in the port's errors.
pub(crate) const QUEUE: &str = "queue";

/// A fault that no service told.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("the stored {what} of {key} cannot be read")]
    Unreadable {
        what: &'static str,
        key: String,
        #[source]
        cause: serde_json::Error,
    },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Passing(String),
    /// The caller's policies do not allow it.
    #[error("AWS does not allow it: {0}")]
    Denied(String),
}

impl Fault {
    /// The same fault for the caller of a port.
    pub(crate) fn at(self, port: &'static str) -> PortError {
        match self {
            Fault::Passing(_) => PortError::AskLater { port, cause: Box::new(self) },
            _ => PortError::NeedsPerson { port, cause: Box::new(self) },
        }
    }
}

/// What a service or the way to it said, for the caller of a port.
pub(crate) fn of_sdk<E>(port: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    if let Some(said) = denial(&error) {
        return Fault::Denied(said).at(port);
    }
    let passes = passes_by_itself(&error);
    let cause = Box::new(error);
    match passes {
        true => PortError::AskLater { port, cause },
        false => PortError::NeedsPerson { port, cause },
    }
}

/// What AWS says where the caller's policies do not allow what was asked: nothing is broken, and
/// nothing was done.
pub fn denied(error: &PortError) -> Option<&str> {
    let PortError::NeedsPerson { cause, .. } = error else { return None };
    match cause.downcast_ref() {
        Some(Fault::Denied(said)) => Some(said),
        _ => None,
    }
}

/// What AWS says of who may not do what, where it refused for that.
fn denial<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<String> {
    let SdkError::ServiceError(refusal) = error else { return None };
    let code = refusal.err().code().filter(|code| code.contains("AccessDenied"))?;
    Some(refusal.err().message().unwrap_or(code).to_owned())
}

/// Whether asking again later can help. On the way there and back anything can; of what a service
/// refuses, only what it says of its own state.
pub(crate) fn passes_by_itself<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    match error {
        SdkError::ServiceError(refusal) => {
            let status = refusal.raw().status().as_u16();
            status >= 500 || status == 429 || refusal.err().code().is_some_and(is_passing)
        }
        SdkError::ConstructionFailure(_) => false,
        _ => true,
    }
}

/// Codes of refusals under 500 that pass: too much at once, or credentials that are being renewed.
pub(crate) fn is_passing(code: &str) -> bool {
    const CODES: [&str; 15] = [
        "ConditionalRequestConflict",
        "ExpiredToken",
        "ExpiredTokenException",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestExpired",
        "RequestLimitExceeded",
        "RequestTimeout",
        "SlowDown",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ];
    code.contains("Throttl") || CODES.contains(&code)
}
