//! A rollback: workers, producers and reconcilers of this version and of the next over one ledger and one queue;
//! then one version is gone, and the other has what it left.

use waybill_domain::delivery::{Record, State};
use waybill_domain::hold::HoldRule;
use waybill_domain::identity::EventId;
use waybill_domain::time::DurationMs;
use waybill_service::event::Event;
use waybill_service::reconcile::TickLimits;
use waybill_testkit::dice::Lots;
use waybill_testkit::faults::{Actor, Order, Progress};
use waybill_testkit::next_version;
use waybill_testkit::scripted::Reaction;
use waybill_testkit::simulation::actors::WorkerTerms;
use waybill_testkit::simulation::world::World;

use crate::scene::{BOOKS, Scene};

const EVENTS: u64 = 6;

/// Longer than the visibility timeout, and than it takes to become stale.
const A_WHILE: DurationMs = DurationMs::from_secs(400);

/// Which version somebody is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    This,
    Next,
}

impl Version {
    fn of(self, world: &World) -> World {
        match self {
            Version::This => world.clone(),
            Version::Next => world.of_the_next_version(),
        }
    }
}

/// One history of two versions.
struct Mixed {
    scene: Scene,
    lots: Lots,
    players: Vec<(Version, Actor)>,
    names: u64,
}

impl Mixed {
    fn new(seed: u64) -> Self {
        Self { scene: Scene::new(20), lots: Lots::new(seed), players: Vec::new(), names: 0 }
    }

    fn event(&self, n: u64) -> Event {
        Event { event_id: EventId::parse(format!("e{n}")).unwrap(), ..self.scene.event() }
    }

    fn record(&self, n: u64) -> Record {
        let key = self.scene.world.key(&format!("e{n}"), BOOKS);
        self.scene.world.ledger.peek(&key).expect("it was published")
    }

    fn publish(&self, n: u64, by: Version) {
        let world = by.of(&self.scene.world);
        let (producer, answer) = world.producer("producer", &world.right_clock(), self.event(n));
        producer.run();
        answer.lock().unwrap().take().unwrap().unwrap();
    }

    fn begin(&mut self, version: Version) {
        let (world, seed) = (version.of(&self.scene.world), self.lots.bits());
        self.names += 1;
        let name = format!("{version:?}.{}", self.names);
        let clock = world.right_clock();
        let actor = match self.lots.below(4) {
            0 => world.reconciler(&name, &clock, seed, TickLimits::default()).0,
            _ => {
                let terms = WorkerTerms { hides: seed.is_multiple_of(2), ..WorkerTerms::default() };
                world.worker(&name, &clock, seed, terms)
            }
        };
        self.players.push((version, actor));
    }

    /// Somebody of these versions takes a step, dies, or begins; or time passes.
    fn move_on(&mut self, versions: &[Version], dies: u64) {
        match self.lots.below(10) {
            0 | 1 if self.players.len() < 4 => {
                let version = *self.lots.pick(versions).unwrap();
                self.begin(version);
            }
            2 => self.scene.pass(DurationMs::from_ms(self.lots.below(20_000))),
            3 if self.lots.chance(20) => self.scene.pass(A_WHILE),
            _ if self.players.is_empty() => {}
            _ => {
                let at = self.lots.below(self.players.len() as u64) as usize;
                if self.lots.chance(dies) || self.players[at].1.step(Order::Go) == Progress::Done {
                    self.players.remove(at);
                }
            }
        }
    }

    /// One version alone, and nobody dies any more, until everything has ended.
    fn ends_with(&mut self, version: Version, seed: u64) {
        self.players.retain(|(of, _)| *of == version);
        for _ in 0..20_000 {
            if self.players.is_empty() && (0..EVENTS).all(|n| self.record(n).state == State::Succeeded) {
                return;
            }
            self.move_on(&[version], 0);
        }
        let states: Vec<State> = (0..EVENTS).map(|n| self.record(n).state).collect();
        panic!("seed {seed}: it does not end: {states:?}, {:?}", self.scene.world.queue.messages());
    }

    fn left_over(&self) -> Vec<String> {
        self.scene.world.queue.messages().into_iter().map(|(_, body, _)| body).collect()
    }
}

/// Both versions work; `gone` is withdrawn in the middle of it, and the other ends everything.
fn withdraw(gone: Version, stays: Version, seed: u64) -> (u64, u64) {
    let mut mixed = Mixed::new(seed);
    for n in 0..EVENTS {
        let by = if n % 2 == 0 { gone } else { stays };
        mixed.publish(n, by);
        let key = mixed.scene.world.key(&format!("e{n}"), BOOKS);
        let lost = Reaction::lost_after().applying();
        mixed.scene.world.recipient.react(&key.delivery_id, [Reaction::answer(503), lost]);
    }
    for _ in 0..120 {
        mixed.move_on(&[gone, stays], 3);
    }
    let before = mixed.left_over().iter().filter(|body| next_version::is_its(body)).count();
    mixed.ends_with(stays, seed);

    let requests = mixed.scene.world.recipient.requests();
    for n in 0..EVENTS {
        let id = mixed.scene.world.key(&format!("e{n}"), BOOKS).delivery_id;
        let of: Vec<_> =
            requests.iter().filter(|request| request.event_id.as_str() == format!("e{n}")).collect();
        assert!(of.iter().all(|request| request.delivery_id == id), "seed {seed}: one event, one delivery");
        assert!(of.iter().all(|request| request.body == of[0].body), "seed {seed}: the very bytes");
        let mut numbers: Vec<u32> = of.iter().map(|request| request.attempt.get()).collect();
        numbers.dedup();
        assert!(
            numbers.is_sorted() && numbers.len() == of.len(),
            "seed {seed}: each attempt is sent once: {of:?}"
        );
        assert_eq!(mixed.scene.world.recipient.effects(&id), 1, "seed {seed}");
    }
    // What the older one could not read it has left.
    let after = mixed.left_over().iter().filter(|body| next_version::is_its(body)).count();
    if gone == Version::Next {
        assert_eq!(after, before, "seed {seed}: messages of the next version that are left to it");
    }
    // Once the next version is back, it acknowledges them, and sends nothing.
    let sent = requests.len();
    for _ in 0..20_000 {
        if mixed.players.is_empty() && mixed.left_over().is_empty() {
            break;
        }
        mixed.move_on(&[Version::Next], 0);
    }
    assert_eq!(mixed.left_over(), Vec::<String>::new(), "seed {seed}");
    assert_eq!(mixed.scene.world.recipient.requests().len(), sent, "seed {seed}: nothing is sent again");
    (before as u64, after as u64)
}

#[test]
fn a_rollback_in_the_middle_of_work_loses_nothing_and_so_does_rolling_forward() {
    let rows = [
        ("the next version is withdrawn", Version::Next, Version::This),
        ("this version is replaced by the next", Version::This, Version::Next),
    ];
    for (what, gone, stays) in rows {
        let (mut before, mut after) = (0, 0);
        for seed in 0..100 {
            let left = withdraw(gone, stays, seed);
            (before, after) = (before + left.0, after + left.1);
        }
        println!("{what}: {before} of its messages stood in the queue, {after} to the end");
        assert!(before > 100, "{what}: nothing was left behind that could be misunderstood");
    }
}

#[test]
fn a_message_of_the_next_version_is_left_and_its_delivery_goes_by_the_ledger() {
    let scene = Scene::new(7);
    let world = scene.world.of_the_next_version();
    let (producer, _) = world.producer("producer", &world.right_clock(), scene.event());
    producer.run();
    let newer = scene.newest_message();
    for n in 0..3 {
        scene.worker(&format!("w{n}")).run();
        assert!(scene.world.queue.holds(&newer), "nobody who cannot read it deletes it");
        scene.pass(scene.world.visibility);
    }
    assert_eq!((scene.requests(), scene.record().revision), (0, 0));
    scene.tick();
    scene.worker("w9").run();
    if scene.requests() == 0 {
        scene.worker("w10").run();
    }
    assert_eq!(scene.record().state, State::Succeeded);
    assert_eq!(scene.requests(), 1);
}

/// The page "Rolling back" of the runbook.
#[test]
fn behind_the_gate_nothing_goes_while_two_versions_are_about_and_everything_after_it() {
    let mut mixed = Mixed::new(1);
    mixed.scene.world.hold(vec![HoldRule::All]);
    for n in 0..EVENTS {
        mixed.publish(n, if n % 2 == 0 { Version::Next } else { Version::This });
    }
    for _ in 0..2_000 {
        mixed.move_on(&[Version::Next, Version::This], 3);
    }
    assert_eq!(mixed.scene.requests(), 0);
    assert!((0..EVENTS).all(|n| mixed.record(n).attempts_made == 0), "waiting is no attempt");
    mixed.scene.world.hold(Vec::new());
    mixed.ends_with(Version::This, 1);
    assert_eq!(mixed.scene.requests() as u64, EVENTS);
}
