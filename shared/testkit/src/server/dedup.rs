//! A recipient that does what the documentation asks of recipients: one effect per idempotency key.

use std::collections::BTreeMap;
use std::io;

use super::{Received, Script, ScriptedServer, Setting};

/// A scripted recipient that deduplicates by `idempotency-key`: the first applied request of a key
/// has an effect, every later one has none.
#[derive(Debug)]
pub struct DeduplicatingRecipient {
    /// The server behind it.
    pub server: ScriptedServer,
}

/// What became of one idempotency key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that arrived in full.
    pub requests: usize,
    /// Requests that were applied, or would have been without deduplication.
    pub applied: usize,
    /// Business effects: one at most.
    pub effects: usize,
}

impl DeduplicatingRecipient {
    /// Listens on 127.0.0.1 over plain HTTP.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::set(Setting::new(script)).await
    }

    /// Listens as the setting says.
    pub async fn set(setting: Setting) -> io::Result<Self> {
        Ok(Self { server: setting.start().await? })
    }

    /// What became of every key. Requests without one stand under the empty key, and each applied
    /// one of them is an effect: nothing could tell them apart.
    pub fn tallies(&self) -> BTreeMap<String, Tally> {
        let mut tallies = BTreeMap::<String, Tally>::new();
        for request in self.server.requests() {
            let key = request.idempotency_key().unwrap_or_default().to_owned();
            let keyed = !key.is_empty();
            let tally = tallies.entry(key).or_default();
            tally.requests += usize::from(request.complete);
            tally.applied += usize::from(request.applied);
            tally.effects = if keyed { tally.applied.min(1) } else { tally.applied };
        }
        tallies
    }

    /// What became of one key.
    pub fn tally(&self, key: &str) -> Tally {
        self.tallies().get(key).copied().unwrap_or_default()
    }

    /// Business effects in all.
    pub fn effects(&self) -> usize {
        self.tallies().values().map(|tally| tally.effects).sum()
    }

    /// Every request with this key, in the order of arrival.
    pub fn requests_of(&self, key: &str) -> Vec<Received> {
        let mut requests = self.server.requests();
        requests.retain(|request| request.idempotency_key() == Some(key));
        requests
    }
}
