//! A recipient in Rust: verifies, and applies each delivery once. Crates: base64, hmac, sha2, rusqlite.

// guide: from here on
use base64::prelude::{BASE64_STANDARD, Engine as _};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rusqlite::{Connection, TransactionBehavior};

/// Whether one of your secrets (base64, without `whsec_`) signed these bytes, within 300 s of `now_s`.
pub fn is_genuine(secrets: &[&str], header: impl Fn(&str) -> String, body: &[u8], now_s: u64) -> bool {
    let (delivery, sent_at) = (header("webhook-id"), header("webhook-timestamp"));
    if !sent_at.parse().is_ok_and(|sent_at: u64| sent_at.abs_diff(now_s) <= 300) {
        return false;
    }
    let signatures = header("webhook-signature");
    let given = signatures.split(' ').filter_map(|one| BASE64_STANDARD.decode(one.strip_prefix("v1,")?).ok());
    let keys: Vec<_> = secrets.iter().filter_map(|secret| BASE64_STANDARD.decode(secret).ok()).collect();
    given.into_iter().any(|signature| {
        keys.iter().any(|key| {
            let mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect("any length is a key");
            let mac = mac.chain_update(format!("{delivery}.{sent_at}.")).chain_update(body);
            mac.verify_slice(&signature).is_ok()
        })
    })
}

/// Applies a genuine delivery, unless it was. What it applies and that it did stand in one transaction.
pub fn receive(database: &mut Connection, delivery: &str, body: &[u8]) -> rusqlite::Result<()> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if transaction.execute("INSERT OR IGNORE INTO seen (delivery) VALUES (?)", [delivery])? == 1 {
        transaction.execute("INSERT INTO effects (body) VALUES (?)", [body])?; // your own effect
    }
    transaction.commit()
}
// guide: up to here
