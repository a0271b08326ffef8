//! The frozen bytes: small ones beside the record, large ones in S3.
//!
//! A payload lies under its digest, so that two publishers of one event never overwrite each
//! other: whose record is created says which bytes count, and the other's are cleaned up.

use std::future::Future;

use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use waybill_domain::identity::DeliveryKey;
use waybill_service::ports::PortResult;

use crate::fault::{Fault, LEDGER, of_sdk};

/// Up to this size a payload lies in the table; from there on S3 is cheaper.
pub const MOST_IN_TABLE: usize = 16 * 1024;

/// The record's attribute that says where its payload lies.
pub(crate) const LIES_AT: &str = "payload";

/// Where payloads lie that are too large for the table.
pub trait BigPayloads: Send + Sync {
    /// Stores the bytes under `name`, durably.
    fn put(&self, name: &str, bytes: Bytes) -> impl Future<Output = PortResult<()>> + Send;

    /// The bytes under `name`.
    fn get(&self, name: &str) -> impl Future<Output = PortResult<Option<Bytes>>> + Send;
}

/// Large payloads in a bucket.
#[derive(Debug, Clone)]
pub struct S3Payloads {
    client: aws_sdk_s3::Client,
    bucket: String,
}

impl S3Payloads {
    /// In this bucket.
    pub fn new(client: aws_sdk_s3::Client, bucket: impl Into<String>) -> Self {
        Self { client, bucket: bucket.into() }
    }
}

impl BigPayloads for S3Payloads {
    async fn put(&self, name: &str, bytes: Bytes) -> PortResult<()> {
        let putting = self.client.put_object().bucket(&self.bucket).key(name).body(ByteStream::from(bytes));
        putting.send().await.map(drop).map_err(|error| of_sdk(LEDGER, error))
    }

    async fn get(&self, name: &str) -> PortResult<Option<Bytes>> {
        match self.client.get_object().bucket(&self.bucket).key(name).send().await {
            Ok(object) => match object.body.collect().await {
                Ok(bytes) => Ok(Some(bytes.into_bytes())),
                Err(error) => Err(Fault::Passing(format!("a payload broke off: {error}")).at(LEDGER)),
            },
            Err(error) if error.as_service_error().is_some_and(|refusal| refusal.is_no_such_key()) => {
                Ok(None)
            }
            Err(error) => Err(of_sdk(LEDGER, error)),
        }
    }
}

/// Where one payload lies. Written as `table:<digest>` or `s3:<digest>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shelf {
    Table(String),
    Big(String),
}

impl Shelf {
    /// Where these bytes go.
    pub(crate) fn of(payload: &Bytes) -> Self {
        let digest = Sha256::digest(payload).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        if payload.len() <= MOST_IN_TABLE { Shelf::Table(digest) } else { Shelf::Big(digest) }
    }

    pub(crate) fn parse(text: &str) -> PortResult<Self> {
        match text.split_once(':') {
            Some(("table", digest)) => Ok(Shelf::Table(digest.to_owned())),
            Some(("s3", digest)) => Ok(Shelf::Big(digest.to_owned())),
            _ => Err(Fault::Refused(format!("no payload lies at {text:?}")).at(LEDGER)),
        }
    }

    pub(crate) fn written(&self) -> String {
        match self {
            Shelf::Table(digest) => format!("table:{digest}"),
            Shelf::Big(digest) => format!("s3:{digest}"),
        }
    }
}

/// The name of a large payload in its bucket: tenants are kept apart there too.
pub(crate) fn name(key: &DeliveryKey, digest: &str) -> String {
    format!("payloads/{}/{}/{digest}", key.tenant, key.delivery_id)
}
