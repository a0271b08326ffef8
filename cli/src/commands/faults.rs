//! What the readers of JSON and base64 say of an event, for whoever looks at a line of a file: the
//! column beside the line's number, and no numbers of bytes.

use waybill_domain::fault::InvalidField;

/// The fault in words, and the column that it is about, where it is about one.
pub(super) fn in_words(mut invalid: InvalidField) -> (InvalidField, Option<u64>) {
    if let Some((words, column)) = split_place(&invalid.fault) {
        invalid.fault = words;
        return (invalid, Some(column));
    }
    if let Some(said) = invalid.fault.strip_prefix("is not base64: ") {
        invalid.fault = of_base64(said);
    }
    (invalid, None)
}

/// Takes ` at line 1 column 60` from the end: the line is always the first of the one it was given.
fn split_place(fault: &str) -> Option<(String, u64)> {
    let (words, column) = fault.rsplit_once(" at line 1 column ")?;
    Some((words.to_owned(), column.parse().ok()?))
}

/// `Invalid symbol 61, offset 3.` and its like.
fn of_base64(said: &str) -> String {
    let symbol = said.strip_prefix("Invalid symbol ").and_then(|rest| rest.split_once(','));
    match symbol.and_then(|(code, _)| code.parse::<u8>().ok()) {
        Some(b'=') => "is not base64: has '=' before its end".to_owned(),
        Some(byte) if byte.is_ascii() => format!("is not base64: has {:?} in it", char::from(byte)),
        Some(_) => "is not base64: has a letter beyond ASCII in it".to_owned(),
        None if said.contains("padding") => "is not base64: its padding is missing or wrong".to_owned(),
        None => "is not base64: is cut off, or has stray bits at its end".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use waybill_service::event::Event;

    use super::*;

    fn fault(event: &str) -> (String, Option<u64>) {
        let (invalid, column) = in_words(Event::parse(event.as_bytes()).unwrap_err());
        (invalid.fault, column)
    }

    #[test]
    fn a_column_stands_beside_the_line_and_not_in_the_sentence() {
        let rows = [
            (r#"{"event_id":}"#, "is not a JSON object: expected value", 13),
            (r#"{"event_id""#, "is not a JSON object: EOF while parsing an object", 11),
        ];
        for (event, words, column) in rows {
            assert_eq!(fault(event), (words.to_owned(), Some(column)), "{event}");
        }
        assert_eq!(fault(r#"{"x":1}"#), ("is not a field of an event".to_owned(), None));
    }

    #[test]
    fn base64_is_found_fault_with_in_words() {
        let rows = [
            ("e30=x", "is not base64: has '=' before its end"),
            ("e3 0=", "is not base64: has ' ' in it"),
            ("e30é", "is not base64: has a letter beyond ASCII in it"),
            ("e30", "is not base64: its padding is missing or wrong"),
            ("e3000", "is not base64: is cut off, or has stray bits at its end"),
            ("e31=", "is not base64: is cut off, or has stray bits at its end"),
        ];
        for (text, words) in rows {
            let event = format!(
                r#"{{"event_id":"e","tenant":"t","type":"x","payload_base64":"{text}","content_type":"a/b"}}"#
            );
            assert_eq!(fault(&event), (words.to_owned(), None), "{text}");
        }
    }
}
