//! How a command ends: 0 done, 1 failed, 2 the input is wrong, 3 refused by a rule.

use std::fmt;
use std::process::ExitCode;

use waybill_domain::fault::InvalidField;
use waybill_service::ports::PortError;

/// The end of a command that said itself what there was to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// 0.
    Done,
    /// 1: it could not be done.
    Failed,
    /// 2: the input is wrong.
    WrongInput,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongInput => 2,
        })
    }
}

/// A command that stops, and the sentence that says what and where.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How it ends.
    pub(crate) exit: Exit,
    sentence: String,
}

impl Failure {
    /// It could not be done.
    pub(crate) fn failed(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, sentence: sentence.into() }
    }

    /// The input is wrong.
    pub(crate) fn wrong_input(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::WrongInput, sentence: sentence.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::failed(error.in_full())
    }
}

impl From<InvalidField> for Failure {
    fn from(invalid: InvalidField) -> Self {
        Self::wrong_input(invalid.to_string())
    }
}
