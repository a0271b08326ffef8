//! What holds for every refusal, whatever was refused.

/// A refusal is one line: it repeats no control character.
#[track_caller]
pub(crate) fn is_one_line(refusal: &str) {
    assert!(!refusal.is_empty());
    assert!(!refusal.contains(char::is_control), "a control character in {refusal:?}");
}

/// And where whoever is refused is not whoever reads it, it fits into a log, however long what was refused.
#[track_caller]
pub(crate) fn is_one_short_line(refusal: &str) {
    is_one_line(refusal);
    assert!(refusal.len() < 1024, "{} bytes: {refusal:?}", refusal.len());
}
