//! The clauses of every conditional write, so that each can be left out in turn: a store without one is
//! broken, which is what it is for.

macro_rules! clauses {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// One clause of a conditional write.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Clause { $($(#[$doc])* $variant,)* }

        impl Clause {
            /// Every clause.
            pub const ALL: &[Clause] = &[$(Clause::$variant,)*];

            /// The clause in words.
            pub const fn as_str(self) -> &'static str {
                match self { $(Clause::$variant => $name,)* }
            }
        }
    };
}

clauses! {
    /// `Ledger::create`
    CreateAbsent = "create: there is no record yet",
    /// `Ledger::apply`
    ApplyState = "apply: the state is as expected",
    /// `Ledger::apply`
    ApplyRevision = "apply: the revision is as expected",
    /// `Ledger::add_attempt`
    EvidenceAbsent = "add_attempt: there is no such evidence yet",
    /// `Budgets::set_usage`
    UsageRevision = "set_usage: the revision is as expected",
    /// `Office::enter`
    EntrySequence = "enter: the entry's number follows the book's head",
    /// `Office::enter`
    EntryPrevious = "enter: the entry's hash follows the book's head",
    /// `Office::enter`
    EntryFollows = "enter: the entry follows the book's head, by number or by hash",
    /// `Office::enter`
    EnterOrder = "enter: the order's revision is as expected",
    /// `Office::progress`
    ProgressOrder = "progress: the order's revision is as expected",
    /// `Revisions::install`
    InstallNumber = "install: the number follows the revision in force",
    /// `Revisions::install`
    InstallSequence = "install: the entry's number follows the book's head",
    /// `Revisions::install`
    InstallPrevious = "install: the entry's hash follows the book's head",
    /// `Revisions::install`
    InstallFollows = "install: the entry follows the book's head, by number or by hash",
}

impl std::fmt::Display for Clause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
