//! The voice that tells the story. For programs it is silent: they get the promises and nothing else.

use std::fmt::Display;

use crate::out::{self, Format};

/// Who tells what happens, or does not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Voice(pub(crate) Format);

impl Voice {
    /// One line.
    pub(crate) fn tell(self, text: impl Display) {
        if self.0 == Format::Table {
            out::line(text);
        }
    }

    /// A new scene of the story.
    pub(crate) fn scene(self, text: &str) {
        self.tell("");
        let mut line = String::from(" ");
        for word in text.split_whitespace() {
            if line.len() + word.len() > 100 {
                self.tell(&line);
                line = String::from(" ");
            }
            line.push(' ');
            line.push_str(word);
        }
        self.tell(&line);
        self.tell("");
    }
}
