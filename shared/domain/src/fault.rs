//! How a refused value is described: the field, its fault and the rule, never the value of a secret.

use std::fmt;

/// A value that was refused. Printed as `field: fault (rule)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// The field as its writer knows it, such as `tenant` or `payload_base64`.
    pub field: String,
    /// What is wrong with this value.
    pub fault: String,
    /// What is allowed.
    pub rule: String,
}

impl InvalidField {
    /// A refusal of `field` because of `fault`; `rule` says what would be taken.
    pub fn new(field: impl Into<String>, fault: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { field: field.into(), fault: fault.into(), rule: rule.into() }
    }

    /// The same refusal, for a field that another name is better known by.
    pub fn of(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.field, self.fault, self.rule)
    }
}

impl std::error::Error for InvalidField {}
