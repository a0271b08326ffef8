//! W3C trace context on the wire: with the request, with the look-up, and never invented.

use waybill_domain::address::{Locality, RecipientUrl};
use waybill_domain::trace::TraceContext;
use waybill_service::ports::{Recipient as _, Request};
use waybill_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test]
async fn a_trace_goes_with_the_request_and_with_the_look_up() {
    let rows = [
        (None, None),
        (Some((PARENT, None)), Some((PARENT, None))),
        (Some((PARENT, Some("a=1,b=2"))), Some((PARENT, Some("a=1,b=2")))),
    ];
    for (kept, sent) in rows {
        let server = ScriptedServer::start(Script::always(Answer::status(200))).await.unwrap();
        let trace = kept.and_then(|(parent, state)| TraceContext::read(Some(parent), state));
        let request = || Request { trace: trace.clone(), ..request_to(&server.url("/hooks")) };
        attempt_by(&recipient(), request(), PLENTY).await;
        let at = RecipientUrl::parse("status_url", &server.url("/status"), Locality::AllowLocal).unwrap();
        recipient().look_up(request(), at, window(PLENTY)).await;
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        for received in requests {
            let header = |name: &str| {
                let mut found = received.headers.iter().filter(|(given, _)| given == name);
                let value = found.next().map(|(_, value)| value.clone());
                assert!(found.next().is_none(), "{name} once");
                value
            };
            assert_eq!(header("traceparent").as_deref(), sent.map(|(parent, _)| parent));
            assert_eq!(header("tracestate").as_deref(), sent.and_then(|(_, state)| state));
        }
    }
}
