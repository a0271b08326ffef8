//! A TCP connection to one of the judged addresses, and to nothing else.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::Seen;

use crate::budget::{Budget, Elapsed};
use crate::report::Fault;

/// Tries the addresses in the resolver's order. Each has an equal share of what is left, so that one
/// that swallows every packet leaves time for the next; one without a route (IPv6 where there is
/// none) fails at once and costs nothing.
pub(crate) async fn dial(addresses: &[SocketAddr], budget: &Budget) -> Result<TcpStream, Fault> {
    let mut last = String::from("there was no address to connect to");
    for (tried, address) in addresses.iter().enumerate() {
        let share = budget.share(addresses.len() - tried);
        last = match share.within(TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is written in one go; waiting for more only delays its last segment.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => why(&error, address),
            Err(Elapsed) => format!("{address} did not accept a connection in time"),
        };
    }
    let note = match addresses.len() {
        0 | 1 => last,
        n => format!("none of {n} addresses could be connected to; the last: {last}"),
    };
    Err(Fault::saw(Seen::NotConnected, Phase::Connect, note))
}

fn why(error: &io::Error, address: &SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {address}"),
        io::ErrorKind::ConnectionReset => format!("connection reset by {address}"),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            format!("no route to {address}")
        }
        io::ErrorKind::TimedOut => format!("{address} did not accept a connection"),
        // Among these are this machine's own limits, such as too many open files.
        _ => format!("no connection to {address}: {error}"),
    }
}
