//! One table: its keys, its indexes, and how texts are built so that they sort as they must.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `T#<tenant>#D#<delivery>` | `RECORD` | the record, with the keys of the indexes that it stands in |
//! | | `PAYLOAD#<digest>` | the frozen bytes, up to 16 KiB |
//! | | `ATTEMPT#<number>#<claim token>#<witness>` | evidence, never changed |
//! | `T#<tenant>#DAYS` | `<yyyy-mm-dd>` | the days that a tenant queued something on |
//! | `TENANTS` | `<tenant>` | the tenants there are |
//! | `HELD` | `<destination>` | the destinations that ever had something held |
//! | `T#<tenant>#ORDERS` | `<ULID>#<kind>` | an order; `*` for the tenant where it concerns more than one |
//! | `T#<tenant>#AUDIT` | `<number>`, `HEAD` | an entry of the audit, and the last one once more |
//! | `B#<destination>` | `BUDGET` | what is used of a destination's budget |
//! | `CONFIG` | `CURRENT`, `REVISION#<number>` | the configuration in force, and those that were |
//!
//! | index (keys only) | partition | sort |
//! |---|---|---|
//! | [`OPEN`] | `open_shard`: `O#<shard>` | `look_order`: look at, tenant, delivery |
//! | [`HELD`] | `held_to`: `B#<destination>` | `release_order`: deadline, tenant, delivery |
//! | | `held_to`: `BOOKS` | `release_order`: tenant of each book of the audit, `*` across them |
//! | | `held_to`: `ORDERS` | `release_order`: ULID, kind, tenant of each open order |
//! | [`DEAD`] | `dead_shard`: `T#<tenant>#DEAD#<shard>` | `dead_order`: destination, reason, ended at, delivery, deadline |
//! | [`BY_DAY`] | `day`: `T#<tenant>#<yyyy-mm-dd>` | `queued_order`: first queued at, delivery |
//!
//! The parts of a text are joined by `#`, which sorts before every character that a name may have;
//! times have 15 digits. So the order of the texts is the order of what they say, and each is
//! different from all others: a place in an index is the text that stands there.

use waybill_domain::fault::InvalidField;
use waybill_domain::identity::{DeliveryId, DeliveryKey, TenantId};
use waybill_domain::time::TimeMs;

/// The partition key of the table.
pub const PK: &str = "pk";
/// The sort key of the table.
pub const SK: &str = "sk";
/// When DynamoDB may delete an item: whole seconds. Cleans up; nothing ever relies on it.
pub const EXPIRES_AT: &str = "expires_at";

/// An index: its name and its two keys, both texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its partition key.
    pub partition: &'static str,
    /// Its sort key.
    pub sort: &'static str,
}

/// What is due for a look.
pub const OPEN: Index = Index { name: "open", partition: "open_shard", sort: "look_order" };
/// What is held.
pub const HELD: Index = Index { name: "held", partition: "held_to", sort: "release_order" };
/// Dead letters.
pub const DEAD: Index = Index { name: "dead", partition: "dead_shard", sort: "dead_order" };
/// Every delivery, by the day of its first queueing.
pub const BY_DAY: Index = Index { name: "by_day", partition: "day", sort: "queued_order" };

/// Every index of the table. All project their keys only.
pub const INDEXES: [Index; 4] = [OPEN, HELD, DEAD, BY_DAY];

/// Over how many partitions the open index is spread. Fixed: a reader asks all of them.
pub const OPEN_SHARDS: u32 = 8;
/// Over how many partitions a tenant's dead letters are spread.
pub const DEAD_SHARDS: u32 = 4;

/// The sort key of a record.
pub(crate) const RECORD: &str = "RECORD";
/// The beginning of a payload's sort key; its digest follows.
pub(crate) const PAYLOAD: &str = "PAYLOAD#";
/// The beginning of an attempt's sort key.
pub(crate) const ATTEMPT: &str = "ATTEMPT#";
/// The partition that names the tenants.
pub(crate) const TENANTS: &str = "TENANTS";
/// The partition that names the destinations with something held.
pub(crate) const HELD_TO: &str = "HELD";
/// The sort key of what is used of a budget, in the partition of its destination.
pub(crate) const BUDGET: &str = "BUDGET";
/// The partition of the configuration.
pub(crate) const CONFIG: &str = "CONFIG";
/// The sort key of the configuration that is in force.
pub(crate) const CURRENT: &str = "CURRENT";

/// A text that sorts after every other.
pub(crate) const LAST: &str = "~";

/// Where the items of a delivery live.
pub(crate) fn partition(key: &DeliveryKey) -> String {
    format!("T#{}#D#{}", key.tenant, key.delivery_id)
}

/// The key of the delivery that lives in this partition.
pub(crate) fn delivery_key(partition: &str) -> Result<DeliveryKey, InvalidField> {
    let parts = partition.strip_prefix("T#").and_then(|rest| rest.split_once("#D#"));
    let Some((tenant, id)) = parts else {
        return Err(InvalidField::new("pk", format!("{partition:?} is no delivery's"), "T#<tenant>#D#<id>"));
    };
    Ok(DeliveryKey { tenant: TenantId::parse(tenant)?, delivery_id: DeliveryId::parse(id)? })
}

/// The sort key of the evidence of an attempt under one claim, by one witness.
pub(crate) fn attempt(number: u32, token: &str, witness: &str) -> String {
    format!("{ATTEMPT}{number:010}#{token}#{witness}")
}

/// The partition that names the days of a tenant.
pub(crate) fn days(tenant: &str) -> String {
    format!("T#{tenant}#DAYS")
}

/// The partition of one day of a tenant in [`BY_DAY`].
pub(crate) fn day(tenant: &str, day: &str) -> String {
    format!("T#{tenant}#{day}")
}

/// The day of a time, in UTC.
pub(crate) fn date(at: TimeMs) -> String {
    at.to_string().chars().take(10).collect()
}

/// The partition of a shard in [`OPEN`].
pub(crate) fn open_shard(shard: u32) -> String {
    format!("O#{shard}")
}

/// The partition of a shard of a tenant in [`DEAD`].
pub(crate) fn dead_shard(tenant: &str, shard: u32) -> String {
    format!("T#{tenant}#DEAD#{shard}")
}

/// The partition of a destination in [`HELD`].
pub(crate) fn held_to(destination: &str) -> String {
    format!("B#{destination}")
}

/// The shard of a delivery, of so many. IDs are digests: they spread by themselves.
pub(crate) fn shard(id: &DeliveryId, shards: u32) -> u32 {
    id.as_str().bytes().map(u32::from).sum::<u32>() % shards
}

/// A time as 15 digits, held at the ends of what these can say.
pub(crate) fn digits(at: TimeMs) -> String {
    format!("{:015}", at.as_unix_ms().clamp(0, LATEST))
}

/// Where a deadline would stand and there is none: after all others.
pub(crate) const NEVER: &str = "999999999999999";

const LATEST: i64 = 999_999_999_999_998;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_as_what_they_say() {
        let id = DeliveryId::parse("whd_00000000000000000000000000").unwrap();
        let name =
            |d: &str, reason: &str, ms| format!("{d}#{reason}#{}#{id}", digits(TimeMs::from_unix_ms(ms)));
        let sorted = [
            name("a", "timeout", 9),
            name("a", "timeout", 10),
            name("a", "unavailable", 1),
            name("a-b", "timeout", 1),
            name("a.b", "timeout", 1),
            name("a0", "timeout", 1),
        ];
        assert!(sorted.is_sorted(), "{sorted:?}");
        assert!(digits(TimeMs::from_unix_ms(i64::MAX)).as_str() < NEVER);
        assert_eq!(digits(TimeMs::from_unix_ms(-5)), "000000000000000");
        assert_eq!(date(TimeMs::from_unix_ms(1_767_225_600_000)), "2026-01-01");
    }

    #[test]
    fn a_partition_leads_back_to_its_delivery() {
        let key = DeliveryKey {
            tenant: TenantId::parse("T.D").unwrap(),
            delivery_id: DeliveryId::parse("whd_0123456789ABCDEFGHJKMNPQRS").unwrap(),
        };
        assert_eq!(delivery_key(&partition(&key)).unwrap(), key);
        for other in ["TENANTS", "T#acme#DAYS", "T#acme#D#x", "T#a/b#D#whd_0123456789ABCDEFGHJKMNPQRS"] {
            assert!(delivery_key(other).is_err(), "{other}");
        }
    }

    #[test]
    fn the_table_that_terraform_makes_has_these_keys_and_indexes() {
        let written = include_str!("../../../infra/table.tf");
        let terraform: String = written.split_whitespace().collect::<Vec<_>>().join(" ");
        for Index { name, partition, sort } in INDEXES {
            let index = format!("{name} = {{ partition = \"{partition}\", sort = \"{sort}\" }}");
            assert!(terraform.contains(&index), "{index}");
        }
        let made = terraform.matches("partition = \"").count();
        assert_eq!(made, INDEXES.len(), "an index that nobody reads costs a write unit each time");
        for key in [format!("hash_key = \"{PK}\""), format!("range_key = \"{SK}\"")] {
            assert!(terraform.contains(&key), "{key}");
        }
        assert!(terraform.contains(&format!("attribute_name = \"{EXPIRES_AT}\"")));
        assert!(terraform.contains("projection_type = \"KEYS_ONLY\""));
    }

    #[test]
    fn shards_are_spread_evenly() {
        let mut counts = [0_u32; OPEN_SHARDS as usize];
        for n in 0..8000 {
            let id = DeliveryId::derive(
                &TenantId::parse("acme").unwrap(),
                &waybill_domain::identity::EventId::parse(format!("evt-{n}")).unwrap(),
                &waybill_domain::identity::DestinationName::parse("books").unwrap(),
            );
            counts[shard(&id, OPEN_SHARDS) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
