//! The smallest HTTP client that does: one request, one connection, nothing corrected.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    /// The code of a refusal.
    pub(crate) fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// The field of a refusal.
    pub(crate) fn field(&self) -> &str {
        self.body["error"]["field"].as_str().unwrap_or_default()
    }
}

pub(crate) fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut request = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(body);
    raw(address, &bytes)
}

/// Sends these bytes, and reads the answer to its end.
pub(crate) fn raw(address: &str, bytes: &[u8]) -> Answer {
    let text = text(address, bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    Answer { status, head: head.to_ascii_lowercase(), body }
}

/// The same, as it came.
pub(crate) fn text(address: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}
