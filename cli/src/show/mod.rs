//! How facts are shown: [`timeline`] and tables for people, `facts` as JSON for programs.

pub(crate) mod audit;
pub(crate) mod beside;
pub(crate) mod capacity;
pub(crate) mod config;
pub(crate) mod destinations;
pub(crate) mod escape;
pub(crate) mod evidence;
pub(crate) mod facts;
pub(crate) mod orders;
pub(crate) mod outlook;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod revisions;
pub(crate) mod runs;
pub(crate) mod schedules;
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

/// `1 entry`, `2 entries`.
pub(crate) fn entries(number: u64) -> String {
    match number {
        1 => "1 entry".to_owned(),
        number => format!("{number} entries"),
    }
}

/// What there may not be, in a table.
pub(crate) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}
