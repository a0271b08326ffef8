//! The only place that prints: answers to standard output, complaints to standard error.
//!
//! Whoever closed the pipe wants no more, as `head` does: the command ends without a word, and well.

use std::fmt::Display;
use std::io::{self, Write};

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// JSON lines for programs: the same facts.
    Json,
}

/// One line of the answer (or several, where the text has them).
pub(crate) fn line(text: impl Display) {
    written(writeln!(io::stdout().lock(), "{text}"));
}

/// One answer as a line of JSON.
pub(crate) fn json(answer: &impl serde::Serialize) {
    let mut text = serde_json::to_vec(answer).expect("answers have only string keys");
    text.push(b'\n');
    written(io::stdout().lock().write_all(&text));
}

/// One line of a program that goes on, whether anybody reads it or not.
pub(crate) fn announce(text: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// One sentence that is not part of the answer.
pub(crate) fn complain(text: impl Display) {
    // There is nowhere left to say that nothing can be said.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn written(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            complain(format_args!("standard output: {}", crate::exit::in_words(&error)));
            std::process::exit(1);
        }
    }
}
