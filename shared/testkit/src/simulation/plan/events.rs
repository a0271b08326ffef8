//! The events of a history, and how their recipients react, by its theme.

use bytes::Bytes;
use waybill_domain::identity::{DestinationName, EventId, TenantId};
use waybill_domain::time::DurationMs;
use waybill_service::event::Event;

use crate::clock::VirtualClock;
use crate::dice::Lots;
use crate::scripted::{LookUpReaction, Reaction};
use crate::simulation::document::OF_ONE_TENANT;
use crate::simulation::world::{NEIGHBOUR, TENANT, event_type};

use super::{PlannedEvent, Theme};

impl Theme {
    pub(super) fn draw(lots: &mut Lots) -> Self {
        match lots.below(100) {
            0..12 => Theme::Crowded("narrow"),
            12..24 => Theme::Crowded("shared"),
            24..44 => Theme::Recovery,
            44 => Theme::Relapse,
            45..57 => Theme::Suspended,
            57..72 => Theme::Eased,
            _ => Theme::Usual,
        }
    }

    /// Where the next event goes.
    fn destination(self, lots: &mut Lots) -> &'static str {
        let names: &[&str] = match self {
            Theme::Usual => &[
                "usual", "usual", "tight", "single", "brief", "nightly", "doubtful", "narrow", "shared",
                "asked", "alone",
            ],
            Theme::Crowded("narrow") => &["narrow"],
            Theme::Crowded(_) => &["shared"],
            Theme::Recovery => &["single", "tight", "doubtful", "brief", "narrow"],
            Theme::Relapse => &["single"],
            Theme::Suspended => &["usual", "single", "narrow", "shared"],
            Theme::Eased => &["usual", "usual", "alone", "shared", "tight"],
        };
        lots.pick(names).copied().unwrap_or("usual")
    }
}

pub(super) fn draw(lots: &mut Lots, theme: Theme) -> Vec<PlannedEvent> {
    let many = match theme {
        Theme::Usual => 2 + lots.below(3),
        // Now and then more of them, and all to one budget.
        Theme::Crowded(_) => 2 + lots.below(5),
        Theme::Recovery => 2 + lots.below(4),
        Theme::Relapse => 24,
        Theme::Suspended | Theme::Eased => 4 + lots.below(5),
    };
    let refusal = refusal(lots);
    (0..many).map(|n| event(lots, n, theme, &refusal)).collect()
}

/// How a recipient reacts that takes nothing from anybody.
pub(in crate::simulation) fn refusal(lots: &mut Lots) -> Reaction {
    match lots.below(6) {
        0..2 => Reaction::answer(401),
        2 => Reaction::answer(403),
        3 => Reaction::answer(410),
        4 => Reaction::lost_before(),
        _ => Reaction::silence(),
    }
}

fn event(lots: &mut Lots, n: u64, theme: Theme, refusal: &Reaction) -> PlannedEvent {
    let seconds = |lots: &mut Lots, least: i64, most: i64| {
        DurationMs::from_ms(lots.between(least * 1000, most * 1000).unsigned_abs())
    };
    let span = match theme {
        Theme::Usual => 90,
        Theme::Suspended => 300,
        _ => 20,
    };
    let at = VirtualClock::T0.plus(seconds(lots, 0, span));
    let not_before = (theme != Theme::Relapse && lots.chance(20)).then(|| at.plus(seconds(lots, 5, 2400)));
    let deadline = (theme != Theme::Relapse && lots.chance(40)).then(|| {
        let most = *lots.pick(&[10, 60, 700, 4000]).unwrap_or(&60);
        not_before.unwrap_or(at).plus(seconds(lots, 4, most))
    });
    let name = theme.destination(lots);
    let is_neighbours = theme != Theme::Relapse && lots.chance(25) && name != OF_ONE_TENANT;
    let tenant = if is_neighbours { NEIGHBOUR } else { TENANT };
    let event = Event {
        event_id: EventId::parse(format!("event-{n}")).expect("an event ID"),
        tenant: TenantId::parse(tenant).expect("a tenant"),
        event_type: event_type(lots.chance(50)),
        destination: Some(DestinationName::parse(name).expect("a destination")),
        scope: None,
        deadline,
        not_before,
        policy: None,
        trace: None,
        payload_version: None,
        content_type: "application/json".to_owned(),
        payload: Bytes::from(format!("{{\"n\":{n}}}")),
    };
    let reactions = match theme {
        Theme::Relapse => vec![Reaction::answer(500); 3],
        Theme::Suspended => vec![refusal.clone(); lots.below(4) as usize],
        Theme::Recovery => (0..1 + lots.below(5)).map(|_| reaction(lots)).collect(),
        _ => (0..lots.below(7)).map(|_| reaction(lots)).collect(),
    };
    let look_ups = (0..lots.below(4)).map(|_| look_up(lots)).collect();
    PlannedEvent { event, at, over_http: lots.chance(50), reactions, look_ups }
}

/// How recipients react to what a schedule publishes.
pub(in crate::simulation) fn of_a_window(lots: &mut Lots) -> Vec<Reaction> {
    (0..lots.below(4)).map(|_| reaction(lots)).collect()
}

fn look_up(lots: &mut Lots) -> LookUpReaction {
    match lots.below(4) {
        0 => LookUpReaction::Answer(503),
        1 => LookUpReaction::Silence,
        _ => LookUpReaction::Truth,
    }
}

fn reaction(lots: &mut Lots) -> Reaction {
    let taking = DurationMs::from_ms(lots.below(20_000));
    let drawn = match lots.below(16) {
        0..3 => Reaction::answer(500).applying(),
        3..5 => Reaction::answer(503),
        5 => Reaction::answer(503).asking("20"),
        6 => Reaction::answer(429).asking("1500"),
        7 => Reaction::answer(429).asking("5000"),
        8 => Reaction::answer(lots.pick(&[400, 401, 410]).copied().unwrap_or(400)),
        9 => Reaction::silence().applying(),
        10 => Reaction::silence(),
        11 => Reaction::lost_before(),
        12 => Reaction::lost_after(),
        13 => Reaction::lost_after().applying(),
        _ => Reaction::answer(200),
    };
    match lots.below(3) {
        0 => drawn.taking(taking),
        1 => drawn.connecting_for(DurationMs::from_ms(lots.below(8_000))),
        _ => drawn,
    }
}
