//! What a million deliveries cost on AWS, from the requests and units that `make costs` measured.

use std::io::Read as _;

use crate::report::{self, table};

/// Prices of us-east-1 in USD per million, without free tiers; as of the date in [`SOURCES`].
const WRITE_UNITS: f64 = 0.625;
const READ_UNITS: f64 = 0.125;
const SQS_REQUESTS: f64 = 0.40;
const LAMBDA_REQUESTS: f64 = 0.20;
/// Per million GB-seconds on arm64.
const LAMBDA_GB_S: f64 = 13.3334;

/// The date of the prices above, and the pages to compare them with.
const SOURCES: &str = "Prices of us-east-1 as of 2024-11-01, written down by hand and without free tiers: compare them with today's \
    ([DynamoDB on demand](https://aws.amazon.com/dynamodb/pricing/on-demand/), \
    [SQS standard](https://aws.amazon.com/sqs/pricing/), [Lambda on arm64](https://aws.amazon.com/lambda/pricing/)), \
    in USD per million: write units 0.625, read units 0.125, SQS requests 0.40, Lambda requests 0.20, GB-seconds \
    13.3334.";

/// The consumer's memory in GB, and the records of one invocation.
const MEMORY_GB: f64 = 0.5;
const BATCH: f64 = 10.0;

/// What one delivery takes; `wall_ms` is its share of the consumer's time.
struct Taken {
    write_units: f64,
    read_units: f64,
    sqs_requests: f64,
    wall_ms: f64,
}

impl Taken {
    /// USD per million deliveries: DynamoDB, SQS, Lambda.
    fn usd(&self) -> [f64; 3] {
        let dynamodb = self.write_units * WRITE_UNITS + self.read_units * READ_UNITS;
        let gb_s = self.wall_ms / 1000.0 * MEMORY_GB;
        [dynamodb, self.sqs_requests * SQS_REQUESTS, LAMBDA_REQUESTS / BATCH + gb_s * LAMBDA_GB_S]
    }
}

/// Reads the table that the test of costs printed, and writes the section.
pub(crate) fn write() {
    let mut said = String::new();
    std::io::stdin().read_to_string(&mut said).expect("what the test printed");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with('|')).collect();
    let measured = lines.join("\n");
    // The consumer's row of the section above: name, start, CPU, wall.
    let consumer = report::numbers("lambda").into_iter().find(|row| row.iter().any(Option::is_some));
    let wall_ms = consumer
        .and_then(|row| row.get(3).copied().flatten())
        .expect("`make bench BENCHES=lambda` came first");
    let destinations = ["one destination", "ten destinations"];
    let rows = destinations.map(|name| {
        let line = lines.iter().find(|line| line.contains("published and delivered") && line.contains(name));
        let units = report::row(line.expect("the test measured it"));
        let at = |column: usize| units.get(column).copied().flatten().expect("a number");
        let taken = Taken { write_units: at(1), read_units: at(3), sqs_requests: at(5), wall_ms };
        let [dynamodb, sqs, lambda] = taken.usd();
        let usd = |usd: f64| format!("{usd:.2}");
        vec![
            name.to_owned(),
            usd(dynamodb),
            usd(sqs),
            usd(lambda),
            format!("**{}**", usd(dynamodb + sqs + lambda)),
        ]
    });
    let head = ["USD per million, published and delivered to", "DynamoDB", "SQS", "consumer", "together"];
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let text = format!(
        "Counted on {date}; the consumer's {wall_ms} ms are of the section above.\n\n{measured}\n\n{}\n{SOURCES}\n",
        table(&head, &rows)
    );
    report::write("costs", &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_deliveries_cost_what_their_units_and_requests_do() {
        let rows = [
            ((0.0, 0.0, 0.0, 0.0), [0.0, 0.0, 0.02]),
            ((9.0, 1.0, 1.2, 1.5), [5.75, 0.48, 0.03]),
            ((5.0, 0.0, 1.0, 1000.0), [3.125, 0.4, 6.6867]),
        ];
        for ((write_units, read_units, sqs_requests, wall_ms), expected) in rows {
            let usd = Taken { write_units, read_units, sqs_requests, wall_ms }.usd();
            for (usd, expected) in usd.into_iter().zip(expected) {
                assert!((usd - expected).abs() < 1e-3, "{write_units} units: {usd}, not {expected}");
            }
        }
    }
}
