//! What is really sent: delays, groups, attributes.

use serde_json::{Value, json};
use waybill_aws::SqsQueue;
use waybill_aws::clients::Limits;
use waybill_domain::envelope::WakeUp;
use waybill_domain::time::DurationMs;
use waybill_service::ports::{Burial, Outgoing, Queue as _};
use waybill_testkit::conformance::fixture::{delivery, pending};

use crate::stub::{Reply, Stub};

async fn queue() -> (Stub, SqsQueue) {
    let stub = Stub::start(|_| Reply::Answer(200, json!({ "MessageId": "m1" }))).await;
    let queue = SqsQueue::new(stub.clients(Limits::default()).await.sqs, "http://q/work", "http://q/dead");
    (stub, queue)
}

fn wakeup(tenant: &str, destination: &str) -> String {
    WakeUp::for_next_attempt(&pending(delivery(tenant, "evt", destination))).encode()
}

#[tokio::test]
async fn c19_c21_a_delay_is_whole_seconds_rounded_up_and_never_over_900() {
    let (stub, queue) = queue().await;
    for (delay_ms, expected) in [(0, 0), (1, 1), (1000, 1), (1001, 2), (899_001, 900), (900_000, 900)] {
        let outgoing = Outgoing { body: wakeup("acme", "books"), delay: DurationMs::from_ms(delay_ms) };
        queue.send(outgoing).await.unwrap();
        assert_eq!(stub.asked().last().unwrap().body["DelaySeconds"], expected, "{delay_ms} ms");
    }
    let asked = stub.asked().len();
    for delay_ms in [900_001, 54_524_000, u64::MAX] {
        let outgoing = Outgoing { body: wakeup("acme", "books"), delay: DurationMs::from_ms(delay_ms) };
        queue.send(outgoing).await.unwrap_err();
    }
    assert_eq!(stub.asked().len(), asked, "what is over the window is not even asked for");
}

#[tokio::test]
async fn messages_of_one_tenant_and_destination_share_a_group_and_no_others() {
    let (stub, queue) = queue().await;
    let sent = [("acme", "books"), ("acme", "books"), ("acme", "crm"), ("northwind", "books")];
    for (tenant, destination) in sent {
        let outgoing = Outgoing { body: wakeup(tenant, destination), delay: DurationMs::ZERO };
        queue.send(outgoing).await.unwrap();
    }
    let groups: Vec<Value> =
        stub.asked().into_iter().map(|asked| asked.body["MessageGroupId"].clone()).collect();
    assert_eq!(groups[0].as_str().unwrap().len(), 16);
    assert_eq!(groups[0], groups[1]);
    assert!(groups[0] != groups[2] && groups[0] != groups[3] && groups[2] != groups[3], "{groups:?}");
}

#[tokio::test]
async fn c37_a_burial_keeps_body_and_attributes_on_the_wire() {
    let (stub, queue) = queue().await;
    let attributes = vec![("reason", "undecodable".to_owned()), ("nothing", String::new())];
    queue.bury(Burial { body: "not json".to_owned(), attributes }).await.unwrap();
    let asked = stub.asked().remove(0);
    assert_eq!((asked.operation.as_str(), &asked.body["QueueUrl"]), ("SendMessage", &json!("http://q/dead")));
    assert_eq!(asked.body["MessageBody"], "not json");
    let expected = json!({"reason": {"DataType": "String", "StringValue": "undecodable"}});
    assert_eq!(asked.body["MessageAttributes"], expected, "SQS takes no empty value");
    assert_eq!(asked.body.get("MessageGroupId"), None);
}
