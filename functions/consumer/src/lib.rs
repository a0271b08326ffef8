//! What the consumer function makes of an event; `main` wires it to AWS.

pub mod handler;
