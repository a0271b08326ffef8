//! How facts are shown: [`timeline`] and tables for people, `facts` as JSON for programs.

pub(crate) mod config;
pub(crate) mod escape;
pub(crate) mod evidence;
pub(crate) mod facts;
pub(crate) mod outlook;
pub(crate) mod table;
pub(crate) mod timeline;

#[cfg(test)]
mod tests;

/// `1 byte`, `2 bytes`.
pub(crate) fn counted(number: impl Into<u64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
