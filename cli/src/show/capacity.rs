//! What an outage leaves: a table, its facts, and a picture.

use std::fmt::Write as _;

use serde_json::{Value, json};
use waybill_domain::capacity::{First, Load, Moment, Outlook};
use waybill_domain::time::DurationMs;

/// Where an input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The line says it.
    Line,
    /// The configuration in force says it.
    Configuration,
    /// A hold says it that is eased.
    Hold,
    /// It was measured.
    Ledger,
}

impl Source {
    const fn as_str(self) -> &'static str {
        match self {
            Source::Line => "option",
            Source::Configuration => "configuration",
            Source::Hold => "hold",
            Source::Ledger => "ledger",
        }
    }
}

/// An input, and how it came about.
#[derive(Debug)]
pub(crate) struct Origin {
    /// As among the facts.
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) source: Source,
    pub(crate) how: String,
    /// Over how many deliveries or requests it was measured.
    pub(crate) over: Option<u64>,
}

impl Origin {
    pub(crate) fn measured(name: &'static str, value: String, how: String, over: u64) -> Self {
        Self { name, value, source: Source::Ledger, how, over: Some(over) }
    }

    pub(crate) fn configured(name: &'static str, value: String, how: String) -> Self {
        Self { name, value, source: Source::Configuration, how, over: None }
    }

    fn line(&self) -> String {
        let name = self.name.split('_').next().unwrap_or_default();
        format!("{name:<11} {}: {}, {}", self.value, self.source.as_str(), self.how)
    }
}

/// For programs.
pub(crate) fn facts(load: &Load, outlook: &Outlook, origins: &[Origin]) -> Value {
    let mut facts = json!({
        "arrivals_per_s": load.arrivals_per_s,
        "outage_ms": load.outage.as_ms(),
        "service_time_ms": load.service_time.as_ms(),
        "concurrency": load.concurrency,
        "safe_concurrency": load.safe_concurrency,
        "rate_per_s": load.rate_per_s,
        "duplicates_percent": load.duplicates_percent,
        "deadline_ms": load.deadline.as_ms(),
        "backlog": outlook.backlog,
        "drain_ms": outlook.drain_ms,
        "slack_ms": outlook.slack_ms,
        "needed_concurrency": outlook.needed_concurrency,
        "longest_outage_ms": outlook.longest_outage_ms,
        "too_many": outlook.too_many,
        "first": outlook.first.as_str(),
    });
    if !origins.is_empty() {
        let told = |origin: &Origin| {
            let Origin { name, source, how, over, .. } = origin;
            ((*name).to_owned(), json!({ "from": source.as_str(), "how": how, "over": over }))
        };
        facts["inputs"] = Value::Object(origins.iter().map(told).collect());
    }
    facts
}

/// For people; first what was measured, where anything was.
pub(crate) fn table(load: &Load, outlook: &Outlook, origins: &[Origin]) -> String {
    let never = || "never: what comes in takes all there is".to_owned();
    let drain =
        outlook.drain_ms.map_or_else(never, |ms| format!("{} after the recipient is back", words(ms)));
    let slack = match outlook.slack_ms {
        None => "none".to_owned(),
        Some(ms) if ms < 0 => format!("none: the deadline comes {} earlier", words(ms.unsigned_abs())),
        Some(ms) => format!("{} to the deadline", words(ms.unsigned_abs())),
    };
    let rows = [
        ("backlog", format!("{} deliveries", outlook.backlog)),
        ("drained", drain),
        ("slack", slack),
        ("needed", format!("{} requests at once, of {}", outlook.needed_concurrency, load.concurrency)),
        ("outage", format!("may last {} with the same deadline", words(outlook.longest_outage_ms))),
        ("first", first(load, outlook)),
    ];
    let mut lines: Vec<String> = origins.iter().map(Origin::line).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.extend(rows.iter().map(|(name, text)| format!("{name:<8} {text}")));
    lines.join("\n")
}

fn first(load: &Load, outlook: &Outlook) -> String {
    match outlook.first {
        First::Nothing => "nothing: it could take twice as long".to_owned(),
        First::Page => {
            "page: in time, but another failure has no room; have the destination's owner at hand".to_owned()
        }
        First::MoreConsumers => format!(
            "more consumers: raise concurrency from {} to {}; the recipient bears {}",
            load.concurrency, outlook.needed_concurrency, load.safe_concurrency
        ),
        First::Shed => format!(
            "shed: {} are too many for what the recipient bears; hold what matters least (waybill hold add --type …), \
             and page its owner",
            outlook.too_many
        ),
    }
}

/// A span to the second, where it is longer than one.
pub(crate) fn words(ms: u64) -> String {
    let rounded = if ms > 10_000 { (ms + 500) / 1000 * 1000 } else { ms };
    DurationMs::from_ms(rounded).to_string()
}

const WIDTH: f64 = 640.0;
const PANEL: f64 = 150.0;
const LEFT: f64 = 60.0;

/// Backlog and slack over time, as SVG.
pub(crate) fn picture(load: &Load) -> String {
    let course = load.course();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"420\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    if course.is_empty() {
        svg.push_str("<text x=\"60\" y=\"40\">It never drains: what comes in takes all there is.</text>\n");
    } else {
        panel(&mut svg, 40.0, "backlog (deliveries)", &course, |moment| moment.backlog);
        panel(&mut svg, 240.0, "slack to the deadline (s)", &course, |moment| moment.slack_s);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, top: f64, title: &str, course: &[Moment], value: impl Fn(&Moment) -> f64) {
    let end = course.iter().map(|moment| moment.at_s).fold(1.0, f64::max);
    let (low, high) =
        course.iter().map(&value).fold((0.0, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    let span = (high - low).max(1e-9);
    let x = |at_s: f64| LEFT + at_s / end * (WIDTH - LEFT - 20.0);
    let y = |value: f64| top + (high - value) / span * PANEL;
    let points: Vec<String> =
        course.iter().map(|moment| format!("{:.1},{:.1}", x(moment.at_s), y(value(moment)))).collect();
    let (zero, right) = (y(0.0), WIDTH - 20.0);
    // Writing to a String does not fail.
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{:.1}\">{title}</text>\n\
         <line x1=\"{LEFT}\" y1=\"{zero:.1}\" x2=\"{right}\" y2=\"{zero:.1}\" stroke=\"gray\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
        top - 12.0,
        points.join(" "),
        if low < 0.0 { "crimson" } else { "steelblue" },
    );
    for moment in course {
        let (x, y) = (x(moment.at_s), y(value(moment)));
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0}</text>",
            y - 5.0,
            value(moment)
        );
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} s</text>",
            top + PANEL + 18.0,
            moment.at_s
        );
    }
}
