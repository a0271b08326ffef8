//! The seeds of the fuzz target `gateway_event`, through the function that it runs.

#[path = "../../../../../fuzz/properties/gateway_event.rs"]
mod gateway_event;
#[path = "../../../../../fuzz/properties/seeds.rs"]
mod inputs;

#[test]
fn whatever_a_gateway_sends_is_answered_and_what_is_accepted_is_recorded() {
    inputs::run("gateway_event", gateway_event::check);
}
