//! C97: a transaction whose answer was lost is repeated with the very same token and items, so that the
//! service knows it; another act is another transaction.

use serde_json::{Value, json};
use waybill_aws::AwsOffice;
use waybill_aws::clients::Limits;
use waybill_domain::audit::{Act, Draft};
use waybill_domain::authority::Book;
use waybill_service::acts::Desk;
use waybill_service::ports::Clock as _;
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;

use crate::stub::{Reply, Stub};

#[tokio::test]
async fn c97_a_repeated_transaction_is_the_same_and_another_act_is_another() {
    let mut lost = false;
    let stub = Stub::start(move |asked| match asked.operation.as_str() {
        // The first one is made, perhaps; nobody hears of it.
        "TransactWriteItems" if !std::mem::replace(&mut lost, true) => Reply::Cut,
        _ => Reply::Answer(200, json!({})),
    });
    let stub = stub.await;
    let office = AwsOffice::new(stub.clients(Limits::default()).await, "table", "bucket");
    let (clock, dice) = (VirtualClock::default(), SeededDice::new("desk", 1));
    let desk = Desk { office: &office, clock: &clock, dice: &dice };
    for subject in ["whd_1", "whd_2"] {
        let draft = Draft {
            book: Book::Across,
            at: clock.now(),
            who: "maria".to_owned(),
            act: Act::Closed,
            subject: subject.to_owned(),
            why: Some("written off".to_owned()),
            details: Value::Null,
        };
        assert!(desk.enter(draft, None).await.unwrap());
    }
    let asked = stub.asked();
    let made: Vec<&Value> = asked
        .iter()
        .filter(|asked| asked.operation == "TransactWriteItems")
        .map(|asked| &asked.body)
        .collect();
    let [first, repeated, other] = made[..] else { panic!("{} transactions", made.len()) };
    assert_eq!(first, repeated, "the same token, and the same items to the byte");
    assert!(first["ClientRequestToken"].is_string());
    assert_ne!(first["ClientRequestToken"], other["ClientRequestToken"]);
    assert_ne!(first["TransactItems"], other["TransactItems"]);
}
