//! Names that nobody else has, drawn from the operating system.

use waybill_domain::identity::MessageId;

use crate::fault::Fault;

/// A fresh message ID: `msg_` and 128 random bits.
pub(crate) fn message_id() -> Result<MessageId, Fault> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(Fault::NoRandomness)?;
    let text = format!("msg_{:032x}", u128::from_be_bytes(bits));
    MessageId::parse(text).map_err(|invalid| Fault::Refused(invalid.to_string()))
}

/// What tells one receiving of a message from every other: 64 random bits.
pub(crate) fn receiving() -> Result<String, Fault> {
    Ok(format!("{:016x}", getrandom::u64().map_err(Fault::NoRandomness)?))
}
