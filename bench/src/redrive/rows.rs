//! What stands in the file of some tenants, as one number.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

/// Every column of every row that belongs to a tenant.
const TABLES: [&str; 3] = [
    "SELECT * FROM delivery WHERE tenant = ? ORDER BY id",
    "SELECT payload.* FROM payload JOIN delivery ON payload.delivery = delivery.id WHERE tenant = ? ORDER BY id",
    "SELECT * FROM attempt WHERE tenant = ? ORDER BY delivery_id, number, token, witness",
];

/// A digest of all rows of `tenants`.
pub(super) fn digest(file: &Path, tenants: &[&str]) -> Vec<u8> {
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the file opens");
    let mut digest = Sha256::new();
    for (sql, tenant) in TABLES.iter().flat_map(|sql| tenants.iter().map(move |tenant| (sql, tenant))) {
        let mut select = conn.prepare(sql).expect("the tables stand");
        let columns = select.column_count();
        let mut rows = select.query([tenant]).expect("they can be read");
        let mut count = 0u64;
        while let Some(row) = rows.next().expect("a row") {
            count += 1;
            (0..columns).for_each(|column| add(&mut digest, row.get_ref(column).expect("a column")));
        }
        assert!(count > 0, "{tenant} has rows: {sql}");
        digest.update(count.to_be_bytes());
    }
    digest.finalize().to_vec()
}

/// Kind, length, bytes: so that no two rows run into each other.
fn add(digest: &mut Sha256, value: ValueRef<'_>) {
    let (kind, bytes) = match value {
        ValueRef::Null => (0u8, Vec::new()),
        ValueRef::Integer(number) => (1, number.to_be_bytes().to_vec()),
        ValueRef::Real(number) => (2, number.to_be_bytes().to_vec()),
        ValueRef::Text(bytes) => (3, bytes.to_vec()),
        ValueRef::Blob(bytes) => (4, bytes.to_vec()),
    };
    digest.update([kind]);
    digest.update((bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}
