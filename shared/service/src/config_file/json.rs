//! A value of the file as JSON, for what is passed on as it is.

use serde_json::{Number, Value};
use toml::de::DeValue;

use super::reader::Entry;

/// The value of an entry as JSON; what JSON has no word for is reported.
pub(super) fn read(entry: &Entry<'_, '_>) -> Option<Value> {
    match entry.value() {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(value) => Some(Value::from(*value)),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Some(Value::from(number)),
            Err(_) => refuse(entry, format!("is {number}"), "a whole number of 64 bits"),
        },
        DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
            Some(number) => Some(Value::Number(number)),
            None => refuse(entry, format!("is {number}"), "a number that JSON has"),
        },
        DeValue::Datetime(_) => {
            refuse(entry, "is a date or a time".to_owned(), "JSON has none: a text in quotes")
        }
        DeValue::Array(_) => entry.as_list()?.iter().map(read).collect(),
        DeValue::Table(_) => {
            let fields = entry.as_entries()?;
            fields.iter().map(|field| Some((field.name().to_owned(), read(field)?))).collect()
        }
    }
}

fn refuse<T>(entry: &Entry<'_, '_>, fault: String, rule: &str) -> Option<T> {
    entry.refuse(fault, rule);
    None
}
