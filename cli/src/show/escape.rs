//! Text from outside, made fit for a terminal: nothing in it can move the cursor, hide or turn.

use std::fmt::Write as _;

/// The text with control characters, and those that change the direction or are invisible, escaped
/// as JSON escapes them; a backslash is doubled, so that what is shown can be read back.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() || is_unseen(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Bytes from outside: bytes that are no UTF-8 show as U+FFFD.
pub(crate) fn escaped_bytes(bytes: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(bytes))
}

/// Formatting characters that show nothing or reorder what stands around them.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_command() {
        let rows = [
            ("plain ✨🎉 text", "plain ✨🎉 text"),
            ("a\0b", "a\\u0000b"),
            ("\u{1b}[31mred", "\\u001b[31mred"),
            ("back\\slash\r\n\t", "back\\\\slash\\r\\n\\t"),
            ("turn\u{202e}ed", "turn\\u202eed"),
            ("\u{9b}31m", "\\u009b31m"),
            ("\u{feff}x\u{e0041}", "\\ufeffx\\udb40\\udc41"),
        ];
        for (text, shown) in rows {
            assert_eq!(escaped(text), shown);
        }
        assert_eq!(escaped_bytes(b"ab\xff\xfec"), "ab\u{fffd}\u{fffd}c");
    }
}
