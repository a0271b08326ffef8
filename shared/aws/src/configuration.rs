//! The history of the configuration: documents in S3, and in the ledger's table a pointer to the one in
//! force.
//!
//! A document lies under its revision, which is the digest of its text, and never changes.

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::primitives::ByteStream;
use waybill_domain::audit::Entry;
use waybill_domain::identity::ConfigRevision;
use waybill_service::office::{Entered, Revision, Revisions};
use waybill_service::ports::{Cursor, Page, PortResult};

use crate::fault::{Fault, LEDGER, of_sdk};
use crate::office::AwsOffice;
use crate::office_items::{built, from_text, to_text};
use crate::range;
use crate::table::{self, CONFIG, CURRENT};

/// The attribute by which the pointer is compared.
const NUMBER: &str = "number";
/// The attribute that holds a revision's text.
const IN_FORCE: &str = "in_force";

impl Revisions for AwsOffice {
    async fn in_force(&self) -> PortResult<Option<Revision>> {
        self.item(CONFIG, CURRENT).await?.map(|item| from_text(&item, IN_FORCE)).transpose()
    }

    async fn document(&self, revision: &ConfigRevision) -> PortResult<Option<String>> {
        let getting = self.clients.s3.get_object().bucket(&self.bucket).key(document(revision));
        let object = match getting.send().await {
            Ok(object) => object,
            Err(error) if error.as_service_error().is_some_and(|refusal| refusal.is_no_such_key()) => {
                return Ok(None);
            }
            Err(error) => return Err(of_sdk(LEDGER, error)),
        };
        let bytes =
            object.body.collect().await.map_err(|error| {
                Fault::Passing(format!("the configuration broke off: {error}")).at(LEDGER)
            })?;
        let text = String::from_utf8(bytes.to_vec());
        text.map(Some).map_err(|_| Fault::Refused("the configuration is not UTF-8".to_owned()).at(LEDGER))
    }

    async fn install(&self, revision: &Revision, text: &str, entry: &Entry) -> PortResult<Entered> {
        // First: what is in force can always be read.
        let body = ByteStream::from(text.as_bytes().to_vec());
        let putting =
            self.clients.s3.put_object().bucket(&self.bucket).key(document(&revision.revision)).body(body);
        match putting.if_none_match("*").send().await {
            Err(error) if error.code() == Some("PreconditionFailed") => {} // It lies there already.
            done => drop(done.map_err(|error| of_sdk(LEDGER, error))?),
        }

        let mut puts = Vec::from(self.of_entry(entry)?);
        let overtaken = puts.len();
        puts.push(self.pointer(revision)?);
        let history = self.revision_item(revision, &place(revision.number))?;
        let history = history.condition_expression("attribute_not_exists(#c)");
        puts.push(built(history.expression_attribute_names("#c", table::PK))?);
        self.transact(puts, overtaken).await
    }

    async fn history(&self, limit: usize, from: Option<&Cursor>) -> PortResult<Page<Revision>> {
        let to = range::place("history", from)?.map_or_else(|| place(u64::MAX), range::before);
        let (items, is_more) = self.items(CONFIG, (REVISION, &to), true, limit).await?;
        let revisions = items.iter().map(|item| from_text::<Revision>(item, IN_FORCE));
        let revisions = revisions.collect::<PortResult<Vec<_>>>()?;
        let last = revisions.last().filter(|_| is_more);
        let next = last.map(|revision| range::cursor("history", &place(revision.number)));
        Ok(Page { items: revisions, next })
    }
}

impl AwsOffice {
    fn pointer(&self, revision: &Revision) -> PortResult<Put> {
        let put = self.revision_item(revision, CURRENT)?;
        built(match revision.number {
            1 => put
                .condition_expression("attribute_not_exists(#c)")
                .expression_attribute_names("#c", table::PK),
            number => put
                .condition_expression("#c = :before")
                .expression_attribute_names("#c", NUMBER)
                .expression_attribute_values(":before", AttributeValue::N((number - 1).to_string())),
        })
    }

    fn revision_item(
        &self,
        revision: &Revision,
        sort: &str,
    ) -> PortResult<aws_sdk_dynamodb::types::builders::PutBuilder> {
        let put = Put::builder()
            .table_name(&self.table)
            .item(table::PK, AttributeValue::S(CONFIG.to_owned()))
            .item(table::SK, AttributeValue::S(sort.to_owned()))
            .item(NUMBER, AttributeValue::N(revision.number.to_string()))
            .item(IN_FORCE, AttributeValue::S(to_text(revision)?));
        Ok(put)
    }
}

/// The beginning of the sort keys of the history.
const REVISION: &str = "REVISION#";

/// The sort key of a place in the history.
fn place(number: u64) -> String {
    format!("{REVISION}{number:020}")
}

/// The name of a document in the bucket.
fn document(revision: &ConfigRevision) -> String {
    format!("config/{revision}.toml")
}
