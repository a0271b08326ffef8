//! One seed, one history: producers, workers, a reconciler and an operator on a virtual clock, with
//! a crash, a freeze, a duplicate, a loss or a failing store at any step; then the faults stop, and
//! everything that was accepted must end.
//!
//! Order of reading: [`world`] (what everybody runs on), [`actors`] (the use cases as actors),
//! [`plan`] (what a history is about), [`history`] (who moves next), [`auditor`] (what must hold),
//! [`coverage`] (what was met), [`sabotage`] (rules broken on purpose, to show that it is noticed).

pub mod actors;
pub mod auditor;
mod cast;
pub mod chronicle;
pub mod coverage;
pub mod document;
pub mod history;
mod in_force;
mod mischief;
pub mod operators;
mod orders;
pub mod plan;
pub mod sabotage;
mod sabotage_of_budgets;
mod sabotage_of_holds;
mod sabotage_of_runs;
pub mod sight;
pub mod world;

use self::auditor::Tally;
use self::coverage::Coverage;
use self::history::History;
use self::plan::Only;
use self::sabotage::Sabotage;

/// How a history is set up beside its seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Setup {
    /// The rule that is broken on purpose, if one is.
    pub sabotage: Option<Sabotage>,
    /// The one kind of fault that it knows; of every kind where absent.
    pub only: Option<Only>,
}

/// What a history that kept every promise was like.
#[derive(Debug, Clone)]
pub struct Account {
    /// What it met.
    pub coverage: Coverage,
    /// Faults that were tried.
    pub tried: u64,
    /// What reached the recipient.
    pub tally: Tally,
    /// Wake-ups sent for one delivery after the faults stopped, at most.
    pub most_wake_ups: u32,
    /// The same, without one for each request made since then.
    pub most_spare_wake_ups: u32,
}

/// A history in which a promise was broken.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The seed that repeats it.
    pub seed: u64,
    /// Which promise.
    pub broken: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}: {} (step by step: make replay SEED={})", self.seed, self.broken, self.seed)
    }
}

/// Runs the history of a seed.
pub fn run(seed: u64, setup: Setup) -> Result<Account, Failure> {
    let mut history = History::new(seed, setup, false);
    history.run().map_err(|broken| Failure { seed, broken })?;
    Ok(Account {
        coverage: history.chronicle().with_coverage(|coverage| coverage.clone()),
        tried: history.tried(),
        tally: history.auditor().tally(),
        most_wake_ups: history.auditor().most_wake_ups(),
        most_spare_wake_ups: history.auditor().most_spare_wake_ups(),
    })
}

/// Runs the history of a seed with a rule broken on purpose.
pub fn sabotaged(seed: u64, sabotage: Sabotage) -> Result<Account, Failure> {
    run(seed, Setup { sabotage: Some(sabotage), ..Setup::default() })
}

/// The history of a seed, step by step, and how it ended.
pub fn replay(seed: u64, setup: Setup) -> String {
    let mut history = History::new(seed, setup, true);
    let end = history.run();
    let mut lines = history.chronicle().lines();
    lines.push(match end {
        Ok(()) => "every promise was kept".to_owned(),
        Err(broken) => format!("BROKEN: {broken}"),
    });
    lines.join("\n")
}
