//! What the log says while something is done: for the tests of every folder here.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::Value;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What `work` came to, and every line that an operator sees of it: the field `message` beside the others.
pub(crate) fn logged<T>(work: impl FnOnce() -> T) -> (T, Vec<Value>) {
    let lines = Lines::default();
    let of_lines = lines.clone();
    let log = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || of_lines.clone());
    let done = tracing::subscriber::with_default(log.finish(), work);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    (done, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The messages of these lines, each with its reason where it has one.
pub(crate) fn messages(lines: &[Value]) -> Vec<String> {
    let said = |line: &Value| match line["reason"].as_str() {
        Some(reason) => format!("{}: {reason}", line["message"].as_str().unwrap()),
        None => line["message"].as_str().unwrap().to_owned(),
    };
    lines.iter().map(said).collect()
}
