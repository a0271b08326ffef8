//! The consumer as Lambda runs it, and a Powertools handler beside it (`bench/on_lambda.py`).

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{machine, report};

/// Measures and writes the section.
pub(crate) fn measure() {
    let machine = machine::described();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut script = Command::new("python3");
    script.arg(here.join("on_lambda.py")).arg(machine::built());
    script.arg(here.join("../.cache/powertools/bin/python"));
    let said = script.stderr(Stdio::inherit()).output().expect("python3 runs");
    assert!(said.status.success(), "the functions can be measured");
    report::write("lambda", &format!("{machine}\n{}", String::from_utf8_lossy(&said.stdout)));
}
