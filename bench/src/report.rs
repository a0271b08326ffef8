//! The sections of docs/BENCHMARKS.md, and tables in them.

use std::path::{Path, PathBuf};

/// The file whose sections are replaced.
fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/BENCHMARKS.md")
}

/// Replaces what stands between the marks of `section`; everything else stays as people wrote it.
pub(crate) fn write(section: &str, text: &str) {
    let file = file();
    let old = std::fs::read_to_string(&file).expect("docs/BENCHMARKS.md can be read");
    let (begin, end) = (format!("<!-- {section}: measured -->\n"), format!("<!-- {section}: end -->"));
    let head = old.find(&begin).map(|at| at + begin.len()).expect("the section begins");
    let tail = head + old[head..].find(&end).expect("the section ends");
    let new = format!("{}{}\n{}", &old[..head], text.trim_end(), &old[tail..]);
    std::fs::write(&file, new).expect("docs/BENCHMARKS.md can be written");
    println!("{text}");
}

/// The numbers of the rows of a section's tables, as it stands; what is no number is `None`.
pub(crate) fn numbers(section: &str) -> Vec<Vec<Option<f64>>> {
    let text = std::fs::read_to_string(file()).expect("docs/BENCHMARKS.md can be read");
    let from = format!("<!-- {section}: measured -->");
    let part = text.split(&from).nth(1).and_then(|part| part.split("<!-- ").next()).unwrap_or_default();
    let rows = part.lines().filter(|line| line.starts_with('|'));
    rows.map(row).collect()
}

/// The numbers of one row of a table; what is no number is `None`.
pub(crate) fn row(row: &str) -> Vec<Option<f64>> {
    let number = |cell: &str| {
        let first = cell.trim().trim_matches('*').split(' ').next()?.replace(',', "");
        first.parse().ok()
    };
    row.trim_matches('|').split('|').map(number).collect()
}

/// A table in Markdown.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.to_vec());
    text += &line(head.iter().map(|_| "---").collect());
    rows.iter().for_each(|row| text += &line(row.iter().map(String::as_str).collect()));
    text
}

/// A count with a comma at each thousand.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
