//! Texts with places to be filled in, such as `{tenant}`.

/// Fills the places of a text, in one pass: what is filled in is not read again.
pub(crate) fn fill(text: &str, places: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        match places.iter().find_map(|(place, value)| Some((rest.strip_prefix(place)?, value))) {
            Some((after, value)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &rest[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}
