//! What is wrong with a configuration file: line, key, fault and rule, in the order of the file.

use std::cell::RefCell;
use std::fmt;

use waybill_domain::fault::InvalidField;

/// One fault. Printed as `line 12: destinations.acme.timeout: fault (rule)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// The line, counted from 1. Of something missing: where it should be.
    pub line: usize,
    /// The dotted key; empty where the file is not TOML.
    pub key: String,
    /// What is wrong.
    pub fault: String,
    /// What is allowed.
    pub rule: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{} ({})", self.fault, self.rule)
    }
}

impl std::error::Error for ConfigFault {}

/// Collects the faults of one file.
pub(super) struct Faults<'t> {
    text: &'t str,
    list: RefCell<Vec<ConfigFault>>,
}

impl<'t> Faults<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, list: RefCell::default() }
    }

    pub(super) fn add(&self, at: usize, key: &str, fault: impl Into<String>, rule: impl Into<String>) {
        let fault =
            ConfigFault { line: self.line(at), key: key.to_owned(), fault: fault.into(), rule: rule.into() };
        self.list.borrow_mut().push(fault);
    }

    pub(super) fn add_invalid(&self, at: usize, key: &str, invalid: InvalidField) {
        self.add(at, key, invalid.fault, invalid.rule);
    }

    /// Every fault, by line.
    pub(super) fn into_list(self) -> Vec<ConfigFault> {
        let mut list = self.list.into_inner();
        list.sort_by_key(|fault| fault.line);
        list
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }
}
