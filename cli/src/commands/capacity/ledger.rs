//! What the line does not say, measured in the ledger and in the configuration in force.

use waybill_domain::budget::{Budget, Rate};
use waybill_domain::capacity::Load;
use waybill_domain::capacity::measured::{Measured, ServiceTime, TooFew};
use waybill_domain::destination::Destination;
use waybill_domain::ending::Ending;
use waybill_domain::identity::DestinationName;
use waybill_domain::order::Order;
use waybill_domain::time::{DurationMs, TimeMs};
use waybill_service::config::Config;
use waybill_service::easing::Easing;
use waybill_service::ports::Clock as _;
use waybill_service::survey::{Asked, MOST, Survey, survey};
use waybill_system::SystemClock;

use super::super::holds::in_force;
use super::super::operator::Operator;
use super::super::{Globals, known};
use super::Arguments;
use crate::backend::{Opened, on_office, on_store};
use crate::exit::Failure;
use crate::show::capacity::{Origin, Source, words};

/// What is looked at unless the line says otherwise.
const USUALLY: DurationMs = DurationMs::from_secs(3600);

/// Every input, and where it comes from.
pub(super) async fn measured(
    globals: &Globals,
    arguments: &Arguments,
    name: &DestinationName,
) -> Result<(Load, Vec<Origin>), Failure> {
    let opened = globals.backend().open().await?;
    let operator = Operator::of(globals, &opened, "capacity").await?;
    let destination = destination(&operator, name)?;
    let now = SystemClock.now();
    let since = arguments.since.unwrap_or(now.minus(USUALLY));
    let survey = looked_at(&opened, &destination, since, now).await?;
    let bound = on_office!(opened, |_, office| {
        let open = in_force(office, &operator).await?;
        Bound::of(&destination, operator.config()?, &open)
    });
    Figures { arguments, destination: &destination, bound, survey: &survey, since, now }.load()
}

/// The destination, if all of what goes to it is the operator's matter: others' deliveries take the same
/// places.
fn destination(operator: &Operator, name: &DestinationName) -> Result<Destination, Failure> {
    let config = operator.config()?;
    let known = config.destinations.get(name);
    let is_own =
        |destination: &Destination| destination.tenants.iter().any(|tenant| operator.may_see(tenant));
    let Some(destination) = known.filter(|known| is_own(known)) else {
        return Err(known::no_destination(config, operator, name));
    };
    if !operator.may_read_across() || !destination.tenants.iter().all(|tenant| operator.may_see(tenant)) {
        return Err(Failure::refused(format!(
            "capacity --from-ledger is refused: others than your tenants share {name}'s places, or what is held \
             for it; an operator across tenants may, or give every figure instead of --from-ledger"
        )));
    }
    Ok(Destination::clone(destination))
}

async fn looked_at(
    opened: &Opened,
    destination: &Destination,
    since: TimeMs,
    now: TimeMs,
) -> Result<Survey, Failure> {
    let asked = Asked { destination: &destination.name, tenants: &destination.tenants, since, now };
    Ok(on_store!(*opened, |ledger, _| survey(ledger, asked).await)?)
}

/// The budget in force, and what says so.
struct Bound {
    budget: Option<Budget>,
    source: Source,
    how: String,
}

impl Bound {
    /// Under these open orders: a hold that is eased bounds what it lets go.
    fn of(destination: &Destination, config: &Config, open: &[Order]) -> Self {
        let name = &destination.name;
        let eases = |order: &&Order| {
            let rule = order.eased_to().and(order.hold_rule());
            rule.is_some_and(|rule| Easing::of(&rule, &order.book, config).lets_go.contains(name))
        };
        let eased: Vec<String> = open
            .iter()
            .filter(eases)
            .filter_map(|order| Some(format!("{} is eased to {} at once", order.id, order.eased_to()?)))
            .collect();
        let budget = config.clone().under(open).budget_of(destination).copied();
        let (source, how) = match eased.is_empty() {
            true => (Source::Configuration, "the budget in force".to_owned()),
            false => (Source::Hold, format!("the budget in force while {}", eased.join(", and "))),
        };
        Self { budget: budget.filter(|budget| !budget.is_unbounded()), source, how }
    }

    fn origin(&self, name: &'static str, value: String, more: &str) -> Origin {
        Origin { name, value, source: self.source, how: format!("{}{more}", self.how), over: None }
    }
}

/// What the figures are taken from.
struct Figures<'a> {
    arguments: &'a Arguments,
    destination: &'a Destination,
    bound: Bound,
    survey: &'a Survey,
    since: TimeMs,
    now: TimeMs,
}

impl Figures<'_> {
    fn load(&self) -> Result<(Load, Vec<Origin>), Failure> {
        let (arrivals_per_s, arrivals) = self.arrivals()?;
        let (concurrency, at_once) = self.concurrency()?;
        let (service_time, service) = self.service(concurrency)?;
        let (rate_per_s, rate) = self.rate();
        let (duplicates_percent, repeats) = self.duplicates()?;
        let (outage, down) = self.outage(arrivals_per_s)?;
        let (deadline, due) = self.deadline()?;
        let safe_concurrency = self.arguments.safe_concurrency.unwrap_or(concurrency);
        let load = Load {
            arrivals_per_s,
            outage,
            service_time,
            concurrency,
            safe_concurrency,
            rate_per_s,
            duplicates_percent,
            deadline,
        };
        Ok((
            load,
            [Some(arrivals), Some(service), Some(at_once), rate, Some(repeats), Some(down), Some(due)]
                .into_iter()
                .flatten()
                .collect(),
        ))
    }

    fn arrivals(&self) -> Result<(f64, Origin), Failure> {
        if let Some(said) = self.arguments.arrivals_per_s {
            return Ok((said, said_by_line("arrivals_per_s", format!("{said} per second"))));
        }
        let Measured { value, over } =
            self.survey.tally.arrivals_per_s().map_err(|few| self.too_few(few, "--arrivals-per-s"))?;
        let how = format!("{over} deliveries that came in since {}{}", self.survey.from, self.cut());
        Ok((value, Origin::measured("arrivals_per_s", format!("{value:.2} per second"), how, over)))
    }

    fn service(&self, places: u32) -> Result<(DurationMs, Origin), Failure> {
        if let Some(said) = self.arguments.service_time {
            return Ok((said, said_by_line("service_time_ms", said.to_string())));
        }
        let Measured { value: service, over } =
            self.survey.tally.service_time(places).map_err(|few| self.too_few(few, "--service-time"))?;
        let (ServiceTime { mean, p50, p95, hand_over }, place) = (service, service.place());
        let next = match hand_over {
            Ok(Measured { value, over }) => format!(
                "and {value} until the next has the place, as from publish to claim (p25 of {over} that found a free \
                 place as they came in)"
            ),
            Err(few) => format!("without what passes until the next has the place: {few}"),
        };
        let how = format!(
            "{mean} from claim to settle, the mean of {over} acknowledged requests (p50 {p50}, p95 {p95}) and of the \
             failed ones before them, {next}"
        );
        Ok((place, Origin::measured("service_time_ms", place.to_string(), how, over)))
    }

    fn concurrency(&self) -> Result<(u32, Origin), Failure> {
        let at_once = |n: u32| format!("{n} at once");
        if let Some(said) = self.arguments.concurrency {
            return Ok((said, said_by_line("concurrency", at_once(said))));
        }
        let Some(budget) = self.bound.budget else {
            return Err(Failure::failed(format!(
                "{}: no concurrency is configured, and what bounds it otherwise (serve --concurrency, the event source \
                 mapping) does not stand in the ledger; give --concurrency",
                self.destination.name
            )));
        };
        let most = self.survey.tally.most_at_once();
        let seen = format!("; {most} at once were seen");
        let origin = self.bound.origin("concurrency", at_once(budget.concurrency), &seen);
        Ok((budget.concurrency, origin))
    }

    fn rate(&self) -> (Option<f64>, Option<Origin>) {
        let per_s = |rate: Rate| format!("at most {} per second", rate.per_s());
        if let Some(said) = self.arguments.rate {
            return (Some(said.per_s()), Some(said_by_line("rate_per_s", per_s(said))));
        }
        // No hold is eased to a rate: it is the configured one.
        let rate = self.bound.budget.and_then(|budget| budget.rate);
        let origin = |rate| Origin::configured("rate_per_s", per_s(rate), "the budget in force".to_owned());
        (rate.map(Rate::per_s), rate.map(origin))
    }

    fn duplicates(&self) -> Result<(f64, Origin), Failure> {
        if let Some(said) = self.arguments.duplicates {
            return Ok((said, said_by_line("duplicates_percent", format!("{said} % more requests"))));
        }
        let Measured { value, over } =
            self.survey.tally.duplicates_percent().map_err(|few| self.too_few(few, "--duplicates"))?;
        let how = format!("attempts beyond one of {over} deliveries that succeeded");
        Ok((value, Origin::measured("duplicates_percent", format!("{value:.1} % more requests"), how, over)))
    }

    /// As long as what waits took to come in.
    fn outage(&self, arrivals_per_s: f64) -> Result<(DurationMs, Origin), Failure> {
        if let Some(said) = self.arguments.outage {
            return Ok((said, said_by_line("outage_ms", said.to_string())));
        }
        let (open, name) = (self.survey.tally.open(), &self.destination.name);
        if self.survey.more_held {
            let sentence =
                format!("{name}: more than {MOST} are held, and no more are counted; give --outage");
            return Err(Failure::failed(sentence));
        }
        if self.survey.more_wait {
            return Err(self.more_wait("--outage"));
        }
        if open == 0 {
            let sentence =
                format!("{name}: nothing waits that an outage could be measured by; give --outage");
            return Err(Failure::failed(sentence));
        }
        let outage = DurationMs::from_ms((open as f64 / arrivals_per_s * 1000.0).round() as u64);
        let how = format!("what {open} deliveries that wait took to come in{}", self.cut());
        Ok((outage, Origin::measured("outage_ms", words(outage.as_ms()), how, open)))
    }

    fn deadline(&self) -> Result<(DurationMs, Origin), Failure> {
        if let Some(said) = self.arguments.deadline {
            return Ok((said, said_by_line("deadline_ms", said.to_string())));
        }
        if self.survey.more_wait {
            return Err(self.more_wait("--deadline"));
        }
        let tally = &self.survey.tally;
        let Some(nearest) = tally.nearest_limit() else {
            let sentence = "nothing waits whose deadline or horizon is still to come; give --deadline";
            return Err(Failure::failed(format!("{}: {sentence}", self.destination.name)));
        };
        let left = nearest.at.since(self.now);
        let kind = if nearest.ending == Ending::Expired { "deadline" } else { "horizon" };
        let how = format!("the nearest {kind} of {} deliveries that wait, {}", tally.open(), nearest.at);
        Ok((left, Origin::measured("deadline_ms", words(left.as_ms()), how, tally.open())))
    }

    /// That older ones were not looked at, where that is so.
    fn cut(&self) -> String {
        match self.survey.from > self.since {
            true => format!(
                " (the newest {} of its tenants' were read; older ones count only where they wait)",
                self.survey.looked_at
            ),
            false => String::new(),
        }
    }

    fn more_wait(&self, option: &str) -> Failure {
        Failure::failed(format!(
            "{}: more than {MOST} wait for their attempts, of all destinations, and not all were read: older ones to \
             this one may be among the others; give {option}",
            self.destination.name
        ))
    }

    fn too_few(&self, few: TooFew, option: &str) -> Failure {
        Failure::failed(format!(
            "{}: too little to measure: {few} (since {}); look further back with --since, or give {option}",
            self.destination.name, self.survey.from
        ))
    }
}

fn said_by_line(name: &'static str, value: String) -> Origin {
    Origin { name, value, source: Source::Line, how: "as given".to_owned(), over: None }
}
