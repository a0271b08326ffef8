//! What many callers at once do to `waybill serve`: nothing to those that come after them.

mod support;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use support::{Home, TOKEN, http};

const EVENT: &str = r#"{"event_id":"e1","tenant":"acme","type":"lease.signed","payload":{}}"#;

#[test]
fn more_connections_than_there_are_places_are_told_so_and_a_place_that_is_left_is_taken() {
    let home = Home::new();
    let mut serving = home.serve(&["--allow-local"]);
    let silent: Vec<TcpStream> = (0..512).map(|_| TcpStream::connect(&serving.address).unwrap()).collect();
    let answer = serving.publish(EVENT);
    assert_eq!((answer.status, answer.code()), (503, "overloaded"));
    assert!(answer.head.contains("\r\nretry-after: 1"), "{}", answer.head);
    assert!(home.deliveries().is_empty());
    drop(silent);
    let began = Instant::now();
    while serving.publish(EVENT).status != 202 {
        assert!(began.elapsed() < Duration::from_secs(5), "no place was left: {}", home.log());
    }
    assert_eq!(
        http::raw(&serving.address, b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").status,
        200
    );
    assert!(serving.is_alive());
}

#[test]
fn a_caller_that_says_nothing_more_is_answered() {
    let home = Home::new();
    let serving = home.serve(&["--allow-local"]);
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let length = EVENT.len();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer {TOKEN}\r\n\
         content-length: {length}\r\n\r\n{EVENT}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer:?}");
}
