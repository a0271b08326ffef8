//! Waybill's recipient over HTTPS: one attempt, one connection, one honest report.
//!
//! [`HttpRecipient`] tells what happened and nothing more: what a status means is decided by
//! `waybill_domain::outcome`, and what follows by the service. Three promises hold on every path:
//!
//! - **Nothing leaves without the right to.** The wall clock is read again, and
//!   [`SendWindow::check`](waybill_domain::attempt::SendWindow::check) decides, right before the
//!   first byte.
//! - **No doubt is hidden and none is invented.** Whether a byte of the request went out is counted
//!   at the socket, below TLS, and that alone decides between "certainly not applied" and "nobody
//!   can tell".
//! - **The other side cannot hurt us.** Time, head and body of an answer are bounded; redirects are
//!   not followed, nothing is decompressed, every address is judged before it is connected to.
//!
//! Nothing here logs. What goes into a report is fit for a log: no paths, queries, headers, payloads
//! or secrets.
//!
//! Order of reading: [`recipient`] (the steps), then each step: [`secrets`], [`resolve`], `connect`,
//! [`tls`], `request`, `exchange`, `answer`; then `probe` (test events) and `reach` (no request at all); beside them `budget`, `wire`, `redact`, `report`.

pub mod recipient;
pub mod secrets;
pub mod resolve;
mod connect;
pub mod tls;
mod request;
mod exchange;
mod answer;
mod budget;
mod wire;
mod redact;
mod report;
mod probe;
mod reach;

pub use recipient::HttpRecipient;
pub use resolve::{ResolveError, Resolver, SystemResolver};
pub use secrets::{EnvSecrets, SecretError, Secrets};
pub use tls::Tls;
