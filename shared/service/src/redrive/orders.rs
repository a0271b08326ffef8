//! The orders about runs: start (from a plan, and only so), stop, resume.

use std::collections::{BTreeMap, VecDeque};

use serde_json::json;
use waybill_domain::audit::{Act, Draft};
use waybill_domain::authority::Book;
use waybill_domain::order::{Order, OrderBody, OrderId};
use waybill_domain::redrive::{Fate, Lane, ReleaseRate, Run, Standing, Tally};
use waybill_domain::time::TimeMs;

use super::plan::Plan;
use crate::acts::{ActError, Desk};
use crate::office::Office;
use crate::ports::{Clock, Dice};

/// How a run is started.
#[derive(Debug, Clone)]
pub struct Start {
    /// How fast, for each destination.
    pub rate: ReleaseRate,
    /// After how many releases it waits for a review.
    pub sample: Option<u64>,
    /// Not before this time.
    pub not_before: Option<TimeMs>,
}

/// What became of an order about a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunAct {
    /// It was done now.
    Done(Order),
    /// It had been done before: nothing was changed.
    Already(Order),
}

impl RunAct {
    /// The run as it stands.
    pub fn order(&self) -> &Order {
        match self {
            RunAct::Done(order) | RunAct::Already(order) => order,
        }
    }
}

/// A run of a plan that only leaves what it finds would judge anew later, and might release then what
/// nobody counted.
fn check_is_for_something(plan: &Plan) -> Result<(), ActError> {
    if plan.groups.is_empty() {
        return Err(ActError::Refused("the plan has no dead letters: there is nothing to start".to_owned()));
    }
    if plan.groups.iter().any(|group| !matches!(group.fate, Fate::Blocked(_))) {
        return Ok(());
    }
    let blocks = plan.blocks().into_iter();
    let blocks = blocks
        .map(|(block, count)| format!("{} ({count}): to release them, {}", block.as_str(), block.remedy()));
    let blocks: Vec<_> = blocks.collect();
    Err(ActError::Refused(format!("the plan releases nothing: {}; then plan anew", blocks.join("; "))))
}

impl<O: Office, C: Clock, D: Dice> Desk<'_, O, C, D> {
    /// Starts the run that a plan becomes. The same plan twice is one run.
    pub async fn start(&self, plan: &Plan, start: Start, by: &str, why: &str) -> Result<RunAct, ActError> {
        plan.check(self.clock.now())?;
        let book = plan.selection.book();
        if let Some(order) = self.office.order(&book, &plan.run).await? {
            return Ok(RunAct::Already(order));
        }
        check_is_for_something(plan)?;
        let started = self.sign(by, why);
        let draft = Draft {
            book: book.clone(),
            at: started.at,
            who: started.by.clone(),
            act: Act::RedriveStarted,
            subject: plan.run.to_string(),
            why: Some(started.why.clone()),
            details: json!({ "plan": plan, "rate": start.rate, "sample": start.sample, "not_before": start.not_before }),
        };
        let lanes: BTreeMap<_, _> = plan.destinations().map(|name| (name.clone(), Lane::default())).collect();
        let run = Run {
            selection: plan.selection.clone(),
            planned: plan.releasable(),
            started,
            rate: start.rate,
            sample: start.sample,
            not_before: start.not_before,
            reviews: plan.reviews.clone(),
            standing: Standing::Running,
            resumed_at: None,
            lanes,
            in_hand: Vec::new(),
            hand_of: None,
            tally: Tally::default(),
            watched: Vec::new(),
            outcomes: VecDeque::new(),
        };
        let change = Order::place(plan.run.clone(), book.clone(), OrderBody::Redrive(Box::new(run)));
        if self.enter(draft, Some(&change)).await? {
            return Ok(RunAct::Done(change.after));
        }
        match self.office.order(&book, &plan.run).await? {
            Some(order) => Ok(RunAct::Already(order)),
            None => Err(ActError::Unknown(format!("the run {} cannot be read back", plan.run))),
        }
    }

    /// Stops a run: it releases nothing more, and what it released and is not sent yet is held.
    pub async fn stop(&self, id: &OrderId, books: &[Book], by: &str, why: &str) -> Result<RunAct, ActError> {
        let signed = self.sign(by, why);
        let stop = |run: &mut Run| match run.standing {
            Standing::Running | Standing::Sampled(_) => {
                run.standing = Standing::Stopped(signed.clone());
                Ok(true)
            }
            Standing::Stopped(_) | Standing::Halted(_) => Ok(false),
            Standing::Finished(_) => Err("has released everything: hold its destination instead"),
        };
        self.change_run(id, books, by, why, Act::RedriveStopped, stop).await
    }

    /// Lets a stopped, halted or sampled run go on.
    pub async fn resume(
        &self,
        id: &OrderId,
        books: &[Book],
        by: &str,
        why: &str,
    ) -> Result<RunAct, ActError> {
        let now = self.clock.now();
        let resume = |run: &mut Run| match run.standing {
            Standing::Running => Ok(false),
            Standing::Finished(_) => Err("has released everything"),
            Standing::Stopped(_) | Standing::Halted(_) | Standing::Sampled(_) => {
                run.resume(now);
                Ok(true)
            }
        };
        self.change_run(id, books, by, why, Act::RedriveResumed, resume).await
    }

    /// Changes a run with an audit entry; `change` says whether there is anything to be changed.
    pub(super) async fn change_run(
        &self,
        id: &OrderId,
        books: &[Book],
        by: &str,
        why: &str,
        act: Act,
        change: impl Fn(&mut Run) -> Result<bool, &'static str>,
    ) -> Result<RunAct, ActError> {
        loop {
            let order = self.find(id, books).await?;
            let Some((order, mut run)) = order.and_then(|order| match &order.body {
                OrderBody::Redrive(run) => Some((order.clone(), run.clone())),
                _ => None,
            }) else {
                return Err(ActError::Unknown(format!("there is no redrive run {id}")));
            };
            match change(&mut run) {
                Ok(true) => {}
                Ok(false) => return Ok(RunAct::Already(order)),
                Err(sentence) => return Err(ActError::Refused(format!("{id} {sentence}"))),
            }
            let draft = Draft {
                book: order.book.clone(),
                at: self.clock.now(),
                who: by.to_owned(),
                act,
                subject: id.to_string(),
                why: Some(why.to_owned()),
                details: json!({ "released": run.tally.released, "planned": run.planned }),
            };
            let next = order.becoming(OrderBody::Redrive(run));
            if self.enter(draft, Some(&next)).await? {
                return Ok(RunAct::Done(next.after));
            }
        }
    }
}
