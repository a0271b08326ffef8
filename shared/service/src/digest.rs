//! SHA-256 as it is written everywhere: in lower-case hexadecimal.

use sha2::{Digest as _, Sha256};

/// The digest of some bytes, 64 digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
