//! The house as a whole: who may depend on whom, that every known fault has its test, and what goes in and
//! comes out (events, the description of the API, the list of metrics, findings).

mod arrows;
mod cases;
mod description;
mod doors;
mod events;
mod examinations;
mod instruments;
