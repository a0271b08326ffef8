//! A TCP connection to one of the judged addresses, and to nothing else.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use waybill_domain::attempt::{NotSent, Phase};
use waybill_domain::outcome::Seen;

use crate::budget::{Budget, Elapsed};
use crate::report::{Fault, Stop};

/// Tries the addresses in the resolver's order. Each has an equal share of what is left, so that one
/// that swallows every packet leaves time for the next; one without a route (IPv6 where there is
/// none) fails at once and costs nothing.
pub(crate) async fn dial(addresses: &[SocketAddr], budget: &Budget) -> Result<TcpStream, Stop> {
    let mut last = String::from("there was no address to connect to");
    for (tried, address) in addresses.iter().enumerate() {
        let share = budget.share(addresses.len() - tried);
        last = match share.within(TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is written in one go; waiting for more only delays its last segment.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) if is_our_own_limit(&error) => return Err(Stop::NotSent(NotSent::NoResources)),
            Ok(Err(error)) => why(&error, address),
            Err(Elapsed) => format!("{address} did not accept a connection in time"),
        };
    }
    let note = match addresses.len() {
        0 | 1 => last,
        n => format!("none of {n} addresses could be connected to; the last: {last}"),
    };
    Err(Fault::saw(Seen::NotConnected, Phase::Connect, note).into())
}

/// Too many open files, no free port, no memory: the recipient has nothing to do with it.
fn is_our_own_limit(error: &io::Error) -> bool {
    let own = [libc::EMFILE, libc::ENFILE, libc::EADDRNOTAVAIL, libc::ENOBUFS, libc::ENOMEM];
    error.raw_os_error().is_some_and(|code| own.contains(&code))
}

fn why(error: &io::Error, address: &SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("connection refused by {address}"),
        io::ErrorKind::ConnectionReset => format!("connection reset by {address}"),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            format!("no route to {address}")
        }
        io::ErrorKind::TimedOut => format!("{address} did not accept a connection"),
        _ => format!("no connection to {address}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machines_limits_are_told_apart_from_the_recipients_refusals() {
        let rows = [
            (libc::EMFILE, true),
            (libc::ENFILE, true),
            (libc::EADDRNOTAVAIL, true),
            (libc::ENOBUFS, true),
            (libc::ECONNREFUSED, false),
            (libc::EHOSTUNREACH, false),
            (libc::ETIMEDOUT, false),
        ];
        for (code, is_ours) in rows {
            assert_eq!(is_our_own_limit(&io::Error::from_raw_os_error(code)), is_ours, "{code}");
        }
    }
}
