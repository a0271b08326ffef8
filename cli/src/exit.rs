//! How a command ends: 0 done, 1 failed, 2 the input is wrong, 3 refused by a rule.

use std::fmt;
use std::io;
use std::process::ExitCode;

use waybill_domain::fault::InvalidField;
use waybill_service::acts::ActError;
use waybill_service::ports::PortError;

/// What `--help` says of the codes.
pub(crate) const CODES: &str = "Exit codes:
  0  done
  1  failed: it could not be done
  2  the input is wrong: a sentence says what and where
  3  refused by a rule: such as another payload under an event_id that was published before, or an act
     beyond what its operator is authorised for; the sentence says what would lift it";

/// The end of a command that said itself what there was to say. Of two, the later one here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// 0.
    Done,
    /// 3: the input is well-formed, and a rule forbids it.
    Refused,
    /// 2: the input is wrong.
    WrongInput,
    /// 1: it could not be done.
    Failed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongInput => 2,
            Exit::Refused => 3,
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

    /// A rule forbids it; the sentence says which one, and what would lift it.
    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, sentence: sentence.into() }
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
        #[cfg(feature = "aws")]
        if let Some(said) = waybill_aws::denied(&error) {
            let lifted_by = "one of the operators' policies of infra/operators.tf may lift that";
            return Self::refused(format!("AWS refuses this to the caller: {said}; {lifted_by}"));
        }
        Self::failed(said_once(&error.in_full()))
    }
}

impl From<InvalidField> for Failure {
    fn from(invalid: InvalidField) -> Self {
        Self::wrong_input(invalid.to_string())
    }
}

impl From<ActError> for Failure {
    fn from(error: ActError) -> Self {
        match error {
            ActError::Invalid(invalid) => invalid.into(),
            ActError::Refused(sentence) => Self::refused(sentence),
            ActError::Unknown(sentence) => Self::failed(sentence),
            ActError::Port(error) => error.into(),
        }
    }
}

/// What the operating system says, without its number.
pub(crate) fn in_words(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split_once(" (os error ").map_or(&*text, |(words, _)| words);
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().collect::<String>() + letters.as_str())
}

/// An error with its causes, where each says the same again (as SQLite's do, with a number between
/// them): every part once, and no numbers.
pub(crate) fn said_once(causes: &str) -> String {
    let mut said: Vec<&str> = Vec::new();
    for part in causes.split(": ") {
        if !part.starts_with("Error code ") && !said.contains(&part) {
            said.push(part);
        }
    }
    said.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_ends_the_graver_counts() {
        assert_eq!(Exit::Refused.max(Exit::WrongInput), Exit::WrongInput);
        assert_eq!(Exit::WrongInput.max(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Done.max(Exit::Refused), Exit::Refused);
    }

    #[test]
    fn machines_are_quoted_in_words_and_once() {
        assert_eq!(in_words(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(
            said_once("SQLite refused a step: database is locked: Error code 5: database is locked"),
            "SQLite refused a step: database is locked"
        );
    }
}
