//! Asks DynamoDB what each call consumed, and adds it up; counts the requests to SQS.

use std::fmt;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextMut,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

/// What was consumed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Costs {
    pub(crate) write_units: f64,
    pub(crate) writes: f64,
    pub(crate) read_units: f64,
    pub(crate) reads: f64,
    pub(crate) sqs_requests: f64,
}

impl Costs {
    /// One delivery's share of what so many deliveries cost.
    pub(crate) fn each_of(self, deliveries: usize) -> Self {
        let each = |total: f64| total / deliveries as f64;
        Self {
            write_units: each(self.write_units),
            writes: each(self.writes),
            read_units: each(self.read_units),
            reads: each(self.reads),
            sqs_requests: each(self.sqs_requests),
        }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            write_units: self.write_units + other.write_units,
            writes: self.writes + other.writes,
            read_units: self.read_units + other.read_units,
            reads: self.reads + other.reads,
            sqs_requests: self.sqs_requests + other.sqs_requests,
        }
    }
}

/// A row of the table in docs/BENCHMARKS.md, behind its name.
impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { write_units, writes, read_units, reads, sqs_requests } = self;
        write!(f, "{write_units:.1} | {writes:.1} | {read_units:.1} | {reads:.1} | {sqs_requests:.1}")
    }
}

/// Counts what passes through one client.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Costs>>);

impl Meter {
    /// What was consumed since the last time that somebody took it.
    pub(crate) fn take(&self) -> Costs {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn write(&self, consumed: Option<&ConsumedCapacity>) {
        let mut costs = self.0.lock().unwrap();
        costs.writes += 1.0;
        costs.write_units += consumed.and_then(ConsumedCapacity::capacity_units).unwrap();
    }

    fn read(&self, consumed: Option<&ConsumedCapacity>) {
        let mut costs = self.0.lock().unwrap();
        costs.reads += 1.0;
        costs.read_units += consumed.and_then(ConsumedCapacity::capacity_units).unwrap();
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let (input, total) = (context.input_mut(), Some(ReturnConsumedCapacity::Indexes));
        if let Some(put) = input.downcast_mut::<PutItemInput>() {
            put.return_consumed_capacity = total;
        } else if let Some(update) = input.downcast_mut::<UpdateItemInput>() {
            update.return_consumed_capacity = total;
        } else if let Some(get) = input.downcast_mut::<GetItemInput>() {
            get.return_consumed_capacity = total;
        } else if let Some(query) = input.downcast_mut::<QueryInput>() {
            query.return_consumed_capacity = total;
        }
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Ok(output) = context.output_or_error() else { return Ok(()) };
        if let Some(put) = output.downcast_ref::<PutItemOutput>() {
            self.write(put.consumed_capacity());
        } else if let Some(update) = output.downcast_ref::<UpdateItemOutput>() {
            self.write(update.consumed_capacity());
        } else if let Some(get) = output.downcast_ref::<GetItemOutput>() {
            self.read(get.consumed_capacity());
        } else if let Some(query) = output.downcast_ref::<QueryOutput>() {
            self.read(query.consumed_capacity());
        }
        Ok(())
    }
}

/// Counts every request of an SQS client.
#[derive(Debug, Clone)]
pub(crate) struct SqsMeter(pub(crate) Meter);

impl Intercept for SqsMeter {
    fn name(&self) -> &'static str {
        "SqsMeter"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.0.lock().unwrap().sqs_requests += 1.0;
        Ok(())
    }
}
