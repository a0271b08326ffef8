//! The table of `docs/RELIABILITY.md`: histories that know one kind of fault each. `make reliability`.

use waybill_testkit::simulation::Setup;
use waybill_testkit::simulation::plan::{Fault, Only};

use crate::crowd::Crowd;
use crate::histories::number;

#[test]
fn what_each_fault_comes_to() {
    let seeds = number("WAYBILL_SEEDS").unwrap_or(1_000);
    println!(
        "| fault | times tried | deliveries | lost | duplicate effects, deduplicating recipient | duplicate \
         requests, plain recipient | sent after deadline: sender's clock | true time |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|"
    );
    let faults = Fault::ALL.iter().map(|fault| (format!("{fault:?}"), Some(Only::Fault(*fault))));
    let nothing = [("none".to_owned(), Some(Only::Nothing))];
    let calls = [("Calls".to_owned(), Some(Only::Calls)), ("all at once".to_owned(), None)];
    for (name, only) in nothing.into_iter().chain(faults).chain(calls) {
        let crowd = Crowd::of(0, seeds, None, Setup { only, ..Setup::default() });
        let tally = crowd.tally;
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            crowd.tried,
            tally.accepted,
            crowd.failures.len(),
            tally.duplicate_effects,
            tally.duplicate_applications,
            tally.after_deadline,
            tally.truly_after_deadline,
        );
        crowd.assert_clean();
        assert_eq!(tally.duplicate_effects, 0, "{name}");
    }
}
