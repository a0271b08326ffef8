//! `make bench`: measures this build on this machine and writes what it saw into docs/BENCHMARKS.md.
//!
//! Each measurement owns one section of that file and replaces it alone, so that one can be repeated
//! without the others. Nothing here decides anything for Waybill; a promise that a measurement finds
//! broken (a delivery lost, sent twice, another tenant's row changed) ends it with a failure, a figure
//! that misses its target is written down as it is.

mod capacity;
mod costs;
mod lambda;
mod load;
mod machine;
mod peer;
mod publisher;
mod recipient;
mod reconciler;
mod redrive;
mod report;
mod serve;
mod span;
mod tarpit;

use std::process::ExitCode;

const USAGE: &str = "usage: waybill-bench reconciler|redrive|serve|capacity|peer|lambda|tarpit|costs (make bench runs all but \
     the last two; make costs runs the last)";

fn main() -> ExitCode {
    let Some(what) = std::env::args().nth(1) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match what.as_str() {
        "reconciler" => runtime.block_on(reconciler::measure()),
        "redrive" => runtime.block_on(redrive::measure()),
        "capacity" => runtime.block_on(capacity::measure()),
        "lambda" => lambda::measure(),
        "costs" => costs::write(),
        "peer" => runtime.block_on(peer::measure()),
        "serve" => runtime.block_on(load::measure()),
        "tarpit" => runtime.block_on(tarpit::measure()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
