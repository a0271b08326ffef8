//! The key that was probably meant.

/// The nearest of `known` to `written`, if it is near enough to be a slip of the fingers.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = |key: &&str| distance(written, key) <= 1 + key.chars().count() / 4;
    known.into_iter().filter(near).min_by_key(|key| distance(written, key))
}

/// How many letters must be put in, left out, exchanged or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let exchanged = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = exchanged.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
