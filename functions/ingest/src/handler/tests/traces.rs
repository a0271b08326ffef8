//! A producer's trace is kept with what it publishes, through either inlet.

use waybill_domain::delivery::Delivery;
use waybill_domain::identity::{DeliveryId, DeliveryKey, TenantId};

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Headers of a request.
type Lines<'h> = &'h [(&'h str, &'h str)];
/// `traceparent`, and `tracestate` where it is kept.
type Kept<'h> = (&'h str, Option<&'h str>);

async fn published(door: &Door, request: &Value) -> Delivery {
    let answer = door.answer(request).await;
    assert_eq!(answer.status_code, 202, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let delivery_id = DeliveryId::parse(body["deliveries"][0]["delivery_id"].as_str().unwrap()).unwrap();
    let key = DeliveryKey { tenant: TenantId::parse("acme").unwrap(), delivery_id };
    door.ledger.peek(&key).unwrap().delivery.clone()
}

#[tokio::test]
async fn a_valid_trace_is_kept_and_a_malformed_one_ignored() {
    let rows: [(Lines<'_>, Option<Kept<'_>>); 6] = [
        (&[], None),
        (&[("traceparent", PARENT)], Some((PARENT, None))),
        (&[("Traceparent", PARENT), ("TraceState", "a=1,b=2")], Some((PARENT, Some("a=1,b=2")))),
        (&[("traceparent", PARENT), ("tracestate", "A=1")], Some((PARENT, None))),
        (&[("traceparent", "00-nonsense"), ("tracestate", "a=1")], None),
        (
            &[(
                "traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            )],
            None,
        ),
    ];
    for (headers, kept) in rows {
        let mut request = request(EVENT.into(), false);
        for (name, value) in headers {
            request["headers"][name] = (*value).into();
        }
        let trace = published(&Door::new(), &request).await.trace;
        let trace = trace.map(|trace| (trace.parent.to_string(), trace.state));
        let kept = kept.map(|(parent, state)| (parent.to_owned(), state.map(str::to_owned)));
        assert_eq!(trace, kept, "{headers:?}");
    }
}

#[tokio::test]
async fn the_first_publish_decides_and_a_repeat_with_another_trace_changes_nothing() {
    let door = Door::new();
    let mut request = request(EVENT.into(), false);
    request["headers"]["traceparent"] = PARENT.into();
    let first = published(&door, &request).await;
    request["headers"]["traceparent"] = PARENT.replace("0af7", "1bf7").into();
    assert_eq!(published(&door, &request).await, first);
    assert_eq!(first.trace_id().as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
}
