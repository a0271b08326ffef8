//! A table of the file, read key by key; whatever is wrong goes to the faults and reading goes on.

use std::borrow::Borrow as _;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use waybill_domain::fault::InvalidField;

use super::fault::Faults;
use super::nearest::nearest;
use super::reference::{Kind, Table};

/// What is said of keys and values that the design names and this version lacks.
pub(super) const NOT_BUILT: &str = "is known, but not built in this version";

/// A table whose keys are known.
pub(super) struct Section<'f, 't> {
    path: String,
    at: usize,
    table: &'f DeTable<'t>,
    faults: &'f Faults<'t>,
}

/// A key with its value.
pub(super) struct Entry<'f, 't> {
    path: String,
    name: &'f str,
    at: usize,
    value: &'f DeValue<'t>,
    faults: &'f Faults<'t>,
}

impl<'f, 't> Section<'f, 't> {
    /// The whole file.
    pub(super) fn root(table: &'f DeTable<'t>, faults: &'f Faults<'t>, known: &Table) -> Self {
        let section = Self { path: String::new(), at: 0, table, faults };
        section.check_keys(known);
        section
    }

    /// The entry of a key, if it is written.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'f, 't>> {
        let (name, value) = self.table.get_key_value(key)?;
        Some(self.entry(name.get_ref(), name.span().start, value))
    }

    /// The entry of a key that must be written.
    pub(super) fn require(&self, key: &str, rule: &str) -> Option<Entry<'f, 't>> {
        let entry = self.get(key);
        if entry.is_none() {
            self.missing(key, rule);
        }
        entry
    }

    /// Whether the key is written with anything in it; something that is no table is reported as such.
    pub(super) fn has_entries(&self, key: &str) -> bool {
        self.get(key).is_some_and(|entry| !matches!(entry.value, DeValue::Table(table) if table.is_empty()))
    }

    /// Reports a key that is not written and should be.
    pub(super) fn missing(&self, key: &str, rule: &str) {
        self.faults.add(self.at, &join(&self.path, key), "is missing", rule);
    }

    /// Reports a rule that holds between several keys and was broken; `invalid` names the key.
    pub(super) fn refuse(&self, invalid: InvalidField) {
        let at = self.get(&invalid.field).map_or(self.at, |entry| entry.at);
        let path = join(&self.path, &invalid.field);
        self.faults.add_invalid(at, &path, invalid);
    }

    /// Sets `place` to what `read` makes of the key, if it is written; `false` if that is refused.
    pub(super) fn set<T>(
        &self,
        key: &str,
        place: &mut T,
        read: impl FnOnce(&Entry<'f, 't>) -> Option<T>,
    ) -> bool {
        let Some(entry) = self.get(key) else { return true };
        let value = read(&entry);
        let sound = value.is_some();
        if let Some(value) = value {
            *place = value;
        }
        sound
    }

    /// The entries of a table whose keys are names of the writer's own, in the order of the file.
    pub(super) fn tables(&self, key: &str) -> Vec<Entry<'f, 't>> {
        self.get(key).and_then(|entry| entry.as_entries()).unwrap_or_default()
    }

    fn entry(&self, name: &'f str, at: usize, value: &'f Spanned<DeValue<'t>>) -> Entry<'f, 't> {
        Entry { path: join(&self.path, name), name, at, value: value.get_ref(), faults: self.faults }
    }

    fn check_keys(&self, known: &Table) {
        let names: Vec<&str> = known.names().collect();
        let rule = format!("one of {}", names.join(", "));
        for (key, _) in self.table {
            let name: &str = key.get_ref().borrow();
            if names.contains(&name) {
                continue;
            }
            let fault = match nearest(name, names.iter().copied()) {
                _ if known.later.contains(&name) => NOT_BUILT.to_owned(),
                Some(meant) => format!("is not a key; did you mean {meant:?}?"),
                None => "is not a key".to_owned(),
            };
            self.faults.add(key.span().start, &join(&self.path, name), fault, rule.clone());
        }
    }
}

impl<'f, 't> Entry<'f, 't> {
    /// The key, as it is written.
    pub(super) fn name(&self) -> &'f str {
        self.name
    }

    /// The entry of a key, if this is a table in which it is written.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'f, 't>> {
        match self.value {
            DeValue::Table(table) => {
                Section { path: self.path.clone(), at: self.at, table, faults: self.faults }.get(key)
            }
            _ => None,
        }
    }

    /// The value as it stands.
    pub(super) fn value(&self) -> &'f DeValue<'t> {
        self.value
    }

    /// Reports a fault of the key or its value.
    pub(super) fn refuse(&self, fault: impl Into<String>, rule: impl Into<String>) {
        self.faults.add(self.at, &self.path, fault, rule);
    }

    /// Reads the key itself, as a name.
    pub(super) fn parsed_name<T>(&self, parse: impl FnOnce(&str) -> Result<T, InvalidField>) -> Option<T> {
        self.adopt(parse(self.name))
    }

    /// Reads a text.
    pub(super) fn parsed<T>(&self, parse: impl FnOnce(&str, &str) -> Result<T, InvalidField>) -> Option<T> {
        self.adopt(parse(&self.path, self.as_text()?))
    }

    /// The text, if it is one.
    pub(super) fn as_text(&self) -> Option<&'f str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => self.wrong_kind(Kind::Text),
        }
    }

    /// `true` or `false`, if it is.
    pub(super) fn as_bool(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong_kind(Kind::Truth),
        }
    }

    /// A whole number, if it is one.
    pub(super) fn as_u32(&self) -> Option<u32> {
        let DeValue::Integer(number) = self.value else {
            return self.wrong_kind(Kind::Whole);
        };
        let read = u32::from_str_radix(number.as_str(), number.radix()).ok();
        if read.is_none() {
            self.refuse(format!("is {number}"), "a whole number from 0 to 4294967295");
        }
        read
    }

    /// A number, if it is one.
    pub(super) fn as_f64(&self) -> Option<f64> {
        match self.value {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => self.wrong_kind(Kind::Number),
        }
    }

    /// The items of a list, if it is one; each is reported at its own line.
    pub(super) fn as_list(&self) -> Option<Vec<Entry<'f, 't>>> {
        let DeValue::Array(items) = self.value else {
            return self.wrong_kind(Kind::List);
        };
        let item = |(index, value): (usize, &'f Spanned<DeValue<'t>>)| Entry {
            path: format!("{}[{index}]", self.path),
            name: self.name,
            at: value.span().start,
            value: value.get_ref(),
            faults: self.faults,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// A list of `least` to `most` texts, each read with `parse`, none of them twice.
    pub(super) fn parsed_list<T: PartialEq>(
        &self,
        least: usize,
        most: usize,
        rule: &str,
        parse: impl Fn(&Entry<'f, 't>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.as_list()?;
        if !(least..=most).contains(&items.len()) {
            let fault = if items.is_empty() { "is empty".to_owned() } else { format!("has {}", items.len()) };
            self.refuse(fault, rule);
            return None;
        }
        let mut read = Vec::with_capacity(items.len());
        for item in &items {
            match parse(item) {
                Some(value) if read.contains(&value) => item.refuse("is listed twice", rule),
                Some(value) => read.push(value),
                None => {}
            }
        }
        (read.len() == items.len()).then_some(read)
    }

    /// The entries of a table whose keys are the writer's own, in the order of the file.
    pub(super) fn as_entries(&self) -> Option<Vec<Entry<'f, 't>>> {
        let section = self.as_table()?;
        let entry = |(name, value): (&'f Spanned<_>, &'f Spanned<DeValue<'t>>)| {
            section.entry(std::borrow::Cow::as_ref(name.get_ref()), name.span().start, value)
        };
        let mut entries: Vec<_> = section.table.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.at);
        Some(entries)
    }

    /// A table with known keys, if it is a table; unknown keys are reported.
    pub(super) fn as_section(&self, known: &Table) -> Option<Section<'f, 't>> {
        let section = self.as_table()?;
        section.check_keys(known);
        Some(section)
    }

    /// A table, if it is one.
    pub(super) fn as_table(&self) -> Option<Section<'f, 't>> {
        match self.value {
            DeValue::Table(table) => {
                Some(Section { path: self.path.clone(), at: self.at, table, faults: self.faults })
            }
            _ => self.wrong_kind(Kind::Table),
        }
    }

    fn adopt<T>(&self, result: Result<T, InvalidField>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(invalid) => {
                self.faults.add_invalid(self.at, &self.path, invalid);
                None
            }
        }
    }

    fn wrong_kind<T>(&self, wanted: Kind) -> Option<T> {
        let kind = match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.refuse(format!("is {kind}"), wanted.wanted());
        None
    }
}

/// A dotted key; a part that needs quotes gets them.
pub(super) fn join(path: &str, key: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let part = if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { part } else { format!("{path}.{part}") }
}
