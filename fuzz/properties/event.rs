//! An event as its producer writes it: its payload is the very bytes written, and nothing of it changes
//! when it is written in the other form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use waybill_service::event::Event;

use crate::said::is_one_short_line;

pub(crate) fn check(data: &[u8]) {
    let event = match Event::parse(data) {
        Ok(event) => event,
        Err(refused) => return is_one_short_line(&refused.to_string()),
    };
    let text = std::str::from_utf8(data).expect("an event is JSON, and JSON is UTF-8");
    assert!(!event.event_id.as_str().is_empty());
    if !text.contains("_base64") && !text.contains("\\u") {
        let payload = std::str::from_utf8(&event.payload).expect("a part of the text");
        assert!(text.contains(payload), "the payload is not what was written");
    }
    let written = json!({
        "event_id": event.event_id.as_str(),
        "tenant": event.tenant.as_str(),
        "type": event.event_type.as_str(),
        "destination": event.destination.as_ref().map(|name| name.as_str()),
        "scope": event.scope.as_ref().map(|scope| scope.as_str()),
        "deadline": event.deadline.map(|at| at.to_string()),
        "not_before": event.not_before.map(|at| at.to_string()),
        "payload_version": event.payload_version,
        "content_type": event.content_type,
        "payload_base64": STANDARD.encode(&event.payload),
    });
    assert_eq!(Event::parse(written.to_string().as_bytes()), Ok(event), "written again as {written}");
}
