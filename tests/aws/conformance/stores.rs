//! Secrets and the configuration: read, held for as long as it is said, and then read again.

use aws_sdk_dynamodb::types::AttributeValue;
use waybill_aws::{AwsOffice, AwsSecrets, secrets};
use waybill_domain::address::Locality;
use waybill_domain::destination::SecretRef;
use waybill_domain::time::DurationMs;
use waybill_http::{SecretError, Secrets as _};
use waybill_service::acts::Desk;
use waybill_service::config_file::{Rules, SecretStores};
use waybill_service::office::Revisions as _;
use waybill_service::revisions::ApplyError;
use waybill_service::source::{ConfigError, ConfigSource, LONGEST_HOLD};
use waybill_testkit::clock::VirtualClock;
use waybill_testkit::dice::SeededDice;
use waybill_tests_aws::place::{bucket, clients, name, table};

const RULES: Rules = Rules { locality: Locality::PublicOnly, secrets: SecretStores::Aws };

fn document(destination: &str) -> String {
    format!(
        "[destinations.{destination}]\ntenants = [\"acme\"]\nurl = \"https://hooks.example.com/in\"\n\
         secrets = [\"ssm:/waybill/acme\", \"secretsmanager:waybill/acme\"]\n"
    )
}

#[tokio::test]
async fn a_configuration_is_held_for_ten_seconds_and_no_longer() {
    let clients = clients().await;
    let (table, bucket) = (table(&clients).await, bucket(&clients).await);
    let clock = VirtualClock::default();
    let office = AwsOffice::new(clients.clone(), &table, &bucket);
    let desk = Desk { office: &office, clock: &clock, dice: &SeededDice::new("desk", 1) };
    let source = ConfigSource::new(office.clone(), RULES, clock.clone(), LONGEST_HOLD);
    assert!(matches!(source.current().await, Err(ConfigError::None)));

    let first = desk.apply(&document("books"), RULES, "maria", "the first").await.unwrap().revision;
    assert_eq!(source.current().await.unwrap().revision, first.revision);
    let second = desk.apply(&document("crm"), RULES, "maria", "another").await.unwrap().revision;
    assert_eq!((first.number, second.number), (1, 2));
    clock.advance(DurationMs::from_ms(LONGEST_HOLD.as_ms() - 1));
    assert_eq!(source.current().await.unwrap().revision, first.revision);
    clock.advance(DurationMs::from_ms(1));
    let current = source.current().await.unwrap();
    assert_eq!((&current.revision, current.destinations.len()), (&second.revision, 1));
    assert_eq!(office.document(&first.revision).await.unwrap(), Some(document("books")));

    // A document with faults is not applied; one that came there otherwise changes nothing.
    let refused = desk.apply("[destinations.x]", RULES, "maria", "try").await;
    assert!(matches!(refused, Err(ApplyError::Faulty(_))), "{refused:?}");
    let history = office.history(10, None).await.unwrap().items;
    assert_eq!(history, [second.clone(), first]);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let bad = serde_json::json!({ "number": 3, "revision": "bad", "signed": second.signed });
    let pointing = clients.dynamo.put_item().table_name(&table).item("pk", text("CONFIG"));
    let pointing = pointing.item("sk", text("CURRENT")).item("in_force", text(&bad.to_string()));
    pointing.send().await.unwrap();
    clock.advance(LONGEST_HOLD);
    assert_eq!(source.current().await.unwrap().revision, second.revision);
    let fresh = ConfigSource::new(office, RULES, clock, LONGEST_HOLD);
    assert!(fresh.current().await.is_err(), "who has nothing from before has nothing to go on with");
}

#[tokio::test]
async fn a_secret_is_held_for_five_minutes_and_no_longer() {
    let clients = clients().await;
    let clock = VirtualClock::default();
    let asked = AwsSecrets::new(clients.clone(), clock.clone());
    let (parameter, secret) = (format!("/{}", name("parameter")), name("secret"));
    let put = |value: &str| {
        let put = clients.ssm.put_parameter().name(&parameter).value(value).overwrite(true);
        put.r#type("SecureString".into()).send()
    };
    put("one").await.unwrap();
    clients.secrets_manager.create_secret().name(&secret).secret_string("other").send().await.unwrap();

    let of_ssm = SecretRef::parse("secrets", &format!("ssm:{parameter}")).unwrap();
    let of_manager = SecretRef::parse("secrets", &format!("secretsmanager:{secret}")).unwrap();
    assert_eq!(asked.resolve(&of_ssm).await.unwrap(), "one");
    assert_eq!(asked.resolve(&of_manager).await.unwrap(), "other");
    put("two").await.unwrap();
    clock.advance(DurationMs::from_ms(secrets::HOLD.as_ms() - 1));
    assert_eq!(asked.resolve(&of_ssm).await.unwrap(), "one");
    clock.advance(DurationMs::from_ms(1));
    assert_eq!(asked.resolve(&of_ssm).await.unwrap(), "two");

    for nowhere in ["ssm:/waybill/nowhere", "secretsmanager:waybill/nowhere"] {
        let missing = asked.resolve(&SecretRef::parse("secrets", nowhere).unwrap()).await;
        assert!(matches!(missing, Err(SecretError::Missing)), "{nowhere}: {missing:?}");
    }
    assert!(!format!("{asked:?}").contains("two"));
}
