//! The seeds of the fuzz target `queue_event`, through the function that it runs.

#[path = "../../../../../fuzz/properties/queue_event.rs"]
mod queue_event;
#[path = "../../../../../fuzz/properties/seeds.rs"]
mod inputs;

#[test]
fn whatever_a_queue_sends_only_its_own_messages_come_again() {
    inputs::run("queue_event", queue_event::check);
}
