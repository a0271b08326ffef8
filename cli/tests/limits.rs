//! What many callers at once do to `waybill serve`: nothing to those that come after them.

mod support;

use std::net::TcpStream;
use std::time::{Duration, Instant};

use support::{Home, http};

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
