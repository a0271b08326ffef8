//! Breadth-first, so that the first broken law is told by a shortest story.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::ground::Ground;
use crate::others::Move;
use crate::scopes::{Bounds, Plant, Terms};
use crate::state::{Broken, State};

/// What a search came to.
#[derive(Debug)]
pub(crate) struct Found {
    /// How many different states there are.
    pub(crate) states: usize,
    /// How many of them are ends.
    pub(crate) ends: usize,
    /// The records that were stored at the ends, by state.
    pub(crate) ended: BTreeMap<String, usize>,
    /// The law that was broken, and the story.
    pub(crate) broken: Option<(Broken, Vec<String>)>,
}

type Mark = u64;

/// A fixed hash: the same search on every machine.
fn mark(state: &State) -> Mark {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(state)
}

/// Looks at every state that can be reached within the bounds, until a law is broken.
pub(crate) fn search(terms: Terms, bounds: Bounds, plant: Option<Plant>) -> Found {
    let (mut ground, first) = Ground::new(terms, bounds, plant);
    let mut came_from: HashMap<Mark, Option<(Mark, u16)>> = HashMap::from([(mark(&first), None)]);
    let mut open = VecDeque::from([first.clone()]);
    let mut found = Found { states: 1, ends: 0, ended: BTreeMap::new(), broken: None };
    while let Some(state) = open.pop_front() {
        let at = mark(&state);
        let next = match state.check_state(&ground).and_then(|()| state.successors(&mut ground)) {
            Ok(next) => next,
            Err(broken) => {
                let story = tell(&mut ground, first, &came_from, at);
                found.broken = Some((broken, story));
                return found;
            }
        };
        let is_end = next.iter().all(|(what, _)| matches!(what, Move::Doubles(_))) && state.is_quiet();
        if is_end {
            found.ends += 1;
            let record = ground.record(state.stored());
            *found.ended.entry(record.state.to_string()).or_default() += 1;
            if let Err(broken) = state.check_end(&ground) {
                found.broken = Some((broken, tell(&mut ground, first, &came_from, at)));
                return found;
            }
        }
        for (n, (_, after)) in next.into_iter().enumerate() {
            let to = mark(&after);
            if let std::collections::hash_map::Entry::Vacant(place) = came_from.entry(to) {
                place.insert(Some((at, n as u16)));
                open.push_back(after);
                found.states += 1;
            }
        }
    }
    found
}

/// The way to a state, move by move.
fn tell(
    ground: &mut Ground,
    first: State,
    came_from: &HashMap<Mark, Option<(Mark, u16)>>,
    to: Mark,
) -> Vec<String> {
    let mut way = Vec::new();
    let mut at = to;
    while let Some((from, n)) = came_from[&at] {
        way.push(n);
        at = from;
    }
    let mut state = first;
    let mut story = Vec::new();
    for n in way.into_iter().rev() {
        let (what, next) = state.successors(ground).expect("it was taken before").swap_remove(n as usize);
        let record = ground.record(next.stored());
        let at = next.now.since(crate::state::T0);
        story.push(format!(
            "{at:>10}  {what:?} -> {} made={} rev={} due={} copy={:?} claim={} workers={:?}",
            record.state,
            record.attempts_made,
            record.revision,
            record.due_at.since(crate::state::T0),
            record.copy.as_ref().map(|copy| copy.as_str()),
            record.claim.is_some(),
            next.workers,
        ));
        state = next;
    }
    story
}
